package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// past is what a History gives of an event.
type past struct {
	medium   string
	evidence Evidence
	group    string
}

// opener is View.History or View.Events.
type opener func(o *Object, from, to Position, back bool) (*History, error)

// readHistory reads an object's events to the end.
func readHistory(t *testing.T, open opener, o *Object, from, to Position, back bool) []past {
	t.Helper()
	h, err := open(o, from, to, back)
	if err != nil {
		t.Fatal(err)
	}
	var out []past
	for {
		e, err := h.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		if e.HasGroup != (e.Group != nil) {
			t.Fatalf("HasGroup %v, group %q", e.HasGroup, e.Group)
		}
		out = append(out, past{e.Medium, e.Evidence, string(e.Group)})
		if len(out) > 1<<20 {
			t.Fatal("it does not end")
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// history lists an object's events behind from, up to to, from the list of all.
func (n *naive) history(events []happened, o *Object, from, to Position, back bool) []past {
	var out []past
	for i := range events {
		if h := &events[i]; h.about(o) && from.Before(h.evidence.Position) && !to.Before(h.evidence.Position) {
			p := past{medium: h.Medium, evidence: h.evidence}
			if h.GroupID != nil {
				p.group = *h.GroupID
			}
			out = append(out, p)
		}
	}
	if back {
		slices.Reverse(out)
	}
	return out
}

// TestHistory holds the events of objects between random positions, in both directions, against the list of all records.
func TestHistory(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 2)
	x := w.openIndex(testOptions(vfs.NewMem()))
	w.add(1500)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	n := naive{w}
	v := view(t, x)
	defer v.Close()
	end := uint64(len(w.records))
	all := n.events(Behind(end))
	position := func() Position {
		switch w.rng.IntN(5) {
		case 0:
			return Position{}
		case 1:
			return Behind(end)
		case 2: // exactly at an event
			return all[w.rng.IntN(len(all))].evidence.Position
		case 3:
			return Behind(1 + w.rng.Uint64N(end))
		}
		return Position{1 + w.rng.Uint64N(end), uint32(w.rng.IntN(8))}
	}
	rows := 0
	for range 600 {
		o := Object{Source: uint32(1 + w.rng.IntN(2)), Backend: []byte(pick(w.rng, testBackends)), Tenant: []byte(pick(w.rng, testTenants)), Key: []byte(pick(w.rng, testKeys))}
		from, to, back := position(), position(), w.rng.IntN(2) == 0
		got, want := readHistory(t, v.History, &o, from, to, back), n.history(all, &o, from, to, back)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %+v from %v to %v, back %v:\ngot  %d %+v\nwant %d %+v", seed, o, from, to, back, len(got), got, len(want), want)
		}
		if got := readHistory(t, v.Events, &o, from, to, back); !slices.Equal(got, want) {
			t.Fatalf("seed %d: Events of %+v from %v to %v, back %v:\ngot  %d %+v\nwant %d %+v", seed, o, from, to, back, len(got), got, len(want), want)
		}
		rows += len(got)
		n.comparePages(v, &Scope{o.Source, o.Backend, o.Tenant}, all, from, to, back)
	}
	if rows == 0 {
		t.Fatal("nothing was compared")
	}
}

// comparePages holds pages of clears, marks and gaps of random size against the readings of all.
func (n *naive) comparePages(v *View, s *Scope, all []happened, from, to Position, back bool) {
	t, size := n.w.t, 1+n.w.rng.IntN(3)
	var clears, wantClears []Clear
	for a, b := from, to; ; {
		page, err := v.ClearPage(nil, s, a, b, back, size)
		if err != nil || len(page) > size {
			t.Fatal(len(page), err)
		}
		clears = append(clears, page...)
		if len(page) == 0 {
			break
		}
		if last := page[len(page)-1].Position; back {
			b = Position{last.Offset, last.Event - 1}
		} else {
			a = last
		}
	}
	for i := range all {
		h := &all[i]
		if h.Type == event.Cleared && h.inScope(&Object{s.Source, s.Backend, s.Tenant, nil}) && from.Before(h.evidence.Position) && !to.Before(h.evidence.Position) {
			wantClears = append(wantClears, Clear{h.evidence, h.keyed})
		}
	}
	var marks, wantMarks []Mark
	for a, b := from.Offset, to.Offset; ; {
		page, err := v.MarkPage(nil, s.Source, a, b, back, size)
		if err != nil || len(page) > size {
			t.Fatal(len(page), err)
		}
		marks = append(marks, page...)
		if len(page) == 0 {
			break
		}
		if last := page[len(page)-1].From; back {
			b = last - 1
		} else {
			a = last
		}
	}
	if from.Offset < to.Offset {
		if err := v.Marks(s.Source, from.Offset, to.Offset, func(m *Mark) error { wantMarks = append(wantMarks, *m); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if back {
		slices.Reverse(wantClears)
		slices.Reverse(wantMarks)
	}
	if !slices.Equal(clears, wantClears) || !slices.Equal(marks, wantMarks) {
		t.Fatalf("from %v to %v, back %v: clears\ngot  %+v\nwant %+v\nmarks\ngot  %+v\nwant %+v", from, to, back, clears, wantClears, marks, wantMarks)
	}
	gaps, err := v.GapPage(nil, s.Source, from.Offset, to.Offset, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := n.gaps(s.Source)
	want = slices.DeleteFunc(want, func(g Gap) bool { return g.After < from.Offset || g.After > to.Offset })
	if len(gaps) != len(want) {
		t.Fatalf("%d gaps shown at %d to %d, want %d", len(gaps), from.Offset, to.Offset, len(want))
	}
}

// TestHistoryFloods: an object with so many media that a page of each is one row, and one with many events on one medium: complete
// and in order, both ways.
func TestHistoryFloods(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	x := w.openIndex(testOptions(vfs.NewMem()))
	const media = historyRows/2 + 100
	s := w.streams[0]
	add := func(medium func(i int) string, key string, events int) {
		for made := 0; made < events; {
			g := w.j.NewGroup()
			first := len(w.records)
			for range 20 {
				rec, fields := w.message(s, 50)
				for i := range fields {
					fields[i].Type, fields[i].Backend, fields[i].Tenant, fields[i].Key, fields[i].Medium = event.Stored, "b", "default", key, medium(made+i)
					if group := fmt.Sprint("g", i); i%3 == 0 {
						fields[i].GroupID = &group
					}
				}
				rec.Frames[2] = w.encoder.AppendPayload(nil, w.now, fields, 0)
				w.put(g, s, rec, fields)
				made += len(fields)
			}
			w.commit(g, first)
		}
	}
	add(func(i int) string { return fmt.Sprint("m", i%media) }, "wide", 2*media)
	add(func(int) string { return "cpu" }, "hot", 20_000)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	n := naive{w}
	v := view(t, x)
	defer v.Close()
	end := Behind(uint64(len(w.records)))
	all := n.events(end)
	for _, key := range []string{"wide", "hot"} {
		o := Object{Source: s.source.ID, Backend: []byte("b"), Tenant: []byte("default"), Key: []byte(key)}
		for _, back := range []bool{false, true} {
			for _, to := range []Position{end, {2, 3}} { // behind all, and exactly at an event
				want := n.history(all, &o, Position{}, to, back)
				for _, open := range []opener{v.History, v.Events, v.Events} {
					if got := readHistory(t, open, &o, Position{}, to, back); !slices.Equal(got, want) {
						t.Fatalf("%s up to %v, back %v: %d events, want %d, in order", key, to, back, len(got), len(want))
					}
				}
				if _, _, err := askTwice(v, &o, to); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// What is kept does not grow with the number of events.
	h, err := v.History(&Object{Source: s.source.ID, Backend: []byte("b"), Tenant: []byte("default"), Key: []byte("hot")}, Position{}, end, true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for e, err := h.Next(); e != nil || err != nil; e, err = h.Next() {
		kept := 0
		for _, track := range h.media {
			kept += cap(track.rows)
		}
		if err != nil || kept > historyRows {
			t.Fatalf("%d rows are kept, %v", kept, err)
		}
	}
}
