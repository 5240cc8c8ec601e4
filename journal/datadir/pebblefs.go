package datadir

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Unlocked is fs as Pebble is given it: with a Lock that does nothing, because the directory has locks of its own, and with files
// that are private.
func Unlocked(fs vfs.FS) vfs.FS { return unlocked{Private(fs)} }

type unlocked struct{ vfs.FS }

func (u unlocked) Lock(string) (io.Closer, error) { return noLock{}, nil }
func (u unlocked) Unwrap() vfs.FS                 { return u.FS }

type noLock struct{}

func (noLock) Close() error { return nil }

// FatalFunc is told of a failure after which a database cannot go on. It must not return.
type FatalFunc func(message string)

// Exit is the FatalFunc of a program: it says what happened and what to do, and ends the process. What was acknowledged
// is safe: it was synced before.
func Exit(message string) {
	fmt.Fprintf(os.Stderr, "kvjournal: the storage failed and nothing more can be written: %s\n"+
		"Everything acknowledged is on disk. Check the disk (space, dmesg), then start again: the directory opens as it is.\n", message)
	os.Exit(1)
}

// Logger takes Pebble's messages: errors go to log, what ends the process to fatal (nil: Exit).
func Logger(log *slog.Logger, database string, fatal FatalFunc) *PebbleLogger {
	if fatal == nil {
		fatal = Exit
	}
	return &PebbleLogger{log: log, database: database, fatal: fatal}
}

// PebbleLogger implements pebble.Logger.
type PebbleLogger struct {
	log      *slog.Logger
	database string
	fatal    FatalFunc
}

// Infof drops Pebble's chatter.
func (l *PebbleLogger) Infof(string, ...any) {}

// Errorf passes an error on.
func (l *PebbleLogger) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log.Error(fmt.Sprintf(format, args...), "database", l.database)
	}
}

// Fatalf ends the process: Pebble cannot go on.
func (l *PebbleLogger) Fatalf(format string, args ...any) {
	l.fatal(l.database + ": " + fmt.Sprintf(format, args...))
}

// OpenPebble is pebble.Open without its panics. One comes where a directory cannot be synced (atomicfs.Marker): that is an error too. Others
// come from work in the background behind an Open that failed, which has taken the caches away from it. Compactions wait until it is open
// (scheduler.go). The statistics of a table with deletions are begun by the flush that follows a replayed log, in the middle of Open, and
// nothing holds them back: so behind the beginning of a flush Open does not fail. What it does there is to make and write files, where the
// Guard that a database open for writing is given lets nothing fail, and to list the directory (steady).
func OpenPebble(path string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		failed, isError := p.(error)
		var bug runtime.Error
		if !isError || errors.As(failed, &bug) {
			panic(p)
		}
		db, err = nil, failed
	}()
	s := newScheduler()
	o = o.Clone()
	o.Experimental.CompactionScheduler = s
	fs := &steady{FS: o.FS}
	o.FS, o.EventListener = fs, fs.listening(o.EventListener)
	if db, err = pebble.Open(path, o); err != nil {
		return nil, err
	}
	fs.opened.Store(true)
	s.opened()
	return db, nil
}

// steady is a filesystem whose directories Open can always list behind the beginning of its flush: it does so to find what is not needed any
// more, and where that cannot be read now, the next Open finds it.
type steady struct {
	vfs.FS
	flushes, opened atomic.Bool
}

func (s *steady) Unwrap() vfs.FS { return s.FS }

// List implements vfs.FS.
func (s *steady) List(dir string) ([]string, error) {
	names, err := s.FS.List(dir)
	if err != nil && s.flushes.Load() && !s.opened.Load() {
		return nil, nil
	}
	return names, err
}

// listening is l that sees when a flush begins.
func (s *steady) listening(l *pebble.EventListener) *pebble.EventListener {
	var seen pebble.EventListener
	if l != nil {
		seen = *l
	}
	then := seen.FlushBegin
	seen.FlushBegin = func(info pebble.FlushInfo) {
		s.flushes.Store(true)
		if then != nil {
			then(info)
		}
	}
	return &seen
}
