package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/reading"
)

// anyObject is one of the few that streams are about, or one that never was.
func anyObject(rng *rand.Rand) *Object {
	o := &Object{Source: 1, Backend: []byte(pick(rng, testBackends)), Tenant: []byte(pick(rng, testTenants)), Key: []byte(pick(rng, testKeys))}
	if rng.IntN(20) == 0 {
		o.Key = append(o.Key, "never"...)
	}
	return o
}

// askTwice asks for an object at a position, and then reads its rows in the same view.
func askTwice(v *View, o *Object, at Position) (had []Medium, hit bool, err error) {
	key := appendObject(appendScope(nil, o.Source, o.Backend, o.Tenant), o.Key)
	_, hit = v.x.hot.media([]Medium{{}, {}}, v.x.hot.hash(key), key, v.number, at)
	if had, err = v.Media(nil, o, at); err != nil {
		return nil, hit, err
	}
	v.key = append(append(v.key[:0], keyHistory), key...)
	rows, _, err := v.newestRows([]Medium{{Name: "cpu"}, {Name: "disk"}}, at, false)
	if err == nil && !slices.Equal(had, rows) {
		err = fmt.Errorf("%+v at %v in a view of offset %d, kept before: %v\ngot  %+v\nrows %+v", *o, at, v.Applied(), hit, had, rows)
	}
	return had, hit, err
}

// TestHotBesideWrites: while records and readings of the master are applied, the journal pruned, and the index rebuilt and trimmed, views ask for
// the same few objects again and again, now and in the past; what they get is always what the rows of their view say.
func TestHotBesideWrites(t *testing.T) {
	seed := newSeed(t)
	w := newWorld(t, seed, 1)
	w.add(100)
	o := testOptions(vfs.NewMem())
	o.FlushEvents, o.CheckpointEvents = 300, 100
	x := w.openIndex(o)
	x.anew = func(_, _, _, _, _ uint64) bool { return x.Generation()%2 == 0 } // rebuilt, and then trimmed in place
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, hits atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		if err := x.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	for n := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 100+n))
		work.Go(func() {
			for ctx.Err() == nil {
				v, err := x.View()
				if err != nil {
					t.Errorf("View: %v", err)
					return
				}
				for range 1 + rng.IntN(20) {
					at := Behind(v.Source(1).AsOf.Offset)
					if rng.IntN(3) == 0 {
						at = Behind(v.Applied() - min(v.Applied(), rng.Uint64N(30)))
					}
					_, hit, err := askTwice(v, anyObject(rng), at)
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
						cancel()
					}
					if asked.Add(1); hit {
						hits.Add(1)
					}
				}
				if err := v.Close(); err != nil {
					t.Errorf("closing a view: %v", err)
				}
			}
		})
	}
	for round := range 30 {
		w.add(1 + w.rng.IntN(40))
		if h := w.begun(); round%3 == 0 { // corrections lie behind newer events
			w.add(5)
			var entries []reading.Entry
			for _, k := range testKeys[:4] {
				entries = append(entries, reading.Entry{What: reading.Present, Key: []byte(k), Medium: []byte(pick(w.rng, testMedia[:4]))})
			}
			w.ended(h, h, 0, entries...)
		}
		switch round % 10 {
		case 4:
			if err := x.Rebuild(t.Context(), nil); err != nil {
				t.Errorf("Rebuild: %v", err)
			}
		case 5, 9:
			if _, err := x.Prune(t.Context(), w.j.Durable()/2, BaselineOptions{ForgetRemoved: round > 15}, nil); err != nil && !errors.Is(err, ErrNothingToPrune) {
				t.Errorf("Prune: %v", err)
			}
		}
		// A write is not hurried past those who ask.
		for begun := asked.Load(); asked.Load() < begun+50 && ctx.Err() == nil; {
			runtime.Gosched()
		}
	}
	cancel()
	work.Wait()
	t.Logf("%d questions, %d of them about what was kept", asked.Load(), hits.Load())
	if hits.Load() == 0 {
		t.Error("nothing was kept")
	}
}

// TestHotIsForgotten: an object is kept once it was asked for, until an event of it, and only of it, is applied; an older view takes nothing
// that a newer one made; and a view that is not of the newest state keeps nothing.
func TestHotIsForgotten(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"), w.stored("b"))
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(t, x, uint64(len(w.records)))
	object := func(key string) *Object { return &Object{Source: 1, Tenant: []byte("default"), Key: []byte(key)} }
	kept := func(v *View, key string) bool {
		t.Helper()
		_, hit, err := askTwice(v, object(key), Behind(v.Applied()))
		if err != nil {
			t.Fatal(err)
		}
		return hit
	}
	expect := func(v *View, a, b bool) {
		t.Helper()
		if kept(v, "a") != a || kept(v, "b") != b {
			t.Fatalf("kept: a not %v, or b not %v", a, b)
		}
	}
	old := view(t, x)
	expect(old, false, false)
	expect(old, true, true)
	for range 2 {
		if kept(old, "never") {
			t.Fatal("an object that never was is kept")
		}
	}
	w.script(w.stored("a"))
	upTo(t, x, uint64(len(w.records)))
	v := view(t, x) // nothing rebuilds the index meanwhile
	expect(old, false, true)
	expect(old, false, true) // it is not of the newest state
	expect(v, false, true)
	expect(v, true, true)
	expect(old, false, true) // what v made of a is newer
	if err := errors.Join(old.Close(), v.Close()); err != nil {
		t.Fatal(err)
	}
	if err := x.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v = view(t, x)
	defer v.Close()
	expect(v, false, false)
}

// TestHotIsBounded: however many objects are asked for, no more bytes are kept than was said; what is asked for again stays.
func TestHotIsBounded(t *testing.T) {
	var f fresh
	const size = 64 << 10 * 4
	h := newHot(&f, size)
	s := &state{number: 1}
	f.now.Store(s)
	key := func(i int) []byte { return fmt.Appendf(nil, "object-%d", i) }
	media := []Medium{{Name: "cpu", Has: true, Newest: Evidence{Position: Position{1, 1}, Stored: true, Epoch: 1, Seq: 1}}, {Name: "disk"}}
	ask := func(i int) bool {
		got, hit := h.media([]Medium{{Name: "cpu"}, {Name: "disk"}}, h.hash(key(i)), key(i), 1, Behind(1))
		if hit && !slices.Equal(got, media) {
			t.Fatalf("object %d came back as %+v", i, got)
		}
		return hit
	}
	for i := range 50_000 {
		h.keep(h.hash(key(i)), key(i), media, s)
		if i%10 == 0 && !ask(7) {
			h.keep(h.hash(key(7)), key(7), media, s)
			if i > 200 {
				t.Fatalf("an object that is asked for all the time was forgotten at %d", i)
			}
		}
	}
	bytes, entries := 0, 0
	for i := range h.shards {
		for _, g := range []*hotGeneration{&h.shards[i].young, &h.shards[i].old} {
			bytes += len(g.bytes) + len(g.at)*hotPlace
			entries += len(g.at)
		}
	}
	if bytes > size || entries < 1000 {
		t.Fatalf("%d entries in %d of %d bytes", entries, bytes, size)
	}
}
