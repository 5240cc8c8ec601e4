package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// unfinishedFile stands in the gate's place, with its text, while a directory is filled by a copy.
	unfinishedFile = gateFile + ".unfinished"
	// BackupFile marks a backup, and tells what is in it.
	BackupFile = "backup.json"
)

// refuseBackup keeps writers out of a backup: what they would append under the id of the journal that it is a copy of would make two
// journals of one id, and the backup none any more.
func refuseBackup(fs vfs.FS, dir string) error {
	_, err := fs.Stat(fs.PathJoin(dir, BackupFile))
	if err == nil {
		return fmt.Errorf("%s: %w, and is not written to: `kvjournal restore --from %s --dir NEWDIR` makes a directory of it that is", dir, ErrBackup, dir)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	return nil
}

// Begin makes dir, which is missing, empty, or left by a copy that did not end, the place of a copy of the data directory from, and empties
// it but for the locks. Until Finish it is no data directory. The caller holds the claim of dir.
func Begin(fs vfs.FS, dir, from string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	if !Fillable(names) {
		return fmt.Errorf("%s is not empty: it holds %s", dir, sample(names))
	}
	gate, err := readGate(fs, from)
	if err != nil {
		return err
	}
	if err := WriteFile(fs, dir, unfinishedFile, gate); err != nil {
		return err
	}
	for _, name := range names {
		if isLock(name) || name == unfinishedFile {
			continue
		}
		if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("emptying %s, left by a copy that did not end: %w", dir, err)
		}
	}
	return SyncDir(fs, dir)
}

// Fillable reports whether a directory with these names in it may be filled by a copy: it is empty, or the rest of a copy that did
// not end.
func Fillable(names []string) bool {
	if slices.Contains(names, gateFile) {
		return false
	}
	if slices.Contains(names, unfinishedFile) {
		return true
	}
	for _, name := range names {
		if !isLock(name) && name != unfinishedFile+tmpSuffix {
			return false
		}
	}
	return true
}

func isLock(name string) bool { return name == claimFile || name == accessFile }

// Finish makes dir, begun with Begin, a data directory of the format of the one it is a copy of, or of the format given, if that is newer:
// the original may have been raised since Begin. It is the last step of a copy, and one that happens whole or not at all.
func Finish(fs vfs.FS, dir string, format int) error {
	begun, err := readText(fs, fs.PathJoin(dir, unfinishedFile))
	if err != nil {
		return err
	}
	for older := FormatWhole; older < format; older++ {
		if string(begun) == string(gateText(older)) {
			if err := WriteFile(fs, dir, unfinishedFile, gateText(format)); err != nil {
				return err
			}
			break
		}
	}
	if err := SyncDir(fs, dir); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, unfinishedFile), fs.PathJoin(dir, gateFile)); err != nil {
		return fmt.Errorf("finishing %s: %w", dir, err)
	}
	return SyncDir(fs, dir)
}

func readGate(fs vfs.FS, dir string) ([]byte, error) {
	if err := Check(fs, dir); err != nil {
		return nil, err
	}
	return readText(fs, fs.PathJoin(dir, gateFile))
}

func readText(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return b, nil
}
