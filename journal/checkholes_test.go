package journal

import (
	"bytes"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func TestOffsetAbove(t *testing.T) {
	for _, c := range []struct {
		key  string
		want uint64
		ok   bool
	}{
		{"", 0, true}, {"a", 0, true}, {"azzzzzzzzz", 0, true}, {"b", 0, true}, {"c", 0, false}, {"b\x01", 1 << 56, true},
		{string(blockKey(0)), 1, true}, {string(blockKey(41)), 42, true}, {string(blockKey(41)) + "x", 42, true},
		{string(blockKey(math.MaxUint64)), 0, false},
	} {
		got, ok := offsetAbove([]byte(c.key))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("above %q: %d, %v", c.key, got, ok)
		}
		if ok && (bytes.Compare(blockKey(got), []byte(c.key)) <= 0 || got > 0 && bytes.Compare(blockKey(got-1), []byte(c.key)) > 0) {
			t.Errorf("above %q: %d is not the first", c.key, got)
		}
	}
}

// TestCheckHoles: of damaged blocks each hole is named exactly, so that what lies between two of them is told to be there, and a repair keeps it.
func TestCheckHoles(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, compact := range []bool{false, true} {
		whole := vfs.NewMem()
		o := testOptions(whole)
		o.BlockRaw = 16 << 10
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 2), &model{}
		s.payload = 4000
		for range 4 {
			for range 12 {
				m.appendGroup(t, j, s, 8)
			}
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if compact {
			if err := j.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		}
		firsts := blockFirsts(t, j)
		stored := map[uint64][]byte{}
		for _, first := range firsts {
			v, err := j.get(blockKey(first))
			if err != nil {
				t.Fatal(err)
			}
			stored[first] = v
		}
		mustClose(t, j) // and no log is left, of which a repair would know more
		// A large block is alone in its block of the table, if the one before it is large. The last of a table is left out: to open a journal Pebble looks
		// at that of each table of L0, and of one that cannot be opened no hole is named, and all is left to the repair.
		var alone []int
		for i := 1; i < len(firsts)-1; i++ {
			if len(stored[firsts[i-1]]) > 4400 && len(stored[firsts[i]]) > 4400 && tableOf(t, whole, stored[firsts[i]]) == tableOf(t, whole, stored[firsts[i+1]]) {
				alone = append(alone, i)
			}
		}
		if len(alone) < 20 {
			t.Fatalf("only %d of %d blocks are large", len(alone), len(firsts))
		}
		for range 4 {
			o.FS = copied(t, whole)
			lost, blocks := map[uint64]bool{}, map[int]bool{}
			at := rng.IntN(len(alone) - 8)
			for range 2 + rng.IntN(3) { // close to each other
				blocks[alone[at+rng.IntN(8)]] = true
			}
			for i := range blocks {
				flipStored(t, o.FS, stored[firsts[i]], rng.IntN(len(stored[firsts[i]])))
				for offset := firsts[i]; offset < firsts[i+1]; offset++ {
					lost[offset] = true
				}
			}
			found, c := checked(t, o, testDir, 0)
			told := map[uint64]bool{}
			for _, f := range found {
				if f.Last == 0 {
					continue
				}
				for offset := f.Offset; offset <= f.Last; offset++ {
					told[offset] = true
				}
			}
			if int(c.Records)+len(lost) != len(m.recs) || !equalSets(told, lost) {
				t.Errorf("%d of %d records were read, %d of %d are told to be lost: %+v", c.Records, len(m.recs), len(told), len(lost), found)
			}
			if r := repaired(t, o, 0); int(r.Lost) != len(lost) {
				t.Errorf("%d are lost: %+v", len(lost), r)
			}
			checkRepaired(t, o, m, lost, 2)
			if t.Failed() {
				t.Fatalf("blocks %v of %v, compacted: %v", blocks, firsts, compact)
			}
		}
	}
}

func equalSets(a, b map[uint64]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// tableOf is the table that a block is stored in.
func tableOf(t *testing.T, fs vfs.FS, stored []byte) string {
	t.Helper()
	for _, path := range filesOf(t, fs, pebblefile.Table) {
		if bytes.Contains(testkit.ReadFile(t, fs, path), stored) {
			return path
		}
	}
	t.Fatal("a block lies in no table")
	return ""
}

// flipStored flips a bit of a block where it is stored in a table.
func flipStored(t *testing.T, fs vfs.FS, stored []byte, at int) {
	t.Helper()
	path := tableOf(t, fs, stored)
	b := testkit.ReadFile(t, fs, path)
	b[bytes.Index(b, stored)+at] ^= 1
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
