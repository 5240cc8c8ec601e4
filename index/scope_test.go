package index

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestScopes: every scope that an event named, in order.
func TestScopes(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	x := w.openIndex(testOptions(vfs.NewMem()))
	w.add(300)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := view(t, x)
	defer v.Close()
	for _, s := range w.streams {
		var got, want []string
		if err := v.Scopes(s.source.ID, func(s Scope) error {
			got = append(got, fmt.Sprintf("%d %x %x", s.Source, s.Backend, s.Tenant))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, b := range testBackends {
			for _, tenant := range testTenants {
				for _, h := range (&naive{w}).events(Behind(1 << 62)) {
					if h.source == s.source.ID && h.Backend == b && h.Tenant == tenant {
						want = append(want, fmt.Sprintf("%d %x %x", h.source, b, tenant))
						break
					}
				}
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) { // the names of the test are in order
			t.Fatalf("scopes: got %q, want %q", got, want)
		}
	}
}

// TestClears holds Clears against the events, between random positions.
func TestClears(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	x := w.openIndex(testOptions(vfs.NewMem()))
	w.add(400)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := view(t, x)
	defer v.Close()
	events := (&naive{w}).events(Behind(1 << 62))
	end := uint64(len(w.records))
	found := 0
	for range 500 {
		s := Scope{w.streams[w.rng.IntN(2)].source.ID, []byte(pick(w.rng, testBackends)), []byte(pick(w.rng, testTenants))}
		from, to := Position{w.rng.Uint64N(end), uint32(w.rng.IntN(7))}, Behind(w.rng.Uint64N(end+10))
		if w.rng.IntN(3) == 0 {
			from = Position{}
		}
		var got, want []Clear
		if err := v.Clears(&s, from, to, func(c *Clear) error { got = append(got, *c); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range events {
			h := &events[i]
			o := Object{Source: s.Source, Backend: s.Backend, Tenant: s.Tenant}
			if h.Type == event.Cleared && h.inScope(&o) && from.Before(h.evidence.Position) && !to.Before(h.evidence.Position) {
				want = append(want, Clear{h.evidence, h.keyed})
			}
		}
		same := func(a, b Clear) bool { return cleared(a.Evidence) == cleared(b.Evidence) && a.Proof == b.Proof }
		if !slices.EqualFunc(got, want, same) {
			t.Fatalf("clears of %+v behind %v up to %v:\ngot  %+v\nwant %+v", s, from, to, got, want)
		}
		found += len(got)
	}
	if found == 0 {
		t.Fatal("there were no clears")
	}
}

// TestMarks: Marks gives the marks whose first record lies in a span, and Mark each of them.
func TestMarks(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	x := w.openIndex(testOptions(vfs.NewMem()))
	w.add(600)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := view(t, x)
	defer v.Close()
	end := uint64(len(w.records))
	for _, s := range w.streams {
		id := s.source.ID
		var all []Mark
		last := Mark{}
		for o := uint64(1); o <= end; o++ {
			m, ok, err := v.Mark(id, o)
			if err != nil {
				t.Fatal(err)
			}
			if ok && m != last {
				all, last = append(all, m), m
			}
		}
		if len(all) == 0 || uint64(len(all)) != v.Source(id).Marks {
			t.Fatalf("%d marks, counted %d", len(all), v.Source(id).Marks)
		}
		for _, m := range all {
			if h := w.records[m.From-1].Header; h.Source != id || h.Mark == continuity.NoMark || h.MarkCause != m.Cause {
				t.Fatalf("mark %+v begins at %+v", m, h)
			}
		}
		for range 200 {
			after, to := w.rng.Uint64N(end+1), w.rng.Uint64N(end+10)
			if w.rng.IntN(10) == 0 {
				to = math.MaxUint64
			}
			var got, want []Mark
			if err := v.Marks(id, after, to, func(m *Mark) error { got = append(got, *m); return nil }); err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				if after < m.From && m.From <= to {
					want = append(want, m)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("marks behind %d up to %d:\ngot  %+v\nwant %+v", after, to, got, want)
			}
		}
	}
}
