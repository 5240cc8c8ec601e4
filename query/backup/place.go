package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// place is where a copy is made.
type place struct {
	fs   vfs.FS
	dir  string // filled: NAME.partial of a backup, the directory itself of a restore
	lock *datadir.Lock
	// keep: the directory was there before, and stays where the copy fails.
	keep bool
}

const partialSuffix = ".partial"

// partialOf claims the place beside to where a backup of dir is made.
func partialOf(ctx context.Context, fs vfs.FS, dir, to string) (*place, error) {
	if err := apart(dir, to); err != nil {
		return nil, err
	}
	if err := free(fs, to); err != nil {
		return nil, err
	}
	if _, err := fs.Stat(fs.PathDir(to)); err != nil {
		return nil, fmt.Errorf("%s: the directory that a backup is put into must be there: %w", fs.PathDir(to), err)
	}
	p := &place{fs: fs, dir: to + partialSuffix}
	if err := p.claim(ctx, dir); err != nil {
		return nil, err
	}
	if err := free(fs, to); err != nil { // another backup ended in the meantime
		p.lock.Release()
		return nil, err
	}
	return p, nil
}

// claim makes p.dir, locks it, and begins a copy of from in it.
func (p *place) claim(ctx context.Context, from string) error {
	if names, err := p.fs.List(p.dir); err == nil {
		if !datadir.Fillable(names) {
			return fmt.Errorf("%s is there and is not empty; name another directory, or remove it first", p.dir)
		}
		p.keep = !strings.HasSuffix(p.dir, partialSuffix)
	}
	if err := datadir.MakeDir(p.fs, p.dir); err != nil {
		return fmt.Errorf("making %s: %w", p.dir, err)
	}
	lock, err := datadir.Claim(ctx, p.fs, p.dir, "a copy of "+from)
	if errors.Is(err, datadir.ErrLocked) {
		return fmt.Errorf("another copy is being written to %s: wait for it, or name another directory", p.dir)
	}
	if err != nil {
		return err
	}
	p.lock = lock
	if err := datadir.Begin(p.fs, p.dir, from); err != nil {
		p.abandon()
		return err
	}
	return nil
}

// abandon removes what was copied.
func (p *place) abandon() {
	remove := []string{p.dir}
	if names, err := p.fs.List(p.dir); err == nil && p.keep {
		remove = remove[:0]
		for _, name := range names {
			remove = append(remove, p.fs.PathJoin(p.dir, name))
		}
	}
	for _, path := range remove {
		_ = p.fs.RemoveAll(path) // what stays has no gate, and the next copy clears it away
	}
	p.lock.Release()
}

// free fails where something is at to.
func free(fs vfs.FS, to string) error {
	_, err := fs.Stat(to)
	if err == nil {
		return fmt.Errorf("%s is there already; a backup goes to a new directory", to)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking for %s: %w", to, err)
	}
	return nil
}

// apart fails where one of the two directories lies in the other.
func apart(dir, other string) error {
	a, b := resolved(dir), resolved(other)
	if within(a, b) || within(b, a) {
		return fmt.Errorf("%s and %s lie one in the other; name a directory outside", dir, other)
	}
	return nil
}

// within reports whether b is a, or lies in it. Both are clean.
func within(a, b string) bool {
	return a == b || strings.HasPrefix(b, strings.TrimSuffix(a, string(filepath.Separator))+string(filepath.Separator))
}

// resolved is a path without symbolic links, as far as it exists.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return filepath.Clean(path)
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// margin is what must stay free on the volume of a copy: its index is brought up there.
const margin = 64 << 20

// room fails where need bytes more would not fit.
func room(fs vfs.FS, dir string, need uint64) error {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil || usage.AvailBytes >= need+margin {
		return nil // where it cannot be asked, the copy finds out
	}
	return fmt.Errorf("no room at %s: the copy takes %d MiB and leaves %d MiB free at least, and %d MiB are free", dir, need>>20, margin>>20, usage.AvailBytes>>20)
}
