package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the newest version of the directory's layout that this program reads and writes.
const Format = 2

// What a directory holds decides which format its gate names: a new one begins with the first.
const (
	// FormatWhole: a journal from offset 1 on.
	FormatWhole = 1
	// FormatPruned: the journal may begin with a baseline. A program that does not know baselines would compute an index of what
	// lies behind it, and answer wrongly.
	FormatPruned = 2
)

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
	// ErrBackup: the directory is a backup, which is read and restored, and not written to.
	ErrBackup = errors.New("this is a backup")
	// ErrMissing: there is no data directory at that path.
	ErrMissing = errors.New("no kvjournal data here")
)

// Check reads the gate of dir. It changes nothing.
func Check(fs vfs.FS, dir string) error {
	_, err := version(fs, dir, Format)
	return err
}

// version returns the format of dir, if a program that knows all formats up to newest may read it.
func version(fs vfs.FS, dir string, newest int) (int, error) {
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("reading the data directory %s: %w", dir, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w (give --dir the directory that `kvjournal record` or `kvjournal import` wrote to)", dir, ErrMissing)
	}
	f, err := fs.Open(fs.PathJoin(dir, gateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("reading %s: %w", fs.PathJoin(dir, gateFile), err)
	}
	if err != nil {
		if len(names) == 0 || len(names) == 1 && names[0] == gateFile+tmpSuffix { // Prepare was cut short
			return 0, fmt.Errorf("%s is empty: %w", dir, ErrMissing)
		}
		if slices.Contains(names, unfinishedFile) {
			return 0, fmt.Errorf("%s: %w: a restore into it did not end; run it again, or remove the directory", dir, ErrForeign)
		}
		return 0, fmt.Errorf("%s: %w: it holds %s but no %s file; give --dir the directory of a recorder, or, to write to, an empty or a new one", dir, ErrForeign, sample(names), gateFile)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", fs.PathJoin(dir, gateFile), err)
	}
	rest, ok := strings.CutPrefix(string(b), gatePrefix)
	var format int
	if _, err := fmt.Sscanf(rest, "%d", &format); !ok || err != nil || format < 1 {
		return 0, fmt.Errorf("%s: %w: its %s file says %q", dir, ErrForeign, gateFile, b)
	}
	if format > newest {
		return 0, fmt.Errorf("%s: %w: format %d, this program reads up to %d; use the newer program", dir, ErrNewer, format, newest)
	}
	return format, nil
}

func sample(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%q and %d more", names[:3], len(names)-3)
	}
	return fmt.Sprintf("%q", names)
}

// Prepare makes dir a data directory to write to if it is missing or empty, and checks its gate otherwise.
func Prepare(fs vfs.FS, dir string) error {
	err := Check(fs, dir)
	if err == nil {
		return refuseBackup(fs, dir)
	}
	if !errors.Is(err, ErrMissing) {
		return err
	}
	if err := MakeDir(fs, dir); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return WriteFile(fs, dir, gateFile, gateText(FormatWhole))
}

// MakeDir makes dir and syncs what is above it, up to a directory that was there before: else a crash of the machine
// could take dir away with all that was synced in it.
func MakeDir(fs vfs.FS, dir string) error {
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
	f, err := Private(fs).Create(tmp, vfs.WriteCategoryUnspecified)
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
