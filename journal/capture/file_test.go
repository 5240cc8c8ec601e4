package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/klauspost/compress/zstd"
)

func put(t testing.TB, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Clone(data)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(fs vfs.FS, path string, records []Record) error {
	w, err := Create(fs, path)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if err := w.Write(rec); err != nil {
			w.Close()
			return err
		}
	}
	return w.Close()
}

func read(fs vfs.FS, path string) ([]Record, error) {
	f, err := Open(fs, path)
	if err != nil {
		return nil, err
	}
	records, err := readAll(f.Reader)
	return records, errors.Join(err, f.Close())
}

func TestFileRoundTrip(t *testing.T) {
	const seed = 2
	records := append(sample(), random(rand.New(rand.NewPCG(seed, 0)), 100)...)
	for name, fs := range map[string]vfs.FS{"mem": vfs.NewMem(), "disk": vfs.Default} {
		dir := ""
		if name == "disk" {
			dir = t.TempDir() + "/"
		}
		for _, path := range []string{dir + "a.kvcap", dir + "a.kvcap.zst"} {
			for range 2 { // the second replaces the first
				if err := write(fs, path, records); err != nil {
					t.Fatal(err)
				}
			}
			got, err := read(fs, path)
			if err != nil || !reflect.DeepEqual(got, records) {
				t.Fatalf("%s: other records than written (seed %d, error %v)", path, seed, err)
			}
		}
	}
}

// Compression is told by the bytes: a renamed file opens, and so do zstd's skippable frames before the data.
func TestOpenGoesByTheBytes(t *testing.T) {
	fs := vfs.NewMem()
	records := sample()
	if err := write(fs, "a.kvcap", records); err != nil {
		t.Fatal(err)
	}
	if err := write(fs, "b.kvcap.zst", records); err != nil {
		t.Fatal(err)
	}
	put(t, fs, "renamed.kvcap.zst", get(t, fs, "a.kvcap"))
	put(t, fs, "renamed.kvcap", get(t, fs, "b.kvcap.zst"))
	put(t, fs, "skippable", append([]byte("\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"), get(t, fs, "b.kvcap.zst")...))
	for _, path := range []string{"renamed.kvcap", "renamed.kvcap.zst", "skippable"} {
		if got, err := read(fs, path); err != nil || !reflect.DeepEqual(got, records) {
			t.Errorf("%s: other records than written (error %v)", path, err)
		}
	}
}

