package measure

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// DataBytes is what the files under dir hold: space that was only set aside (a preallocated segment's rest) does not count. The files are
// in the page cache afterwards.
func DataBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		n, err := dataOf(path)
		total += n
		return err
	})
	return total, err
}

func dataOf(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	total, fd := int64(0), int(f.Fd())
	// What is in the page cache would count as data, if it is space set aside that somebody has read.
	if err := errors.Join(f.Sync(), unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)); err != nil {
		return 0, err
	}
	defer io.Copy(io.Discard, f)
	defer f.Seek(0, io.SeekStart)
	for at := int64(0); at < info.Size(); {
		begin, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return total, nil
		}
		if err != nil {
			return info.Size(), nil // a filesystem without holes
		}
		if at, err = unix.Seek(fd, begin, unix.SEEK_HOLE); err != nil {
			return 0, err
		}
		total += at - begin
	}
	return total, nil
}

// crashTries is how often a copy is begun anew because files changed meanwhile.
const crashTries = 200

// CopyCrashed copies a directory that is open, as a crash of the process would leave it: all files as they are at one moment. The owner
// must be at rest but for background work; where that changes files meanwhile the copy is made again.
func CopyCrashed(from, to string) error {
	for range crashTries {
		before, err := listing(from)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		err = os.CopyFS(to, os.DirFS(from))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		after, lerr := listing(from)
		if lerr != nil {
			return lerr
		}
		if err == nil && slices.Equal(before, after) {
			return nil
		}
	}
	return fmt.Errorf("%s changes all the time", from)
}

// listing is every file with its size and the time of its last change.
func listing(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			out = append(out, path) // gone meanwhile; the next listing differs
			return nil
		}
		if err == nil {
			out = append(out, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
		}
		return err
	})
	return out, err
}
