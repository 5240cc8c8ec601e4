package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/journal/pause"
)

const (
	claimFile  = "claim"
	accessFile = "access"
	// retryEvery is how often a lock that is held is tried again.
	retryEvery = 5 * time.Millisecond
	// claimPatience covers a reader that looks at the claim at the very moment a writer takes it, and a writer that is just ending.
	claimPatience = 500 * time.Millisecond
)

// Lock is a held lock, or two. Release gives it up; the kernel does so too when the process ends.
type Lock struct{ files []*os.File }

// Release gives the lock up. It may be called on nil and more than once.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	for _, f := range l.files {
		f.Close()
	}
	l.files = nil
}

// onDisk reports whether fs is the operating system's, however wrapped. Only there do locks mean anything.
func onDisk(fs vfs.FS) bool {
	for fs != nil {
		if fs == vfs.Default {
			return true
		}
		fs = fs.Unwrap()
	}
	return false
}

func flock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil && how&unix.LOCK_SH != 0 {
		f, err = os.Open(path) // a read-only directory
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func held(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// Claim makes the caller the directory's one writer; who tells others which command it is. It fails with ErrLocked
// where another writer runs, and waits for a command that is bringing the index up, which gives way.
func Claim(ctx context.Context, fs vfs.FS, dir, who string) (*Lock, error) {
	if !onDisk(fs) {
		return &Lock{}, nil
	}
	path := filepath.Join(dir, claimFile)
	var claim *os.File
	for deadline := time.Now().Add(claimPatience); ; {
		f, err := flock(path, unix.LOCK_EX)
		if err == nil {
			claim = f
			break
		}
		if !held(err) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if time.Now().After(deadline) && !onlyLookedAt(path) {
			return nil, fmt.Errorf("%s: %w (%s); one writer per directory: stop it first, or give another --dir", dir, ErrLocked, holder(path))
		}
		if err := pause.For(ctx, retryEvery); err != nil {
			return nil, err
		}
	}
	if err := claim.Truncate(0); err == nil {
		fmt.Fprintf(claim, "%s, process %d, since %s\n", who, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	}
	access, err := shareAccess(ctx, dir)
	if err != nil {
		claim.Close()
		return nil, err
	}
	return &Lock{files: []*os.File{claim, access}}, nil
}

// onlyLookedAt reports whether the claim is held by nobody but readers that look at it: however many they are, a writer gets it.
func onlyLookedAt(path string) bool {
	f, err := flock(path, unix.LOCK_SH)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// holder tells who wrote the claim.
func holder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown process"
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 256))
	if s := strings.TrimSpace(string(b)); s != "" {
		return s
	}
	return "unknown process"
}

// shareAccess takes the shared access lock, waiting for a command that holds it alone.
func shareAccess(ctx context.Context, dir string) (*os.File, error) {
	path := filepath.Join(dir, accessFile)
	for {
		f, err := flock(path, unix.LOCK_SH)
		if err == nil {
			return f, nil
		}
		if !held(err) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if err := pause.For(ctx, retryEvery); err != nil {
			return nil, err
		}
	}
}

// Share lets the caller read a directory at rest. It waits for a command that is bringing the index up. On a
// directory where no lock file can be made or opened it returns an empty lock: nobody can write there.
func Share(ctx context.Context, fs vfs.FS, dir string) (*Lock, error) {
	if !onDisk(fs) {
		return &Lock{}, nil
	}
	f, err := shareAccess(ctx, dir)
	if err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrNotExist) {
			return &Lock{}, nil
		}
		return nil, err
	}
	return &Lock{files: []*os.File{f}}, nil
}

// Alone takes the access lock for one command that brings the index up. It does not wait: ErrLocked where a reader or a
// writer is there.
func Alone(fs vfs.FS, dir string) (*Lock, error) {
	if !onDisk(fs) {
		return &Lock{}, nil
	}
	f, err := flock(filepath.Join(dir, accessFile), unix.LOCK_EX)
	if held(err) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	l := &Lock{files: []*os.File{f}}
	if who, claimed := Claimed(fs, dir); claimed {
		l.Release()
		return nil, fmt.Errorf("%w (%s)", ErrLocked, who)
	}
	return l, nil
}

// Claimed reports whether a writer holds the directory, and which.
func Claimed(fs vfs.FS, dir string) (who string, claimed bool) {
	if !onDisk(fs) {
		return "", false
	}
	path := filepath.Join(dir, claimFile)
	if _, err := os.Stat(path); err != nil {
		return "", false
	}
	f, err := flock(path, unix.LOCK_SH)
	if err == nil {
		f.Close()
		return "", false
	}
	return holder(path), held(err)
}
