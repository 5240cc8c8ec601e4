package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func encode(t testing.TB, records ...Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll returns copies of all records, and what ended the reading (nil at a clean end).
func readAll(r *Reader) (records []Record, err error) {
	var rec Record
	for {
		if err := r.Next(&rec); err == io.EOF {
			return records, nil
		} else if err != nil {
			return records, err
		}
		records = append(records, clone(rec))
	}
}

func clone(rec Record) Record {
	if rec.Kind == Message {
		frames := make([][]byte, len(rec.Frames))
		for i, f := range rec.Frames {
			frames[i] = append([]byte{}, f...)
		}
		rec.Frames = frames
	}
	return rec
}

func sample() []Record {
	return []Record{
		{Kind: Connected, Received: 1},
		{Kind: Message, Received: 1_700_000_000_123_456_789, Frames: [][]byte{{}, {0, 0, 0, 0, 0, 0, 0, 1}, []byte("payload")}},
		{Kind: Message, Received: 2, Frames: [][]byte{{}}},
		{Kind: Message, Received: 3, Frames: [][]byte{}},
		{Kind: Disconnected, Received: -5},
		{Kind: Message, Received: math.MinInt64, Frames: [][]byte{[]byte("a"), []byte("bc")}},
		{Kind: Connected, Received: math.MaxInt64},
	}
}

func random(rng *rand.Rand, n int) []Record {
	records := make([]Record, n)
	for i := range records {
		rec := Record{Kind: Kind(1 + rng.IntN(3)), Received: rng.Int64()}
		if rec.Kind == Message {
			rec.Frames = make([][]byte, rng.IntN(256))
			for j := range rec.Frames {
				size := rng.IntN(200)
				if rng.IntN(2000) == 0 {
					size = rng.IntN(1 << 20)
				}
				rec.Frames[j] = make([]byte, size)
				for k := range rec.Frames[j] {
					rec.Frames[j][k] = byte(rng.Uint32())
				}
			}
		}
		records[i] = rec
	}
	return records
}

// The layout is pinned byte by byte: old captures must stay readable.
func TestBytes(t *testing.T) {
	got := encode(t,
		Record{Kind: Connected, Received: 0x0102030405060708},
		Record{Kind: Message, Received: 9, Frames: [][]byte{{}, {0xaa, 0xbb}}},
		Record{Kind: Disconnected, Received: -1})
	want := "KVCAP001" +
		"\x02\x01\x02\x03\x04\x05\x06\x07\x08" +
		"\x01\x00\x00\x00\x00\x00\x00\x00\x09\x02\x00\x00\x00\x00\x00\x00\x00\x02\xaa\xbb" +
		"\x03\xff\xff\xff\xff\xff\xff\xff\xff"
	if string(got) != want {
		t.Fatalf("wrote %q\nwant  %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	const seed = 1
	for name, records := range map[string][]Record{
		"none":                         nil,
		"sample":                       sample(),
		fmt.Sprintf("random %d", seed): random(rand.New(rand.NewPCG(seed, 0)), 200),
	} {
		data := encode(t, records...)
		for how, in := range map[string]io.Reader{
			"whole":            bytes.NewReader(data),
			"byte by byte":     iotest.OneByteReader(bytes.NewReader(data)),
			"EOF with the end": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			r, err := NewReader(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(r)
			if err != nil || !reflect.DeepEqual(got, records) {
				t.Fatalf("%s, %s: other records than written (error %v)", name, how, err)
			}
			if r.Offset() != int64(len(data)) {
				t.Errorf("%s, %s: Offset %d behind all, want %d", name, how, r.Offset(), len(data))
			}
		}
	}
}

// Every prefix of a capture gives the records that are whole in it, and then a clean end exactly at
// the record boundaries.
func TestEveryTruncation(t *testing.T) {
	records := sample()
	data := encode(t, records...)
	boundaries := map[int]int{len(magic): 0} // length → records in it
	for i := range records {
		boundaries[len(encode(t, records[:i+1]...))] = i + 1
	}
	whole, lastBoundary := 0, len(magic)
	for n := range len(data) + 1 {
		r, err := NewReader(bytes.NewReader(data[:n]))
		if n < len(magic) {
			if !errors.Is(err, ErrNotCapture) {
				t.Fatalf("%d bytes: %v, want ErrNotCapture", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		got, err := readAll(r)
		count, clean := boundaries[n]
		if clean {
			whole, lastBoundary = count, n
			if err != nil {
				t.Errorf("%d bytes, a record boundary: %v", n, err)
			}
		} else {
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || !errors.Is(err, io.ErrUnexpectedEOF) || corrupt.Offset != int64(n) || corrupt.Record != int64(lastBoundary) {
				t.Errorf("%d bytes: %v, want a CorruptError there, in the record at %d", n, err, lastBoundary)
			}
		}
		if len(got) != whole {
			t.Errorf("%d bytes: %d records, want %d", n, len(got), whole)
		}
		if r.Offset() != int64(lastBoundary) {
			t.Errorf("%d bytes: Offset %d, want %d", n, r.Offset(), lastBoundary)
		}
		if again := r.Next(new(Record)); again != err && (err != nil || again != io.EOF) {
			t.Errorf("%d bytes: a further Next gives %v, want %v again", n, again, err)
		}
	}
}

func TestErrors(t *testing.T) {
	connected := "KVCAP001\x02\x00\x00\x00\x00\x00\x00\x00\x09"
	message := connected + "\x01\x00\x00\x00\x00\x00\x00\x00\x09"
	errDisk := errors.New("disk on fire")
	for _, c := range []struct {
		name   string
		in     io.Reader
		limits Limits
		is     error  // nil: a *CorruptError
		says   string // part of the message
	}{
		{"empty", strings.NewReader(""), Limits{}, ErrNotCapture, "only 0 bytes"},
		{"text", strings.NewReader("#!/bin/sh\n"), Limits{}, ErrNotCapture, `"#!/bin/s"`},
		{"newer version", strings.NewReader("KVCAP002"), Limits{}, ErrUnknownVersion, `"KVCAP002"`},
		{"kind", strings.NewReader(connected + "\x07"), Limits{}, nil, "at byte 17 (in the record at byte 17): unknown record kind 7"},
		{"kind 0", strings.NewReader(connected + strings.Repeat("\x00", 100)), Limits{}, nil, "unknown record kind 0"},
		{"cut", strings.NewReader(message + "\x02\x00\x00\x00\x00\x00\x00\x00\x05abc"), Limits{}, nil,
			"at byte 38 (in the record at byte 17): cut short in frame 2 of 2, behind 3 of its 5 bytes"},
		{"frame limit", strings.NewReader(message + "\x01\xff\xff\xff\xff"), Limits{}, nil,
			"at byte 27 (in the record at byte 17): frame 1 of 1 claims 4294967295 bytes, the limit is 268435456"},
		{"own frame limit", strings.NewReader(message + "\x01\x00\x00\x00\x02ab"), Limits{FrameBytes: 1}, nil, "claims 2 bytes, the limit is 1"},
		{"message limit", strings.NewReader(message + "\x02\x00\x00\x00\x02ab\x00\x00\x00\x02ab"), Limits{FrameBytes: 2, MessageBytes: 3}, nil,
			"at byte 33 (in the record at byte 17): frame 2 of 2 makes it a message of 4 bytes, the limit is 3"},
		{"disk at once", iotest.ErrReader(errDisk), Limits{}, errDisk, "at byte 0, in the magic"},
		{"disk later", io.MultiReader(strings.NewReader(message), iotest.ErrReader(errDisk)), Limits{}, errDisk, "at byte 26, in the frame count"},
		{"disk between", io.MultiReader(strings.NewReader(connected), iotest.ErrReader(errDisk)), Limits{}, errDisk, "at byte 17, in the record kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewReaderLimits(c.in, c.limits)
			if err == nil {
				_, err = readAll(r)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that says %q", err, c.says)
			}
			var corrupt *CorruptError
			if c.is != nil && !errors.Is(err, c.is) || errors.As(err, &corrupt) != (c.is == nil) {
				t.Fatalf("error %v is not of the wanted kind", err)
			}
		})
	}
}

// A length is a claim: memory follows the bytes that are there.
func TestAllocationFollowsTheBytes(t *testing.T) {
	bomb := []byte("KVCAP001\x01\x00\x00\x00\x00\x00\x00\x00\x09\xff\x0f\xff\xff\xffabc") // 255 frames, the first of 256 MiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := NewReader(bytes.NewReader(bomb))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(r); err == nil {
		t.Fatal("read a bomb")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Fatalf("%d bytes allocated for %d bytes of input", got, len(bomb))
	}
}

func TestReadingDoesNotAllocatePerRecord(t *testing.T) {
	frames := [][]byte{{}, make([]byte, 8), make([]byte, 28<<10)}
	var records []Record
	for range 300 {
		records = append(records, Record{Kind: Message, Frames: frames})
	}
	r, err := NewReader(bytes.NewReader(encode(t, records...)))
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if got := testing.AllocsPerRun(200, func() { r.Next(&rec) }); got != 0 {
		t.Fatalf("%v allocations a record", got)
	}
}

func TestUnwritable(t *testing.T) {
	var out bytes.Buffer
	w, _ := NewWriter(&out)
	for name, rec := range map[string]Record{
		"kind 0":           {},
		"kind 4":           {Kind: 4},
		"connected frames": {Kind: Connected, Frames: [][]byte{{}}},
		"256 frames":       {Kind: Message, Frames: make([][]byte, 256)},
	} {
		if err := w.Write(rec); !errors.Is(err, ErrUnwritable) {
			t.Errorf("%s: %v, want ErrUnwritable", name, err)
		}
	}
	if err := w.Write(Record{Kind: Connected}); err != nil { // still good
		t.Fatal(err)
	}
	w.Flush()
	if !bytes.Equal(out.Bytes(), encode(t, Record{Kind: Connected})) {
		t.Fatalf("refused records left bytes behind: %q", out.Bytes())
	}
}

// vfs.File may modify what it is given to write: a caller's frames must not be what it is given.
type scribbler struct{ bytes.Buffer }

func (s *scribbler) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	clear(p)
	return n, err
}

func TestWriterCopies(t *testing.T) {
	rec := Record{Kind: Message, Frames: [][]byte{bytes.Repeat([]byte("x"), 1<<20)}}
	var out scribbler
	w, _ := NewWriter(&out)
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(rec.Frames[0], 0) >= 0 {
		t.Fatal("the caller's frame was handed to the writer")
	}
	w.Flush()
	if !bytes.Equal(out.Bytes(), encode(t, rec)) {
		t.Fatal("other bytes than written")
	}
}

func FuzzReader(f *testing.F) {
	data := encode(f, sample()...)
	for n := range data {
		f.Add(data[:n+1])
	}
	f.Add([]byte("KVCAP001\x01\x00\x00\x00\x00\x00\x00\x00\x09\xff\x0f\xff\xff\xffabc"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := NewReaderLimits(bytes.NewReader(in), Limits{FrameBytes: 1 << 20})
		if err != nil {
			if !errors.Is(err, ErrNotCapture) {
				t.Fatalf("%v is not ErrNotCapture", err)
			}
			return
		}
		records, err := readAll(r)
		var corrupt *CorruptError
		if err != nil && (!errors.As(err, &corrupt) || corrupt.Record != r.Offset() || corrupt.Offset < corrupt.Record || corrupt.Offset > int64(len(in))) {
			t.Fatalf("%v, with %d bytes read whole of %d", err, r.Offset(), len(in))
		}
		if err == nil && r.Offset() != int64(len(in)) {
			t.Fatalf("a clean end at %d of %d", r.Offset(), len(in))
		}
		// The format is canonical: what was read whole is written as it was.
		if got := encode(t, records...); !bytes.Equal(got, in[:r.Offset()]) {
			t.Fatalf("rewritten as %q, was %q", got, in[:r.Offset()])
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{500, 28 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			frame := make([]byte, size)
			var records []Record
			for range 1000 {
				records = append(records, Record{Kind: Message, Frames: [][]byte{nil, binary.BigEndian.AppendUint64(nil, 1), frame}})
			}
			data := encode(b, records...)
			b.SetBytes(int64(len(data) / len(records)))
			b.ReportAllocs()
			var r *Reader
			var rec Record
			for i := range b.N {
				if i%len(records) == 0 {
					r, _ = NewReader(bytes.NewReader(data))
				}
				if err := r.Next(&rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
