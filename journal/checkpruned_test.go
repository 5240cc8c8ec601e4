package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// pruned prunes the journal of a model, with some rows as its baseline.
func pruned(t *testing.T, j *Journal, m *model, horizon uint64, rows int, keep ...uint64) {
	t.Helper()
	w, err := j.NewBaseline(Horizon{Offset: horizon, Events: m.events(horizon)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Add(fmt.Appendf(nil, "key%08d", i), fmt.Appendf(nil, "%d at %d", i, horizon)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Prune(keep); err != nil {
		t.Fatal(err)
	}
}

// TestCheckPruned: a pruned journal is sound, however often it was pruned, sealed, reopened and written to; without its logs, too. What a crash
// leaves of a compaction, in whatever moment, the next recorder puts right.
func TestCheckPruned(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 3 + questions(10) {
		fs := vfs.NewCrashableMem()
		o := testOptions(fs)
		o.BlockRaw = 300 + rng.IntN(3000)
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 3), &model{}
		horizon := uint64(0)
		for range 1 + rng.IntN(4) {
			m.appendMany(t, j, s, 20+rng.IntN(200), 8)
			if rng.IntN(2) == 0 {
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(2) == 0 {
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			horizon += 1 + rng.Uint64N(j.Durable()-horizon)
			var keep []uint64
			for range rng.IntN(4) {
				keep = append(keep, 1+rng.Uint64N(horizon))
			}
			pruned(t, j, m, horizon, rng.IntN(20_000), keep...)
			if rng.IntN(2) == 0 {
				if err := j.Reclaim(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(2) == 0 {
				m.appendMany(t, j, s, 1+rng.IntN(20), 3)
			}
			amid := fs.CrashClone(vfs.CrashCloneCfg{}) // a compaction may be writing
			left := crashedOpen(t, fs, j)
			if rng.IntN(2) == 0 {
				mustClose(t, j)
				left = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
				j = mustOpen(t, o, 0)
			}
			found, c := checked(t, testOptions(left), testDir, 0)
			if len(found) > 0 || c.Horizon != horizon || c.Last < horizon {
				t.Fatalf("pruned to %d of %d: %+v\n%+v", horizon, m.last(), c, found)
			}
			for _, left := range []*vfs.MemFS{left, amid} {
				again := mustOpen(t, testOptions(left), 0)
				if err := again.Sound(); err != nil {
					t.Fatal(err)
				}
				mustClose(t, again)
			}
			if found, c := checked(t, testOptions(amid), testDir, 0); len(found) > 0 || c.Horizon != horizon || c.Last < horizon {
				t.Fatalf("crashed, and opened since, pruned to %d of %d: %+v\n%+v", horizon, m.last(), c, found)
			}
		}
		mustClose(t, j)
	}
}

// events is how many of the events that Totals count lie up to an offset.
func (m *model) events(offset uint64) uint64 {
	var t Totals
	for _, r := range m.recs[:offset] {
		t.count(&r.header, 0)
	}
	return t.Events
}

// TestSoundBehindAPrune: a log that begins with a block that a prune kept, or with the one that holds the horizon, is no sign of a loss.
func TestSoundBehindAPrune(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := vfs.NewCrashableMem()
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 60, 1)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	m.appendMany(t, j, s, 40, 1) // the log begins with 61
	for horizon, keep := range map[uint64]uint64{61: 0, 62: 61, 80: 61} {
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		p := mustOpen(t, testOptions(left), 0)
		pruned(t, p, m, horizon, 1, keep)
		crashed := left.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, p)
		p = mustOpen(t, testOptions(crashed), 0)
		if err := p.Sound(); err != nil {
			t.Errorf("pruned to %d, %d kept: %v", horizon, keep, err)
		}
		mustClose(t, p)
	}
	mustClose(t, j)
}

// TestCheckDamagedBaseline: Check finds whatever is not as it was written in a baseline, and names the file.
func TestCheckDamagedBaseline(t *testing.T) {
	rng := testkit.RandomSource(t)
	for name, damage := range map[string]func(j *Journal, key, value []byte) error{
		"a flipped bit": func(j *Journal, key, value []byte) error {
			value[rng.IntN(len(value))] ^= 1 << rng.IntN(8)
			return j.db.Set(key, value, pebble.Sync)
		},
		"gone": func(j *Journal, key, _ []byte) error { return j.db.Delete(key, pebble.Sync) },
	} {
		fs := vfs.NewMem()
		j := mustOpen(t, testOptions(fs), 0)
		s, m := newStream(t, rng, j, 1), &model{}
		m.appendMany(t, j, s, 50, 5)
		pruned(t, j, m, 20, 60_000)
		var keys, values [][]byte
		if err := j.scan(keyBaseline, func(k, v []byte) error {
			keys, values = append(keys, append([]byte(nil), k...)), append(values, append([]byte(nil), v...))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		i := rng.IntN(len(keys))
		if err := damage(j, keys[i], values[i]); err != nil {
			t.Fatal(err)
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		found, _ := checked(t, testOptions(fs), testDir, 0)
		if len(found) != 1 || found[0].Severity != Damage || !strings.Contains(found[0].What, "baseline") || name != "gone" && !strings.HasSuffix(found[0].File, ".sst") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestCheckLeftBaseline: what a baseline left that was given up is noted, and is no damage.
func TestCheckLeftBaseline(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := vfs.NewMem()
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 50, 5)
	w, err := j.NewBaseline(Horizon{Offset: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Add([]byte("key"), nil), w.finishBlock(), w.finishTable()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	found, c := checked(t, testOptions(fs), testDir, 0)
	if len(found) != 1 || found[0].Severity != Note || c.Horizon != 0 {
		t.Errorf("%+v, %+v", c, found)
	}
}

// TestPruneRaisesTheGate: before the first byte of a baseline, so that a program that knows none refuses the directory; one pruned before
// there was that gate is raised at its next start.
func TestPruneRaisesTheGate(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := vfs.NewMem()
	gate := func(want int) {
		t.Helper()
		if v, err := datadir.Version(fs, testDir); v != want || err != nil {
			t.Errorf("the gate says format %d, %v, want %d", v, err, want)
		}
	}
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 50, 5)
	mustClose(t, j)
	j = mustOpen(t, testOptions(fs), 0)
	gate(datadir.FormatWhole)
	w, err := j.NewBaseline(Horizon{Offset: 20})
	if err != nil {
		t.Fatal(err)
	}
	gate(datadir.FormatPruned)
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	pruned(t, j, m, 20, 10)
	mustClose(t, j)
	if err := datadir.WriteFile(fs, testDir, datadir.GateFile, []byte("kvjournal data directory, format 1\n")); err != nil {
		t.Fatal(err)
	}
	if found, _ := checked(t, testOptions(fs), testDir, 0); len(found) != 1 || found[0].Severity != Note || found[0].File != datadir.GateFile {
		t.Errorf("%+v", found)
	}
	j = mustOpen(t, testOptions(fs), 0)
	mustClose(t, j)
	gate(datadir.FormatPruned)
}
