package datadir

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// What is recorded names tenants and keys. So all files of a data directory are their owner's alone, whatever the umask of the process is,
// and whatever the directory itself lets others do.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Private is fs with files that only their owner may read, from the moment on that they are made.
func Private(fs vfs.FS) vfs.FS { return private{fs} }

type private struct{ vfs.FS }

func (p private) Unwrap() vfs.FS { return p.FS }

func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return own(p.FS.Create(name, category))
}

func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return own(p.FS.OpenReadWrite(name, category, opts...))
}

func (p private) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return own(p.FS.ReuseForWrite(oldname, newname, category))
}

// own makes an open file its owner's alone. Files in memory have no mode.
func own(f vfs.File, err error) (vfs.File, error) {
	if err != nil || f.Fd() == vfs.InvalidFd {
		return f, err
	}
	if err := unix.Fchmod(int(f.Fd()), fileMode); err != nil && !errors.Is(err, unix.EPERM) { // some filesystems have no modes
		return nil, errors.Join(fmt.Errorf("keeping a file from others: %w", err), f.Close())
	}
	return f, nil
}

// MakePrivate makes a directory that only its owner may enter, and keeps others out of one that is there.
func MakePrivate(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, dirMode); err != nil || !onDisk(fs) {
		return err
	}
	if err := os.Chmod(dir, dirMode); err != nil && !errors.Is(err, os.ErrPermission) { // another's directory that we may write to
		return err
	}
	return nil
}
