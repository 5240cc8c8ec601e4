package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
)

// maxWindowBytes bounds what a compressed capture can make the decompressor allocate; `zstd --long`
// writes windows of 128 MiB, everything below --ultra much smaller ones.
const maxWindowBytes = 128 << 20

// File is a capture opened for reading.
type File struct {
	*Reader
	source *source
	zstd   *zstd.Decoder // nil if the file is not compressed
}

// Open opens the capture at path with the default Limits.
//
// Errors name the path; they are ErrNotCapture, ErrUnknownVersion, a *CorruptError (of compressed data), or the file system's.
func Open(fs vfs.FS, path string) (*File, error) { return OpenLimits(fs, path, Limits{}) }

// OpenLimits is Open with other limits.
func OpenLimits(fs vfs.FS, path string, limits Limits) (_ *File, err error) {
	file, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	f := &File{source: &source{file: file}}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("open capture %s: %w", path, err)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	f.source.size = info.Size()
	var head [4]byte
	n, err := io.ReadFull(f.source, head[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	stream := io.MultiReader(bytes.NewReader(head[:n]), f.source)
	if isZstd(head[:n]) {
		f.zstd, err = zstd.NewReader(stream, zstd.WithDecoderMaxWindow(maxWindowBytes))
		if err != nil {
			return nil, err
		}
		stream = &decompressed{zstd: f.zstd, source: f.source}
	}
	f.Reader, err = NewReaderLimits(stream, limits)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Close closes the file. The frames of the last record stay valid.
func (f *File) Close() error {
	if f.zstd != nil {
		f.zstd.Close()
		f.zstd = nil
	}
	return f.source.file.Close()
}

// Progress says how many of the file's bytes were read from it, and how many it has: for progress displays.
func (f *File) Progress() (read, size int64) { return f.source.read.Load(), f.source.size }

// isZstd says whether head begins a zstd frame or one of zstd's skippable frames.
func isZstd(head []byte) bool {
	return bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}

// source is the file below the decompressor. It remembers the error of the file, so that a failing disk is
// not taken for damaged data.
type source struct {
	file   vfs.File
	size   int64
	read   atomic.Int64
	failed atomic.Pointer[error]
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.read.Add(int64(n))
	if err != nil && err != io.EOF {
		s.failed.Store(&err)
	}
	return n, err
}

// decompressed gives the decompressor's errors a type of their own.
type decompressed struct {
	zstd   *zstd.Decoder
	source *source
}

func (d *decompressed) Read(p []byte) (int, error) {
	n, err := d.zstd.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	if failed := d.source.failed.Load(); failed != nil {
		return n, *failed
	}
	return n, &compressionError{err}
}

type compressionError struct{ err error }

func (e *compressionError) Error() string {
	if errors.Is(e.err, io.ErrUnexpectedEOF) {
		return "compressed data is cut short"
	}
	return "compressed data is damaged: " + e.err.Error()
}

func (e *compressionError) Unwrap() error { return e.err }

// FileWriter is a capture being written to a file.
type FileWriter struct {
	*Writer
	fs     vfs.FS
	path   string
	file   vfs.File
	zstd   *zstd.Encoder // nil if the file is not compressed
	closed bool
	err    error // of Close
}

// Create creates the capture at path, replacing what was there; it is compressed if path ends in ".zst".
func Create(fs vfs.FS, path string) (*FileWriter, error) {
	file, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("create capture: %w", err)
	}
	f := &FileWriter{fs: fs, path: path, file: file}
	var w io.Writer = file
	if strings.HasSuffix(path, ".zst") {
		if f.zstd, err = zstd.NewWriter(file); err != nil {
			return nil, errors.Join(fmt.Errorf("create capture %s: %w", path, err), file.Close())
		}
		w = f.zstd
	}
	if f.Writer, err = NewWriter(w); err != nil {
		return nil, errors.Join(fmt.Errorf("create capture %s: %w", path, err), file.Close())
	}
	return f, nil
}

// Flush hands everything written so far to the file, so that a reader sees it. It survives a crash of the process
// then, not a loss of power.
func (f *FileWriter) Flush() error {
	if err := f.Writer.Flush(); err != nil || f.zstd == nil {
		return err
	}
	return f.zstd.Flush()
}

// Close flushes, syncs the file and its directory, and closes. After a nil error the capture survives a loss of
// power; after any other the file may be incomplete. Further calls return the same.
func (f *FileWriter) Close() error {
	if f.closed {
		return f.err
	}
	f.closed = true
	err := f.Writer.Flush()
	if f.zstd != nil {
		err = errors.Join(err, f.zstd.Close()) // in any case: it ends the encoder's goroutines
	}
	if err == nil {
		err = f.file.Sync()
	}
	if cerr := f.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = syncDir(f.fs, f.fs.PathDir(f.path))
	}
	if err != nil {
		f.err = fmt.Errorf("write capture %s: %w", f.path, err)
	}
	return f.err
}

func syncDir(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
