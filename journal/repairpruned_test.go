package journal

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestRepairPruned: a pruned journal is repaired with its baseline and all behind its horizon, whatever of the rest is there.
func TestRepairPruned(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, o Options, horizon uint64)
		lost   uint64
	}{
		{"whole", func(*testing.T, Options, uint64) {}, 0},
		{"without database", func(t *testing.T, o Options, _ uint64) {
			for _, k := range []int{3, 4, 5} { // manifest, options, markers
				for _, path := range filesOf(t, o.FS, pebblefile.Kind(k)) {
					removeFile(t, o.FS, path)
				}
			}
		}, 0},
		{"nothing kept", func(t *testing.T, o Options, horizon uint64) {
			j := mustOpen(t, o, 0)
			firsts := blockFirsts(t, j)
			mustClose(t, j)
			withoutBlocks(t, o, slices.DeleteFunc(firsts, func(f uint64) bool { return f > horizon })...)
		}, 1},
	} {
		for range 1 + questions(4) {
			o := testOptions(vfs.NewMem())
			o.BlockRaw = 1 + rng.IntN(2)*2000
			j := mustOpen(t, o, 0)
			s, m := newStream(t, rng, j, 3), &model{}
			m.appendMany(t, j, s, 100, 1+rng.IntN(5))
			pruned(t, j, m, 20+rng.Uint64N(30), 500)
			m.appendMany(t, j, s, 100, 1+rng.IntN(5))
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
			horizon, rows := uint64(60), rng.IntN(20_000)
			if c.lost > 0 { // what is lost ends there
				horizon = blockEnd(t, j, horizon)
			}
			pruned(t, j, m, horizon, rows)
			was, totals := j.Horizon(), j.totals
			mustClose(t, j)
			c.damage(t, o, horizon)
			r := repaired(t, o, 0)
			if r.Horizon != horizon || r.BaselineLost || r.BaselineRows != uint64(rows) || r.Lost != c.lost {
				t.Fatalf("%s, pruned to %d: %+v", c.name, horizon, r)
			}
			if v, err := datadir.Version(o.FS, repairedDir); v != datadir.FormatPruned || err != nil {
				t.Errorf("%s: the gate says %d, %v", c.name, v, err)
			}
			j = mustOpenIn(t, repairedDir, o)
			checkBaseline(t, j, horizon, rows)
			if h := j.Horizon(); h.Offset != was.Offset || h.Generation != was.Generation || h.Checksum != was.Checksum {
				t.Errorf("%s: horizon %+v, was %+v", c.name, h, was)
			}
			left := slices.DeleteFunc(readAll(t, j), func(r rec) bool { return r.offset <= horizon })
			if err := diffRecords(left, m.recs[horizon:]); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if j.totals.Events != totals.Events || c.lost == 0 && j.totals != totals {
				t.Errorf("%s: totals %+v, were %+v", c.name, j.totals, totals)
			}
			if _, err := j.Record(horizon); err != nil {
				t.Errorf("%s: the record at the horizon: %v", c.name, err)
			}
			for _, src := range s.sources {
				p, err := j.Position(src.id)
				if err != nil {
					t.Fatal(err)
				}
				checkPosition(t, src.id, p, m.positions[src.id], m)
			}
			m.appendMany(t, j, s, 30, 3) // and goes on
			mustClose(t, j)
			if found, _ := checked(t, o, repairedDir, 0); len(found) > 0 {
				t.Errorf("%s, written to: %+v", c.name, found)
			}
			if err := o.FS.RemoveAll(repairedDir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// blockEnd is the last offset of the block that holds an offset.
func blockEnd(t *testing.T, j *Journal, offset uint64) uint64 {
	t.Helper()
	b, err := j.Block(nil, offset)
	if err != nil {
		t.Fatal(err)
	}
	return b.Last()
}

// TestRepairWithoutBaseline: where a block of it is damaged, all behind the horizon is kept, and what came before is lost and marked.
func TestRepairWithoutBaseline(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 3), &model{}
	m.appendMany(t, j, s, 200, 3)
	pruned(t, j, m, 100, 30_000)
	key := baselineKey(1, rng.Uint64N(j.Horizon().Blocks))
	v, err := j.get(key)
	if err != nil {
		t.Fatal(err)
	}
	v[rng.IntN(len(v))] ^= 1 << rng.IntN(8)
	if err := j.db.Set(key, v, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := j.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := j.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	lost := map[uint64]bool{}
	for at := uint64(1); at <= 200; at++ {
		b, err := j.blockAt(nil, at)
		lost[at] = err != nil || at > b.Last()
	}
	for at, gone := range lost {
		if !gone {
			delete(lost, at)
		}
	}
	mustClose(t, j)
	for _, path := range filesOf(t, o.FS, pebblefile.Log) { // that has all records
		removeFile(t, o.FS, path)
	}
	r := repaired(t, o, 0)
	if !r.BaselineLost || r.Horizon != 0 || r.Lost != uint64(len(lost)) || len(lost) < 50 {
		t.Errorf("%d are lost: %+v", len(lost), r)
	}
	checkRepaired(t, o, m, lost, len(s.sources))
}
