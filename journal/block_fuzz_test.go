package journal

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func seedRecords() []rec {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := make([]rec, 40)
	for i := range recs {
		recs[i] = anyRecord(rng)
	}
	return recs
}

// FuzzDecodeTable: any bytes and any counts give records or an error, in memory proportional to the bytes.
func FuzzDecodeTable(f *testing.F) {
	for n := range 5 {
		recs := seedRecords()[:n*n]
		var w tableWriter
		total := 0
		for i := range recs {
			size := 0
			for _, fr := range recs[i].frames {
				size += len(fr)
			}
			total += size
			w.add(&recs[i].header, false, recs[i].frames, size)
		}
		f.Add(w.appendTo(nil), uint32(len(recs)), uint32(total))
	}
	f.Fuzz(func(t *testing.T, table []byte, count, payloadLen uint32) {
		var entries []entry
		var err error
		used := allocated(func() { entries, err = decodeTable(nil, table, int(count), int(payloadLen)) })
		// An entry is about 220 bytes and takes two bytes of the table at least; append doubles.
		if limit := 1<<16 + 1000*uint64(len(table)); used > limit {
			t.Fatalf("%d bytes allocated for a table of %d bytes", used, len(table))
		}
		if err != nil {
			return
		}
		if len(entries) != int(count) {
			t.Fatalf("%d entries, want %d", len(entries), count)
		}
		at := 0
		for i := range entries {
			e := &entries[i]
			if e.start != at || e.length < 0 {
				t.Fatalf("entry %d begins at %d, want %d", i, e.start, at)
			}
			at += e.length
		}
		if at != int(payloadLen) {
			t.Fatalf("entries hold %d bytes, want %d", at, payloadLen)
		}
	})
}

// FuzzDecodeBlock: as FuzzDecodeTable, for a whole block whose checksum fits.
func FuzzDecodeBlock(f *testing.F) {
	c, err := newCodec()
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{1, 2, 5, 40} {
		b := buildBlock(c, 1, seedRecords()[:n])
		f.Add(b[:len(b)-4])
	}
	for _, counts := range [][4]uint64{{1 << 60, 10, 10, 10}, {5, 1 << 31, 3, 1 << 31}, {1, 9, 9, 1 << 31}, {9, 9, 1 << 62, 0}, {1 << 31, 1 << 31, 9, 1 << 31}} {
		b := []byte{blockVersion, 0}
		for _, v := range counts {
			b = binary.AppendUvarint(b, v)
		}
		f.Add(append(b, make([]byte, 30)...))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		used := allocated(func() { readRechecksummed(t, body, c) })
		// A zstd frame may hold 128 KiB in 4 bytes.
		if limit := 4<<20 + (128<<10)*uint64(len(body)); used > limit {
			t.Fatalf("%d bytes allocated for a block of %d bytes", used, len(body))
		}
	})
}
