package journal

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// checked checks the journal and returns what was found.
func checked(t *testing.T, o Options, dir string, knownTo uint64) (found []Finding, c Checked) {
	t.Helper()
	j, c, err := Check(t.Context(), dir, indexedTo(o, knownTo), func(f Finding) { found = append(found, f) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if j != nil {
		mustClose(t, j)
	}
	// The payloads of these tests are none that a publisher sends.
	return slices.DeleteFunc(found, func(f Finding) bool {
		return strings.HasPrefix(f.What, "the message ") || strings.HasPrefix(f.What, "its content ") || strings.HasPrefix(f.What, "part of a reading ")
	}), c
}

const repairedDir = "/repaired"

func repaired(t *testing.T, o Options, knownTo uint64) Repaired {
	t.Helper()
	r, err := Repair(t.Context(), testDir, repairedDir, indexedTo(o, knownTo), nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := checked(t, o, repairedDir, 0); len(found) > 0 {
		t.Errorf("the repaired journal: %+v", found)
	}
	return r
}

// withoutBlocks deletes blocks of a closed journal, and all that would tell of them.
func withoutBlocks(t *testing.T, o Options, firsts ...uint64) {
	t.Helper()
	j := mustOpen(t, o, 0)
	for _, first := range firsts {
		if err := j.db.Delete(blockKey(first), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := j.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	for _, path := range filesOf(t, o.FS, pebblefile.Log) { // logs
		if err := o.FS.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckWhole: of a journal that is whole nothing is found, sealed or not, in logs or in tables.
func TestCheckWhole(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 3 {
		mem := vfs.NewMem()
		o := testOptions(mem)
		o.BlockRaw = 2000
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 3), &model{}
		for range 6 {
			m.appendMany(t, j, s, 60, 7)
			switch rng.IntN(3) {
			case 0:
				if err := j.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		mustClose(t, j)
		found, c := checked(t, o, testDir, 0)
		if len(found) > 0 || c.Records != uint64(len(m.recs)) || c.First != 1 || c.Last != m.last() {
			t.Errorf("%+v\n%+v", c, found)
		}
	}
}

// TestCheckRows: a row too few, too many or other than the blocks say is found, and named.
func TestCheckRows(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.BlockRaw = 500
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 200, 5)
	mustClose(t, j)
	for name, change := range map[string]func(db *pebble.DB) error{
		"a time row too many": func(db *pebble.DB) error { return db.Set(timeKey(1, 5, 1), nil, pebble.Sync) },
		"a place of no block": func(db *pebble.DB) error { return db.Set(placeKey(1, 99999), nil, pebble.Sync) },
		"a number too many":   func(db *pebble.DB) error { return db.Set(seqKey(1, 9, 9, 1), nil, pebble.Sync) },
		"a span":              func(db *pebble.DB) error { return db.Set(spanKey(1, 7), span{hi: 9}.value(), pebble.Sync) },
		"totals":              func(db *pebble.DB) error { return db.Set(metaTotals, (&Totals{Messages: 1}).encode(), pebble.Sync) },
		"a standing": func(db *pebble.DB) error {
			return db.Set(sourceKey(keyState, 1), (&Position{State: continuity.State{Epoch: 77}}).encode(), pebble.Sync)
		},
		"a source without name": func(db *pebble.DB) error { return db.Delete(sourceKey(keySource, 1), pebble.Sync) },
		"a place gone": func(db *pebble.DB) error {
			it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyPlace}, UpperBound: []byte{keyPlace + 1}})
			if err != nil {
				return err
			}
			defer it.Close()
			it.First()
			return db.Delete(slices.Clone(it.Key()), pebble.Sync)
		},
		"a block gone": func(db *pebble.DB) error {
			it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: []byte{keyBlock + 1}})
			if err != nil {
				return err
			}
			defer it.Close()
			it.First()
			it.Next()
			return db.Delete(slices.Clone(it.Key()), pebble.Sync)
		},
		"a block of another": func(db *pebble.DB) error {
			v, c, err := db.Get(blockKey(1))
			if err != nil {
				return err
			}
			defer c.Close()
			return db.Set(blockKey(m.last()+1), v, pebble.Sync)
		},
	} {
		c := o
		c.FS = copied(t, mem)
		p := c.pebble(c.FS)
		db, err := pebble.Open(c.FS.PathJoin(testDir, folder), p)
		if err == nil {
			err = change(db)
		}
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatal(name, err)
		}
		found, _ := checked(t, c, testDir, 0)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Severity == Damage && (f.Key != "" || f.Offset != 0) && f.Next != "" }) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestRepairHoles: whatever is gone, the rest keeps its offsets, and each source is marked in each hole.
func TestRepairHoles(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, sources := range []int{1, 3} {
		for _, group := range []int{1, 7} {
			o := testOptions(vfs.NewMem())
			o.BlockRaw = 300
			j := mustOpen(t, o, 0)
			s, m := newStream(t, rng, j, sources), &model{}
			m.appendMany(t, j, s, 200, group)
			firsts := blockFirsts(t, j)
			id := j.ID()
			mustClose(t, j)
			var gone []uint64
			for range 3 {
				gone = append(gone, firsts[1+rng.IntN(len(firsts)-1)])
			}
			gone = append(gone, firsts[0])
			withoutBlocks(t, o, gone...)
			lost := map[uint64]bool{}
			for i, first := range firsts {
				end := m.last()
				if i+1 < len(firsts) {
					end = firsts[i+1] - 1
				}
				for at := first; slices.Contains(gone, first) && at <= end; at++ {
					lost[at] = true
				}
			}
			if found, _ := checked(t, o, testDir, 0); len(found) == 0 {
				t.Error("the holes are not found")
			}
			r := repaired(t, o, 0)
			if r.Lost != uint64(len(lost)) || r.Records != uint64(len(m.recs)-len(lost)) || r.Holes == 0 {
				t.Errorf("%d records, %d are gone: %+v", len(m.recs), len(lost), r)
			}
			checkRepaired(t, o, m, lost, sources)
			j = mustOpenIn(t, repairedDir, o)
			if j.ID() != id {
				t.Errorf("the id is %v, was %v", j.ID(), id)
			}
			mustClose(t, j)
		}
	}
}

func mustOpenIn(t *testing.T, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// checkRepaired compares a repaired journal with what was recorded: each record that is not lost at its offset; in each hole, marks of
// every source, and nothing else.
func checkRepaired(t *testing.T, o Options, m *model, lost map[uint64]bool, sources int) {
	t.Helper()
	j := mustOpenIn(t, repairedDir, o)
	defer mustClose(t, j)
	kept := map[uint64]rec{}
	for _, r := range readAll(t, j) {
		kept[r.offset] = r
	}
	told := map[uint64]map[uint32]bool{} // by the last offset of the hole
	for at := uint64(1); at <= j.Durable(); at++ {
		r, there := kept[at]
		if at <= m.last() && !lost[at] {
			if want := m.recs[at-1]; !there || r.header != want.header || !sameFrames(r.frames, want.frames) {
				t.Errorf("offset %d is %+v, was %+v", at, r.header, want.header)
			}
			continue
		}
		if !there {
			continue
		}
		l, err := DecodeLost(at, r.frames)
		if err != nil || r.header.Kind != TailLost || r.header.Mark != continuity.MarkBehind {
			t.Fatalf("in a hole at %d: %+v, %v", at, r.header, err)
		}
		if told[l.Last] == nil {
			told[l.Last] = map[uint32]bool{}
		}
		told[l.Last][r.header.Source] = true
		for _, also := range l.Also {
			told[l.Last][also.Source] = true
		}
		for o := l.First; o <= l.Last; o++ {
			if !lost[o] && o <= m.last() {
				t.Errorf("offset %d is told to be lost", o)
			}
		}
	}
	for at := range lost {
		if lost[at+1] || at == m.last() {
			continue
		}
		if len(told[at]) != sources {
			t.Errorf("the hole that ends at %d marks %d of %d sources", at, len(told[at]), sources)
		}
	}
}

// TestRepairWithoutDatabase: only the tables and logs are left, and a newer end is known.
func TestRepairWithoutDatabase(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, s, _ := recorded(t, o)
	for _, k := range []int{3, 4, 5} { // manifest, options, markers
		for _, path := range filesOf(t, o.FS, pebblefile.Kind(k)) {
			removeFile(t, o.FS, path)
		}
	}
	r := repaired(t, o, m.last()+5)
	if r.Lost != 5 || r.Records != uint64(len(m.recs)) || r.Sources != len(s.sources) || len(r.Restored) > 0 {
		t.Errorf("%+v", r)
	}
	checkRepaired(t, o, m, map[uint64]bool{}, len(s.sources))
	j := mustOpenIn(t, repairedDir, o)
	defer mustClose(t, j)
	for _, src := range s.sources {
		p, err := j.Position(src.id)
		if err != nil {
			t.Fatal(err)
		}
		checkPosition(t, src.id, p, m.positions[src.id], m)
	}
}
