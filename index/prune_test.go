package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func prunable(fs vfs.FS, every uint64) Options {
	o := testOptions(fs)
	o.CheckpointEvents = every
	return o
}

// createdRows are the rows of an index that is computed anew from the journal, with a checkpoint every so many events.
func (w *world) createdRows(every uint64) map[string]string {
	w.t.Helper()
	x, err := Create(w.t.Context(), w.j, prunable(vfs.NewMem(), every), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	rows := dumpRows(w.t, x)
	if err := x.Close(); err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// baselineRows are the rows that a baseline as of a checkpoint has, but for that which names it.
func baselineRows(t *testing.T, x *Index, offset uint64, o BaselineOptions) map[string]string {
	t.Helper()
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	c, err := v.PruneTo(offset)
	if err != nil || c == nil || c.Offset != offset {
		t.Fatalf("the checkpoint at offset %d: %+v, %v", offset, c, err)
	}
	rows, last := map[string]string{}, ""
	if err := v.Baseline(t.Context(), c, o, func(key, value []byte) error {
		if string(key) <= last {
			return fmt.Errorf("row %x lies behind %x", key, last)
		}
		if last = string(key); key[0] != keyBaseline {
			rows[last] = string(value)
		}
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	return rows
}

// forgettable reports whether a row says no more than a proof of absence behind it: an older baseline has left it out where nothing else
// was known of the object.
func forgettable(t *testing.T, whole *Index, key, value string) bool {
	t.Helper()
	if key[0] != keyHistory || value[0]&evStored != 0 {
		return false
	}
	k := []byte(key)
	sc, _ := cutScope(k[1:scopeLength(k)])
	p, ok := cutPosition(k[split(k)+mediumEnd(k[split(k):]):])
	if !ok {
		t.Fatalf("row %q", key)
	}
	v, err := whole.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	proof, has, err := v.Proof(&Object{Source: sc.Source, Backend: sc.Backend, Tenant: sc.Tenant}, anyTime)
	if err != nil {
		t.Fatal(err)
	}
	return has && p.Before(proof.Position)
}

func points(t *testing.T, x *Index) []Point {
	t.Helper()
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	p, err := v.Points()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPruneRows: what stays at a checkpoint is the same whether the index began with an older baseline or with the journal; the index behind
// a prune is the one that is computed from the baseline; and both have all that came behind the horizon.
func TestPruneRows(t *testing.T) {
	seed := testkit.Seed(t)
	for run := range uint64(4) {
		w := newWorld(t, seed+run, 2)
		fs, every := vfs.NewMem(), 20+w.rng.Uint64N(60)
		w.add(500)
		x, whole := w.openIndex(prunable(fs, every)), w.openIndex(prunable(vfs.NewMem(), every))
		for _, i := range []*Index{x, whole} {
			if err := i.CatchUp(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		all := dumpRows(t, whole)
		for range 3 {
			some := points(t, x)
			if len(some) == 0 {
				break
			}
			o := BaselineOptions{ForgetRemoved: run == 3}
			at := some[w.rng.IntN(len(some))].Offset
			want := baselineRows(t, whole, at, o)
			if run != 3 { // what was forgotten at the horizon before is not in the whole index
				have := baselineRows(t, x, at, o)
				for k, v := range want {
					if _, ok := have[k]; !ok && forgettable(t, whole, k, v) {
						delete(want, k)
					}
				}
				sameRows(t, "of a pruned index", have, want)
			}
			rebuilds := w.rng.IntN(2) == 0
			x.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return rebuilds }
			h, err := x.Prune(t.Context(), at, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if h.Offset != at || x.j.Horizon().Offset != at {
				t.Fatalf("the horizon is %+v, asked for %d", h, at)
			}
			got := dumpRows(t, x)
			for k, v := range got {
				if v2, ok := all[k]; (!ok || v2 != v) && k[0] != keyBaseline && k[0] != keyLive {
					t.Fatalf("run %d: row %q is new: %q, was %q", run, k, v, v2)
				}
			}
			if run != 3 {
				sameRows(t, "again", baselineRows(t, x, at, o), want)
			}
			sameRows(t, "created", w.createdRows(every), got)
			// It goes on, and where it is opened again.
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = w.openIndex(prunable(fs, every))
			sameRows(t, "opened again", dumpRows(t, x), got)
		}
		if err := whole.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed+run)
		}
	}
}

// TestPruneCrash: a crash before any write of a prune leaves the old horizon or the new one, with an index that gives the same rows.
func TestPruneCrash(t *testing.T) {
	seed := testkit.Seed(t)
	met := map[bool]int{}
	for run := range uint64(3) {
		mem := &faultfs.Crashable{MemFS: crashable(t)}
		rng := rand.New(rand.NewPCG(seed, run))
		var mu sync.Mutex
		var clones []*vfs.MemFS
		writes, every := 0, 0
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if every > 0 && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if writes++; rng.IntN(every) == 0 {
					clones = append(clones, mem.Clone(rng, []int{0, 50, 100}[rng.IntN(3)]))
				}
			}
			return nil
		}))
		w := newWorldOn(t, fs, seed+run, 2)
		w.add(300)
		x := w.openIndex(prunable(fs, 30))
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := w.j.Flush(); err != nil {
			t.Fatal(err)
		}
		some := points(t, x)
		if run == 2 { // of a pruned journal
			if _, err := x.Prune(t.Context(), some[len(some)/3].Offset, BaselineOptions{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		old, before := w.j.Horizon(), dumpRows(t, x)
		mu.Lock()
		every = 4
		mu.Unlock()
		x.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return run == 0 }
		h, err := x.Prune(t.Context(), some[2*len(some)/3].Offset, BaselineOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		every = 0
		mu.Unlock()
		after := dumpRows(t, x)
		t.Logf("run %d: %d writes, %d crashes", run, writes, len(clones))
		for i, left := range clones {
			j, err := journal.Open(testDir, nil, journal.Options{FS: left, NoSealer: true, MemTableSize: 1 << 20})
			if err != nil {
				t.Fatalf("seed %d, crash %d: %v", seed+run, i, err)
			}
			o := prunable(left, 30)
			c, err := Open(j, true, o)
			if errors.Is(err, ErrRebuild) {
				c, err = Create(t.Context(), j, o, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return i%2 == 0 }
			if err := errors.Join(c.CatchUp(t.Context(), nil), c.Trim(t.Context(), nil)); err != nil {
				t.Fatal(err)
			}
			now := j.Horizon()
			want := before
			if met[now.Offset == h.Offset]++; now.Offset == h.Offset {
				want = after
			} else if now.Offset != old.Offset {
				t.Fatalf("seed %d, crash %d: the horizon is %d; it was %d, and became %d", seed+run, i, now.Offset, old.Offset, h.Offset)
			}
			sameRows(t, fmt.Sprintf("seed %d, crash %d, horizon %d", seed+run, i, now.Offset), dumpRows(t, c), want)
			if names, err := left.List(left.PathJoin(testDir, "baseline.new")); err == nil && len(names) > 0 {
				t.Errorf("tables of a baseline are left: %v", names)
			}
			if err := errors.Join(c.Close(), j.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if met[true] == 0 || met[false] == 0 {
		t.Errorf("crashes that left the new horizon or not: %v", met)
	}
}

// TestPruneWhileAppending: what arrives, and is applied, while a journal is pruned is there.
func TestPruneWhileAppending(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 2)
	w.add(300)
	x := w.openIndex(prunable(vfs.NewMem(), 30))
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		if err := x.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	for i := range 2 {
		x.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return i%2 == 0 }
		some := points(t, x)
		done := make(chan error, 1)
		go func() {
			_, err := x.Prune(t.Context(), some[len(some)/2].Offset, BaselineOptions{}, nil)
			done <- err
		}()
		for left := 4000; left > 0 && len(done) == 0; { // bounded: what is appended keeps the prune from its end
			n := 1 + w.rng.IntN(40)
			w.add(n)
			left -= n
			if w.rng.IntN(3) == 0 {
				if err := w.j.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	following.Wait()
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "created", w.createdRows(30), dumpRows(t, x))
}

func TestAnew(t *testing.T) {
	const mega = 1_000_000
	for _, c := range []struct {
		rows, events, gone, free, size uint64
		want                           bool
	}{
		{rows: mega, events: 10 * mega, gone: 90 * mega, free: 1 << 40, size: 5 << 30, want: true},
		{rows: 10 * mega, events: 90 * mega, gone: 10 * mega, free: 1 << 40, size: 5 << 30, want: false},
		{rows: mega, events: 10 * mega, gone: 90 * mega, free: 1 << 20, size: 5 << 30, want: false}, // no room
		{want: true},
	} {
		if got := anew(c.rows, c.events, c.gone, c.free, c.size); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
