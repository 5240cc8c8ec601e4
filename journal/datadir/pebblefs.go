package datadir

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

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

// OpenPebble is pebble.Open without its panics. One comes where a directory cannot be synced (atomicfs.Marker): that is an error too. Another
// comes from work in the background behind an Open that failed, which has taken the caches away from it. Compactions wait until it is open
// (scheduler.go). Other such work begins early only where a log is replayed: so that is done first, without it.
func OpenPebble(path string, o *pebble.Options) (*pebble.DB, error) {
	if !o.ReadOnly && hasLog(o.FS, path) {
		alone := o.Clone()
		alone.DisableTableStats, alone.DisableAutomaticCompactions = true, true
		db, err := openPebble(path, alone)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(db.Flush(), db.Close()); err != nil {
			return nil, err
		}
	}
	return openPebble(path, o)
}

// hasLog reports whether a write-ahead log is there that is not empty.
func hasLog(fs vfs.FS, path string) bool {
	names, err := fs.List(path)
	if err != nil {
		return false
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(path, name)); err != nil || info.Size() > 0 {
			return true
		}
	}
	return false
}

func openPebble(path string, o *pebble.Options) (db *pebble.DB, err error) {
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
	if db, err = pebble.Open(path, o); err != nil {
		return nil, err
	}
	s.opened()
	return db, nil
}
