package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the directory's layout that this program writes and reads.
const Format = 1

const (
	gateFile   = "KVJOURNAL"
	gatePrefix = "kvjournal data directory, format "
	tmpSuffix  = ".tmp"
)

// Errors by cause; test with errors.Is.
var (
	// ErrForeign: the directory holds something that is no kvjournal data.
	ErrForeign = errors.New("not a kvjournal data directory")
	// ErrNewer: the directory was written by a newer kvjournal.
	ErrNewer = errors.New("written by a newer kvjournal")
	// ErrLocked: another process is writing to the directory.
	ErrLocked = errors.New("in use by another process")
	// ErrMissing: there is no data directory at that path.
	ErrMissing = errors.New("no kvjournal data here")
)

// Check reads the gate of dir. It changes nothing.
func Check(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the data directory %s: %w", dir, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (give --dir the directory that `kvjournal record` or `kvjournal import` wrote to)", dir, ErrMissing)
	}
	f, err := fs.Open(fs.PathJoin(dir, gateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", fs.PathJoin(dir, gateFile), err)
	}
	if err != nil {
		if len(names) == 0 || len(names) == 1 && names[0] == gateFile+tmpSuffix { // Prepare was cut short
			return fmt.Errorf("%s is empty: %w", dir, ErrMissing)
		}
		return fmt.Errorf("%s: %w: it holds %s but no %s file; give --dir an empty or a new directory", dir, ErrForeign, sample(names), gateFile)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return fmt.Errorf("reading %s: %w", fs.PathJoin(dir, gateFile), err)
	}
	rest, ok := strings.CutPrefix(string(b), gatePrefix)
	var version int
	if _, err := fmt.Sscanf(rest, "%d", &version); !ok || err != nil || version < 1 {
		return fmt.Errorf("%s: %w: its %s file says %q", dir, ErrForeign, gateFile, b)
	}
	if version > Format {
		return fmt.Errorf("%s: %w: format %d, this program reads up to %d; use the newer program", dir, ErrNewer, version, Format)
	}
	return nil
}

func sample(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%q and %d more", names[:3], len(names)-3)
	}
	return fmt.Sprintf("%q", names)
}

// Prepare makes dir a data directory if it is missing or empty, and checks its gate otherwise.
func Prepare(fs vfs.FS, dir string) error {
	err := Check(fs, dir)
	if err == nil || !errors.Is(err, ErrMissing) {
		return err
	}
	if err := makeDir(fs, dir); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return WriteFile(fs, dir, gateFile, fmt.Appendf(nil, "%s%d\n", gatePrefix, Format))
}

// makeDir makes dir and syncs what is above it, up to a directory that was there before: else a crash of the machine
// could take dir away with all that was synced in it.
func makeDir(fs vfs.FS, dir string) error {
	var above []string
	for p := fs.PathDir(dir); ; p = fs.PathDir(p) {
		above = append(above, p)
		if _, err := fs.Stat(p); err == nil || fs.PathDir(p) == p {
			break
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range above {
		// A directory that may be passed but not read cannot be synced; it was there before.
		if err := SyncDir(fs, p); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

// WriteFile replaces dir/name by content, so that after a crash the file is the old one or the new one, and synced.
func WriteFile(fs vfs.FS, dir, name string, content []byte) error {
	tmp, path := fs.PathJoin(dir, name+tmpSuffix), fs.PathJoin(dir, name)
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err == nil {
		err = SyncDir(fs, dir)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// SyncDir makes sure that what was made, renamed or removed in dir survives a crash.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
