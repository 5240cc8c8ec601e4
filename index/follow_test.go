package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// answers are what a view says about every object at a few fixed positions.
func answers(v *View, at []Position) ([]string, error) {
	var out []string
	for _, p := range at {
		for _, b := range testBackends {
			for _, tenant := range testTenants {
				for _, k := range testKeys[:4] {
					o := Object{Source: 1, Backend: []byte(b), Tenant: []byte(tenant), Key: []byte(k)}
					media, err := v.Media(nil, &o, p)
					if err != nil {
						return nil, err
					}
					c, ok, err := v.Cleared(&o, p)
					if err != nil {
						return nil, err
					}
					proof, proofOK, err := v.Proof(&o, p)
					if err != nil {
						return nil, err
					}
					out = append(out, fmt.Sprint(media, c, ok, proof, proofOK))
				}
			}
		}
	}
	return out, nil
}

// TestRebuildBesideFollow: records arrive, the index follows, views ask and close, and the index is rebuilt again and
// again: no answer about the past changes, and in the end the index is the one of the journal.
func TestRebuildBesideFollow(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 1)
	w.add(300)
	o := testOptions(vfs.NewMem())
	o.FlushEvents = 500
	x := w.openIndex(o)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	at := []Position{Behind(100), {200, 2}, Behind(300)}
	v := view(t, x)
	want, err := answers(v, at)
	if err != nil {
		t.Fatal(err)
	}
	v.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var helpers sync.WaitGroup
	helpers.Go(func() {
		if err := x.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	for range 2 {
		helpers.Go(func() {
			last := uint64(0)
			for ctx.Err() == nil {
				v, err := x.View()
				if err != nil {
					t.Errorf("View: %v", err)
					return
				}
				if v.Applied() < last {
					t.Errorf("a view of offset %d behind one of %d", v.Applied(), last)
				}
				last = v.Applied()
				got, err := answers(v, at)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("the answers at offset %d differ, %v", last, err)
				}
				if _, err := v.CountLive(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("CountLive: %v", err)
				}
				if err := v.Close(); err != nil {
					t.Errorf("closing a view: %v", err)
				}
				x.Bytes()
			}
		})
	}
	for range 3 {
		w.add(100)
		if err := x.Rebuild(t.Context(), nil); err != nil {
			t.Errorf("Rebuild: %v", err)
		}
		w.add(20)
	}
	cancel()
	helpers.Wait()
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "followed", dumpRows(t, x), dumpRows(t, w.indexUpTo(w.j.Durable())))
}

// TestViewIsOneMoment: what is applied later does not show in a view.
func TestViewIsOneMoment(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(100)
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(t, x, 50)
	v := view(t, x)
	defer v.Close()
	before, err := answers(v, []Position{Behind(1 << 40)})
	if err != nil {
		t.Fatal(err)
	}
	state := v.Source(1)
	live, err := v.CountLive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	fresh := view(t, x)
	defer fresh.Close()
	after, err := answers(v, []Position{Behind(1 << 40)})
	if err != nil || !slices.Equal(before, after) || v.Applied() != 50 || v.Source(1) != state {
		t.Errorf("the view moved: applied %d, %v", v.Applied(), err)
	}
	if again, err := v.CountLive(t.Context()); again != live || err != nil {
		t.Errorf("%d live, were %d, %v", again, live, err)
	}
	if fresh.Applied() != 100 || fresh.Source(1) == state {
		t.Errorf("a fresh view is at %d", fresh.Applied())
	}
}

// TestFollowRests: within the beat nothing is applied unless somebody hurries.
func TestFollowRests(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(10)
	o := testOptions(vfs.NewMem())
	o.Beat = time.Hour
	x := w.openIndex(o)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		if err := x.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	defer following.Wait()
	defer cancel()
	applied := func(to uint64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); x.Applied() < to; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("applied up to %d, want %d", x.Applied(), to)
			}
		}
	}
	applied(w.j.Durable())
	for range 3 {
		before := x.Applied()
		w.add(10)
		if now := x.Applied(); now != before {
			t.Fatalf("applied up to %d, it was %d, and nobody asked", now, before)
		}
		x.Hurry()
		applied(w.j.Durable())
	}
}
