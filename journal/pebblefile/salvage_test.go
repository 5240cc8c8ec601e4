package pebblefile

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestSalvage: of a table with damaged blocks, data or parts of the index, all else is saved, and the spans that cannot be read are those of
// which Pebble says the same, key by key.
func TestSalvage(t *testing.T) {
	const rows = 2000
	rng := testkit.RandomSource(t)
	for _, partitioned := range []bool{false, true} {
		o := options()
		for i := range o.Levels {
			o.Levels[i].IndexBlockSize = 128 << 10
			if partitioned {
				o.Levels[i].IndexBlockSize = 100
			}
		}
		whole, files := databaseWith(t, o, rows, false)
		path := "db/" + one(t, files, Table).Name
		f, err := whole.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pieces(f, pebble.DefaultComparer)
		if err != nil {
			t.Fatal(err)
		}
		h, err := indexOf(f)
		if err != nil {
			t.Fatal(err)
		}
		top, err := entries(f, h, pebble.DefaultComparer)
		f.Close()
		if err != nil || len(all) < 20 || partitioned != (len(top) < len(all)) {
			t.Fatalf("%d data blocks, %d in the top index, %v", len(all), len(top), err)
		}
		for range 12 {
			fs := vfs.NewMem()
			if _, err := vfs.Clone(whole, fs, "db", "db"); err != nil {
				t.Fatal(err)
			}
			var damaged []uint64 // the places of what is
			index := false
			for range 1 + rng.IntN(4) {
				p := all[rng.IntN(len(all))]
				if len(damaged) == 0 && partitioned && rng.IntN(2) == 0 {
					p, index = top[rng.IntN(len(top))], true
				}
				damaged = append(damaged, p.at.Offset)
				change(t, fs, path, func(b []byte) []byte { b[p.at.Offset+uint64(rng.IntN(int(p.at.Length)))] ^= 1 << rng.IntN(8); return b })
				if index {
					break
				}
			}
			compareSalvaged(t, fs, path, o, rows, index)
			if t.Failed() {
				t.Fatalf("damaged at %v, an index: %v", damaged, index)
			}
		}
	}
}

// compareSalvaged compares what is saved of a table with what Pebble reads of it. Where only the index is damaged, all is saved.
func compareSalvaged(t *testing.T, fs *vfs.MemFS, path string, o *pebble.Options, rows int, index bool) {
	spans, err := Unreadable(t.Context(), fs, path, o)
	if err != nil || len(spans) == 0 {
		t.Fatalf("unreadable: %q, %v", spans, err)
	}
	within := func(key string) bool {
		for _, s := range spans {
			if key > string(s.Low) && (s.High == nil || key <= string(s.High)) {
				return true
			}
		}
		return false
	}
	saved := map[string]bool{}
	if err := Salvage(t.Context(), fs, path, pebble.DefaultComparer, func(r Row) error {
		saved[string(r.Key)] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	table, err := OpenTable(fs, path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for i := range rows {
		key := fmt.Sprintf("k%04d", i)
		at, ok, err := table.Readable([]byte(key))
		readable := err == nil && ok && string(at) == key
		if readable == within(key) {
			t.Errorf("%s can be read: %v, %v; the spans are %q", key, readable, err, spans)
		}
		if saved[key] != (readable || index) {
			t.Errorf("%s can be read: %v, is saved: %v", key, readable, saved[key])
		}
	}
}
