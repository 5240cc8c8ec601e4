package index

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// crashable is a filesystem that a crash takes the unsynced part of. The data directory is durable: the journal made it.
func crashable(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll(testDir, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := fs.OpenDir(fs.PathDir(testDir))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestCrash: whatever moment the machine stops at, the index that is found is exactly the one of the offset it says it
// was applied to; the rest is caught up.
func TestCrash(t *testing.T) {
	seed := testkit.Seed(t)
	partly := 0
	for run := range uint64(2) {
		w := newWorld(t, seed+run, 2)
		fs := crashable(t)
		o := testOptions(fs)
		o.MemTableSize, o.FlushEvents = 64<<10, 300
		x, err := Open(w.j, true, o)
		if err != nil {
			t.Fatal(err)
		}
		type crash struct {
			fs      *vfs.MemFS
			applied uint64
		}
		var crashes []crash
		for range 16 {
			w.add(1 + w.rng.IntN(60))
			upTo(t, x, x.Applied()+1+w.rng.Uint64N(w.j.Durable()-x.Applied()))
			if w.rng.IntN(20) == 0 {
				if err := x.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if w.rng.IntN(4) == 0 {
				cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: w.rng.IntN(101), RNG: rand.New(rand.NewPCG(seed, w.rng.Uint64()))}
				crashes = append(crashes, crash{fs.CrashClone(cfg), x.Applied()})
			}
		}
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		full := dumpRows(t, x)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		crashes = append(crashes, crash{fs.CrashClone(vfs.CrashCloneCfg{}), w.j.Durable()})
		for i, c := range crashes {
			y, err := Open(w.j, true, testOptions(c.fs))
			if errors.Is(err, ErrRebuild) && i < len(crashes)-1 { // in the middle of a write of the manifest
				if y, err = Create(t.Context(), w.j, testOptions(c.fs), nil); err != nil {
					t.Fatal(err)
				}
				sameRows(t, "computed anew", dumpRows(t, y), full)
				if err := y.Close(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, run %d, crash %d at %d: %v", seed, run, i, c.applied, err)
			}
			at := y.Applied()
			if at > c.applied || i == len(crashes)-1 && at != c.applied {
				t.Errorf("seed %d, run %d, crash %d: found %d, was %d", seed, run, i, at, c.applied)
			}
			if at > 0 && at < c.applied {
				partly++
			}
			sameRows(t, "found", dumpRows(t, y), dumpRows(t, w.indexUpTo(at)))
			if err := y.CatchUp(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			sameRows(t, "caught up", dumpRows(t, y), full)
			if err := y.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, run)
		}
	}
	if partly == 0 {
		t.Errorf("seed %d: no crash lost a part and kept a part", seed)
	}
}

// TestCrashInCreate: a crash beside an exchange leaves the old index, none, or the new one.
func TestCrashInCreate(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 1)
	w.add(200)
	fs := crashable(t)
	x, err := Create(t.Context(), w.j, testOptions(fs), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := dumpRows(t, x)
	for i := range 20 {
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 5 * i, RNG: rand.New(rand.NewPCG(seed, uint64(i)))})
		if got := KnownTo(testDir, testOptions(clone)).To(w.j.ID()); got != w.j.Durable() {
			t.Errorf("Create returned, and behind a crash the index knows offset %d of %d", got, w.j.Durable())
		}
	}
	w.add(100)
	if err := x.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if y := w.openIndex(testOptions(clone)); y.Applied() != w.j.Durable() || len(dumpRows(t, y)) <= len(want) {
		t.Errorf("behind a crash the rebuilt index knows offset %d of %d", y.Applied(), w.j.Durable())
	}
}
