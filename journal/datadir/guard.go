package datadir

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Pebble does not survive a failed write: it panics where a log cannot be closed or made, tries a flush again without a pause and for
// ever, and lets writers wait for it meanwhile. So a failure is met before Pebble learns of it: a full disk is a slow disk
// (the write waits for room, where the program can wait), and anything else ends the process by its FatalFunc, which says what to do.

// remedy is what is done about an operation that failed.
type remedy uint8

const (
	passOn remedy = iota // the caller can handle it
	await                // it may pass: room or descriptors that others give back
	end                  // nothing may be written any more
)

// action is what a file operation does, as far as its failure matters.
type action uint8

const (
	reads   action = iota // open, read, list, stat
	removes               // Pebble tries again at the next start
	makes                 // create, link, rename, make a directory: again is the same as once
	writes
	syncs // also closes a file that was written. What a failed sync took with it is not known
)

// remedyFor decides.
func remedyFor(a action, err error) remedy {
	switch {
	case err == nil || a == reads || a == removes:
		return passOn
	case (a == makes || a == writes) && Passes(err):
		return await
	}
	return end
}

// Passes reports whether an error goes away when something is given back: space, quota, descriptors.
func Passes(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || descriptors(err)
}

// descriptors reports whether there are none left. Most are this process's own: it waits for those of questions that end, not for long.
func descriptors(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// descriptorTries is how often an operation is tried that found no descriptor.
const descriptorTries = 10

// GuardOptions of a Guard.
type GuardOptions struct {
	// Database names it in messages.
	Database string
	// Fatal is told of a failed write, and must not return. nil: Exit.
	Fatal FatalFunc
	// Until: a write that finds no room waits for it until this is closed. Then, or where it is nil, that is told to Fatal as any
	// other failure.
	Until <-chan struct{}
	// Every is how often it is tried again. 0: 1 s.
	Every time.Duration
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
}

// Guard is the filesystem of one database, which is told of no failed write. All methods may be called at once.
type Guard struct {
	vfs.FS
	o       GuardOptions
	waiting atomic.Int64
}

// NewGuard guards fs.
func NewGuard(fs vfs.FS, o GuardOptions) *Guard {
	if o.Fatal == nil {
		o.Fatal = Exit
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{FS: fs, o: o}
}

// Waits reports whether a write waits for room.
func (g *Guard) Waits() bool { return g.waiting.Load() > 0 }

// Unwrap is part of vfs.FS.
func (g *Guard) Unwrap() vfs.FS { return g.FS }

// do tries until it works, must not be tried again, or cannot.
func (g *Guard) do(a action, what, path string, try func() error) error {
	err := try()
	if err == nil {
		return nil
	}
	if remedyFor(a, err) == await && g.o.Until != nil {
		err = g.await(a, path, err, try)
	}
	if remedyFor(a, err) != passOn {
		g.o.Fatal(fmt.Sprintf("%s: %s %s: %v", g.o.Database, what, path, err))
	}
	return err
}

// await tries again until it works, or there is no time any more. It returns the last error.
func (g *Guard) await(a action, path string, err error, try func() error) error {
	if g.waiting.Add(1) == 1 {
		g.o.Log.Error("nothing can be written; waiting until it can, recording stalls", "why", err.Error(), "file", path, "database", g.o.Database,
			"what_to_do", "free space on the disk (or descriptors: ulimit -n); it goes on by itself")
	}
	begun := time.Now()
	defer func() {
		if g.waiting.Add(-1) == 0 && err == nil {
			g.o.Log.Warn("it can be written again", "database", g.o.Database, "waited", time.Since(begun).Round(time.Millisecond))
		}
	}()
	again := time.NewTicker(g.o.Every)
	defer again.Stop()
	for tries := 0; remedyFor(a, err) == await && (tries < descriptorTries || !descriptors(err)); tries++ {
		select {
		case <-g.o.Until:
			return err
		case <-again.C:
		}
		err = try()
	}
	return err
}

// file guards what was opened for writing.
func (g *Guard) file(f vfs.File, path string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &guardedFile{File: f, g: g, path: path}, nil
}

// markers begin the names of the files by which Pebble says which manifest counts.
const markers = "marker."

// Create is part of vfs.FS. Before a marker the directory is synced: Pebble does not, and a loss of power could keep the marker and take
// the manifest that it names.
func (g *Guard) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	if strings.HasPrefix(g.PathBase(name), markers) {
		if err := SyncDir(g, g.PathDir(name)); err != nil {
			return nil, err
		}
	}
	err = g.do(makes, "making", name, func() (err error) { f, err = g.FS.Create(name, c); return err })
	return g.file(f, name, err)
}

// OpenReadWrite is part of vfs.FS.
func (g *Guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = g.do(makes, "opening", name, func() (err error) { f, err = g.FS.OpenReadWrite(name, c, opts...); return err })
	return g.file(f, name, err)
}

// OpenDir is part of vfs.FS. Directories are opened to be synced.
func (g *Guard) OpenDir(name string) (f vfs.File, err error) {
	err = g.do(makes, "opening", name, func() (err error) { f, err = g.FS.OpenDir(name); return err })
	return g.file(f, name, err)
}

// ReuseForWrite is part of vfs.FS. It may fail behind the renaming: then the old name is gone.
func (g *Guard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	tried := false
	err = g.do(makes, "making", name, func() (err error) {
		f, err = g.FS.ReuseForWrite(old, name, c)
		if tried && errors.Is(err, os.ErrNotExist) {
			f, err = g.FS.Create(name, c)
		}
		tried = true
		return err
	})
	return g.file(f, name, err)
}

// Link is part of vfs.FS. Where a filesystem has no hard links, Pebble copies the file: that is no failure.
func (g *Guard) Link(old, name string) error {
	var none error
	err := g.do(makes, "linking", name, func() error {
		err := g.FS.Link(old, name)
		for _, no := range []syscall.Errno{unix.EXDEV, unix.EMLINK, unix.ENOTSUP, unix.ENOSYS, unix.EPERM} {
			if errors.Is(err, no) {
				none = fmt.Errorf("linking %s: %w: %v", name, unix.EXDEV, err) // Pebble would take EPERM for a failure
				return nil
			}
		}
		return err
	})
	return errors.Join(err, none)
}

// Rename is part of vfs.FS.
func (g *Guard) Rename(old, name string) error {
	return g.do(makes, "renaming a file to", name, func() error { return g.FS.Rename(old, name) })
}

// MkdirAll is part of vfs.FS.
func (g *Guard) MkdirAll(dir string, perm os.FileMode) error {
	return g.do(makes, "making", dir, func() error { return g.FS.MkdirAll(dir, perm) })
}

// Open is part of vfs.FS.
func (g *Guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &readFile{f}, nil
}

type guardedFile struct {
	vfs.File
	g    *Guard
	path string
}

func (f *guardedFile) Write(b []byte) (n int, err error) {
	err = f.g.do(writes, "writing", f.path, func() error {
		m, err := f.File.Write(b[n:])
		n += m
		return err
	})
	return n, err
}

func (f *guardedFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.g.do(writes, "writing", f.path, func() error {
		m, err := f.File.WriteAt(b[n:], at+int64(n))
		n += m
		return err
	})
	return n, err
}

func (f *guardedFile) Sync() error     { return f.g.do(syncs, "syncing", f.path, f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.g.do(syncs, "syncing", f.path, f.File.SyncData) }
func (f *guardedFile) Close() error    { return f.g.do(syncs, "closing", f.path, f.File.Close) }

func (f *guardedFile) SyncTo(n int64) (full bool, err error) {
	err = f.g.do(syncs, "syncing", f.path, func() (err error) { full, err = f.File.SyncTo(n); return err })
	return full, err
}

// brake is the least time that a failed read takes: Pebble tries a compaction again at once.
const brake = 20 * time.Millisecond

type readFile struct{ vfs.File }

func (f *readFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err != nil && err != io.EOF {
		time.Sleep(brake)
	}
	return n, err
}