func TestFlushIsReadable(t *testing.T) {
	for _, path := range []string{"a.kvcap", "a.kvcap.zst"} {
		fs := vfs.NewMem()
		w, err := Create(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(sample()[1]), w.Flush()); err != nil {
			t.Fatal(err)
		}
		f, err := Open(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		if err := f.Next(&rec); err != nil || !reflect.DeepEqual(rec, sample()[1]) {
			t.Errorf("%s: %v, error %v", path, rec, err)
		}
		f.Close()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// After Close the capture is on the disk: file and name.
func TestCloseSyncs(t *testing.T) {
	for _, path := range []string{"a.kvcap", "a.kvcap.zst"} {
		fs := vfs.NewCrashableMem()
		if err := write(fs, path, sample()); err != nil {
			t.Fatal(err)
		}
		got, err := read(fs.CrashClone(vfs.CrashCloneCfg{}), path)
		if err != nil || !reflect.DeepEqual(got, sample()) {
			t.Errorf("%s after a loss of power: %d records, error %v", path, len(got), err)
		}
	}
}

// Every truncation of a compressed capture is an error, and gives no record that was not written.
func TestEveryCompressedTruncation(t *testing.T) {
	fs := vfs.NewMem()
	if err := write(fs, "a.zst", sample()); err != nil {
		t.Fatal(err)
	}
	data := get(t, fs, "a.zst")
	for n := range data {
		put(t, fs, "cut", data[:n])
		got, err := read(fs, "cut")
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) && !errors.Is(err, ErrNotCapture) {
			t.Fatalf("%d of %d bytes: error %v", n, len(data), err)
		}
		if len(got) > 0 && !reflect.DeepEqual(got, sample()[:len(got)]) {
			t.Fatalf("%d of %d bytes: invented records", n, len(data))
		}
	}
}

func TestCompressedDamage(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	records := random(rng, 20)
	fs := vfs.NewMem()
	if err := write(fs, "a.zst", records); err != nil {
		t.Fatal(err)
	}
	data := get(t, fs, "a.zst")
	for range 200 {
		bad := bytes.Clone(data)
		at := 4 + rng.IntN(len(bad)-4)
		bad[at] ^= 1 << rng.IntN(8)
		put(t, fs, "bad", bad)
		got, err := read(fs, "bad")
		var corrupt *CorruptError
		// A flipped bit in the unused bits of a frame header changes nothing: then all must be right.
		if err == nil && reflect.DeepEqual(got, records) {
			continue
		}
		if !errors.As(err, &corrupt) && !errors.Is(err, ErrNotCapture) {
			t.Fatalf("seed %d, byte %d damaged: error %v", seed, at, err)
		}
	}
	// Garbage behind the compressed data.
	put(t, fs, "tail", append(bytes.Clone(data), "garbage"...))
	got, err := read(fs, "tail")
	if !strings.Contains(fmt.Sprint(err), "compressed data is damaged") || !reflect.DeepEqual(got, records) {
		t.Fatalf("garbage behind the end: %v", err)
	}
}

// A few bytes of zstd can claim gigabytes: the limits hold behind the decompressor too.
func TestCompressedBomb(t *testing.T) {
	var out bytes.Buffer
	z, _ := zstd.NewWriter(&out)
	io.WriteString(z, "KVCAP001\x01\x00\x00\x00\x00\x00\x00\x00\x09\x01\x08\x00\x00\x00")
	z.Write(make([]byte, 128<<20))
	z.Close()
	fs := vfs.NewMem()
	put(t, fs, "bomb.zst", out.Bytes())
	f, err := OpenLimits(fs, "bomb.zst", Limits{FrameBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var corrupt *CorruptError
	if err := f.Next(new(Record)); !errors.As(err, &corrupt) || !strings.Contains(corrupt.What, "claims 134217728 bytes") {
		t.Fatal(err)
	}
	if read, size := f.Progress(); size != int64(out.Len()) || read > size || read == 0 {
		t.Errorf("progress %d of %d", read, size)
	}
}

// The i-th file operation fails, for every i: an error comes up, it is that error and no corruption, and
// a capture that Close called good is good.
func TestEveryFileOperationFails(t *testing.T) {
	const seed = 4
	records := random(rand.New(rand.NewPCG(seed, 0)), 60)
	for _, path := range []string{"a.kvcap", "a.kvcap.zst"} {
		for i := int32(0); ; i++ {
			mem := vfs.NewMem()
			err := write(failAt(mem, i), path, records)
			if err == nil {
				if i < 5 { // create, write, sync, open directory, sync directory
					t.Fatalf("%s: writing took only %d operations", path, i)
				}
				break
			}
			if !errors.Is(err, errInjected) {
				t.Fatalf("%s, writing, operation %d: %v", path, i, err)
			}
		}
		mem := vfs.NewMem()
		if err := write(mem, path, records); err != nil {
			t.Fatal(err)
		}
		for i := int32(0); ; i++ {
			got, err := read(failAt(mem, i), path)
			if err == nil {
				if i < 3 || !reflect.DeepEqual(got, records) {
					t.Fatalf("%s: reading took only %d operations", path, i)
				}
				break
			}
			var corrupt *CorruptError
			if !errors.Is(err, errInjected) || errors.As(err, &corrupt) {
				t.Fatalf("%s, reading, operation %d: %v", path, i, err)
			}
		}
	}
}

func TestOpenErrorsNameThePath(t *testing.T) {
	fs := vfs.NewMem()
	put(t, fs, "x.kvcap", []byte("hello world"))
	for _, path := range []string{"x.kvcap", "missing.kvcap"} {
		if _, err := Open(fs, path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

var errInjected = errors.New("injected error")

// failAt gives fs with its i-th operation failing.
func failAt(fs vfs.FS, i int32) vfs.FS {
	at := errorfs.OnIndex(i)
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if at.MaybeError(op) != nil {
			return errInjected
		}
		return nil
	}))
}
