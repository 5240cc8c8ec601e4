package index

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestRebuildEqualsFollowed: however the index was brought up (in chunks, over reopenings and flushes), it is key by key
// the one that Create computes.
func TestRebuildEqualsFollowed(t *testing.T) {
	seed := testkit.Seed(t)
	for run := range uint64(2) {
		w := newWorld(t, seed+run, 2)
		fs := vfs.NewMem()
		x, err := Open(w.j, true, testOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		for len(w.records) < 500 {
			w.add(1 + w.rng.IntN(200))
			for x.Applied() < w.j.Durable() {
				upTo(t, x, x.Applied()+1+w.rng.Uint64N(w.j.Durable()-x.Applied()))
				switch w.rng.IntN(6) {
				case 0:
					if err := x.Flush(); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := x.Close(); err != nil {
						t.Fatal(err)
					}
					if x, err = Open(w.j, false, testOptions(fs)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		followed := dumpRows(t, x)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		other := vfs.NewMem()
		created, err := Create(t.Context(), w.j, testOptions(other), nil)
		if err != nil {
			t.Fatal(err)
		}
		if created.Applied() != w.j.Durable() {
			t.Fatalf("Create applied %d of %d", created.Applied(), w.j.Durable())
		}
		sameRows(t, "followed", followed, dumpRows(t, created))
		if err := created.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		sameRows(t, "rebuilt", dumpRows(t, created), followed)
		if err := created.Close(); err != nil {
			t.Fatal(err)
		}
		if got := KnownTo(testDir, testOptions(other)).To(w.j.ID()); got != w.j.Durable() {
			t.Errorf("KnownTo = %d, want %d", got, w.j.Durable())
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, run)
		}
	}
}

// TestCreateInterrupted leaves the old index as it was.
func TestCreateInterrupted(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(300)
	fs := vfs.NewMem()
	x, err := Open(w.j, true, testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	upTo(t, x, 200)
	want := dumpRows(t, x)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Rebuild(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("Rebuild: %v", err)
	}
	sameRows(t, "behind an interrupted Rebuild", dumpRows(t, x), want)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(ctx, w.j, testOptions(fs), nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v", err)
	}
	x = w.openIndex(testOptions(fs))
	sameRows(t, "behind an interrupted Create", dumpRows(t, x), want)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "caught up", dumpRows(t, x), dumpRows(t, w.indexUpTo(w.j.Durable())))
}

// TestRebuildNeverGoesBack: what arrives, and is applied, while the new index is built is in it when it takes its place.
func TestRebuildNeverGoesBack(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(100)
	x := w.openIndex(testOptions(vfs.NewMem()))
	arrived := false
	err := x.Rebuild(t.Context(), func(uint64) {
		if arrived {
			return
		}
		arrived = true
		w.add(50)
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !arrived || x.Applied() != 150 {
		t.Fatalf("applied %d, want 150", x.Applied())
	}
	sameRows(t, "rebuilt", dumpRows(t, x), dumpRows(t, w.indexUpTo(150)))
}

// TestCatchUpInterrupted keeps what was applied, whole blocks of it.
func TestCatchUpInterrupted(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	w.add(800)
	ctx, cancel := context.WithCancel(t.Context())
	o := testOptions(vfs.NewMem())
	blocks := 0
	o.Pause = func(context.Context) {
		if blocks++; blocks == 5 {
			cancel()
		}
	}
	x := w.openIndex(o)
	if err := x.CatchUp(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	at := x.Applied()
	if at == 0 || at >= w.j.Durable() {
		t.Fatalf("applied %d of %d", at, w.j.Durable())
	}
	sameRows(t, "interrupted", dumpRows(t, x), dumpRows(t, w.indexUpTo(at)))
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "caught up", dumpRows(t, x), dumpRows(t, w.indexUpTo(w.j.Durable())))
}

// TestCatchUpFails: a record that cannot be applied is an error each time, and the index stays a function of the journal:
// what was applied before it counts once.
func TestCatchUpFails(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(100)
	good := w.j.Durable()
	// A message that says of itself that it holds an event more than it does.
	s := w.streams[0]
	rec, _ := w.message(s, 3)
	var b event.Batch
	b.Scan(rec.Frames)
	g := w.j.NewGroup()
	for range 3 {
		ok, _ := w.message(s, 2)
		if _, err := s.feed.Add(g, &ok, false); err != nil {
			t.Fatal(err)
		}
	}
	h := journal.Header{Kind: journal.Message, Source: s.source.ID, Received: rec.Received, HasSeq: true, Seq: b.Seq, Events: 4}
	h.Epoch, h.Follows = 1, true
	g.Add(&h, rec.Frames)
	if _, err := s.feed.Add(g, &capture.Record{Kind: capture.Connected, Received: rec.Received}, false); err != nil {
		t.Fatal(err)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.j.Sync(); err != nil {
		t.Fatal(err)
	}
	x := w.openIndex(testOptions(vfs.NewMem()))
	for range 3 {
		var corrupt *journal.CorruptError
		if err := x.CatchUp(t.Context(), nil); !errors.As(err, &corrupt) || corrupt.Offset != good+4 {
			t.Fatalf("CatchUp: %v", err)
		}
		if x.Applied() > good+3 {
			t.Fatalf("applied %d, the record that cannot be is %d", x.Applied(), good+4)
		}
	}
	// What can be applied still can be, and is what a fresh index has.
	upTo(t, x, good+3)
	sameRows(t, "behind failures", dumpRows(t, x), dumpRows(t, w.indexUpTo(good+3)))
}

// TestLongCatchUpCommits: what holds no event is bounded too: a flood of damage does not gather in one write.
func TestLongCatchUpCommits(t *testing.T) {
	w := newWorld(t, 1, 1)
	s := w.streams[0]
	for range 4 {
		g, first := w.j.NewGroup(), len(w.records)
		for range batchEvents/2 + 10 {
			w.put(g, s, w.damaged(false), nil)
		}
		w.commit(g, first)
	}
	writes := 0
	x := w.openIndex(testOptions(vfs.NewMem()))
	if err := x.CatchUp(t.Context(), func(uint64) { writes++ }); err != nil {
		t.Fatal(err)
	}
	if writes < 2 {
		t.Errorf("%d records in %d write", len(w.records), writes)
	}
}
