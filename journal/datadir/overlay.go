package datadir

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Overlay is a filesystem that reads base and keeps every change in memory: so a database in a directory that must not be
// written to can be opened, and even brought up to date, as any other. What was changed is gone when the overlay is.
func Overlay(base vfs.FS) vfs.FS {
	return &overlay{FS: base, mem: vfs.NewMem(), gone: map[string]bool{}}
}

type overlay struct {
	vfs.FS // base
	mem    *vfs.MemFS

	mu   sync.Mutex
	gone map[string]bool // paths of base that were removed
}

func notExist(op, path string) error { return &os.PathError{Op: op, Path: path, Err: os.ErrNotExist} }

// inMem reports whether name was written since.
func (o *overlay) inMem(name string) bool {
	_, err := o.mem.Stat(name)
	return err == nil
}

// hidden reports whether name, or a directory it is in, was removed.
func (o *overlay) hidden(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := name; ; p = o.FS.PathDir(p) {
		if o.gone[p] {
			return true
		}
		if up := o.FS.PathDir(p); up == p {
			return false
		}
	}
}

// inDir brings the directory that name is in into memory. It fails where there is none.
func (o *overlay) inDir(op, name string) error {
	dir := o.FS.PathDir(name)
	if info, err := o.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return &os.PathError{Op: op, Path: name, Err: unix.ENOTDIR}
	}
	return o.mem.MkdirAll(dir, 0o700)
}

func (o *overlay) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.inDir("create", name); err != nil {
		return nil, err
	}
	return o.mem.Create(name, category)
}

func (o *overlay) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if o.inMem(name) {
		return o.mem.Open(name, opts...)
	}
	if o.hidden(name) {
		return nil, notExist("open", name)
	}
	return o.FS.Open(name, opts...)
}

// copyUp brings a file of base into memory, so that it can be changed there.
func (o *overlay) copyUp(from, to string) error {
	src, err := o.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := o.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer dst.Close()
	_, err = io.Copy(dst, src)
	return err
}

func (o *overlay) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if !o.inMem(name) {
		if err := o.copyUp(name, name); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	if err := o.inDir("open", name); err != nil {
		return nil, err
	}
	return o.mem.OpenReadWrite(name, category, opts...)
}

func (o *overlay) OpenDir(name string) (vfs.File, error) {
	if info, err := o.Stat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: unix.ENOTDIR}
	}
	if err := o.mem.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	return o.mem.OpenDir(name)
}

// Link copies: what is written to the one name later is not seen under the other.
func (o *overlay) Link(oldname, newname string) error {
	if _, err := o.Stat(oldname); err != nil {
		return err
	}
	if _, err := o.Stat(newname); err == nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: os.ErrExist}
	}
	return o.copyUp(oldname, newname)
}

func (o *overlay) Remove(name string) error {
	info, err := o.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if names, err := o.List(name); err != nil {
			return err
		} else if len(names) > 0 {
			return &os.PathError{Op: "remove", Path: name, Err: unix.ENOTEMPTY}
		}
	}
	return o.drop(name, o.mem.Remove)
}

func (o *overlay) RemoveAll(name string) error { return o.drop(name, o.mem.RemoveAll) }

func (o *overlay) drop(name string, fromMem func(string) error) error {
	if o.inMem(name) {
		if err := fromMem(name); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[name] = true
	return nil
}

func (o *overlay) Rename(oldname, newname string) error {
	info, err := o.Stat(oldname)
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := o.List(oldname)
		if err != nil {
			return err
		}
		if err := o.mem.MkdirAll(newname, 0o700); err != nil {
			return err
		}
		for _, n := range names {
			if err := o.Rename(o.FS.PathJoin(oldname, n), o.FS.PathJoin(newname, n)); err != nil {
				return err
			}
		}
		return o.RemoveAll(oldname)
	}
	if !o.inMem(oldname) {
		if err := o.copyUp(oldname, oldname); err != nil {
			return err
		}
	}
	if err := o.inDir("rename", newname); err != nil {
		return err
	}
	if err := o.mem.Rename(oldname, newname); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[oldname] = true
	return nil
}

func (o *overlay) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.Remove(oldname); err != nil {
		return nil, err
	}
	return o.Create(newname, category)
}

func (o *overlay) MkdirAll(dir string, perm os.FileMode) error {
	for p := dir; ; p = o.FS.PathDir(p) {
		if info, err := o.Stat(p); err == nil {
			if !info.IsDir() {
				return &os.PathError{Op: "mkdir", Path: p, Err: unix.ENOTDIR}
			}
			break
		}
		if up := o.FS.PathDir(p); up == p {
			break
		}
	}
	return o.mem.MkdirAll(dir, perm)
}

func (o *overlay) Lock(string) (io.Closer, error) { return noLock{}, nil }

func (o *overlay) List(dir string) ([]string, error) {
	var names []string
	inMem, memErr := o.mem.List(dir)
	if memErr == nil {
		names = append(names, inMem...)
	}
	baseErr := notExist("open", dir)
	if !o.hidden(dir) {
		var inBase []string
		if inBase, baseErr = o.FS.List(dir); baseErr == nil {
			for _, n := range inBase {
				if !o.hidden(o.FS.PathJoin(dir, n)) {
					names = append(names, n)
				}
			}
		}
	}
	if memErr != nil && baseErr != nil {
		return nil, baseErr
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], "/")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (o *overlay) Stat(name string) (vfs.FileInfo, error) {
	if o.inMem(name) {
		return o.mem.Stat(name)
	}
	if o.hidden(name) {
		return nil, notExist("stat", name)
	}
	return o.FS.Stat(name)
}

// Unwrap ends here: an overlay is not the operating system's filesystem, and needs no locks.
// GetDiskUsage is that of the disk below; a directory that is in memory only has its parent's.
func (o *overlay) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	for {
		usage, err := o.FS.GetDiskUsage(path)
		parent := o.FS.PathDir(path)
		if err == nil || parent == path {
			return usage, err
		}
		path = parent
	}
}

func (o *overlay) Unwrap() vfs.FS { return nil }
