package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// rest are the events that a History still gives.
func rest(h *History) (out []Event, err error) {
	for {
		e, err := h.Next()
		if err != nil || e == nil {
			return out, err
		}
		out = append(out, *e)
	}
}

// sameEvents compares Events with History.
func sameEvents(v *View, o *Object, from, to Position, back bool) error {
	var lists [2][]Event
	for i, open := range []opener{v.Events, v.History} {
		h, err := open(o, from, to, back)
		if err != nil {
			return err
		}
		list, err := rest(h)
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
		lists[i] = list
	}
	if !reflect.DeepEqual(lists[0], lists[1]) {
		return fmt.Errorf("%+v from %v to %v, back %v, in a view of offset %d:\nEvents  %+v\nHistory %+v", *o, from, to, back, v.Applied(), lists[0], lists[1])
	}
	return nil
}

// TestEvents: of objects with corrections on several media, which share a position, Events gives what History does, also to one who goes on
// reading while others are asked for, and the media that follow are those of the rows.
func TestEvents(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	w := newWorld(t, seed, 1)
	for range 20 {
		w.add(15)
		h := w.begun()
		w.add(2)
		var entries []reading.Entry
		for _, key := range testKeys[:4] {
			for _, medium := range testMedia[:3] {
				entries = append(entries, reading.Entry{What: reading.Present, Key: []byte(key), Medium: []byte(medium)})
			}
		}
		w.ended(h, h, 0, entries...)
	}
	x := w.openIndex(testOptions(vfs.NewMem()))
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := view(t, x)
	defer v.Close()
	position := func() Position {
		switch rng.IntN(3) {
		case 0:
			return Position{}
		case 1:
			return Behind(v.Applied())
		}
		return Position{1 + rng.Uint64N(v.Applied()), uint32(rng.IntN(4))}
	}
	type reader struct {
		h    *History
		want []Event
	}
	var open []reader
	shared := 0
	for range 3000 {
		o, from, to, back := anyObject(rng), position(), position(), rng.IntN(2) == 0
		if len(open) < 3 && rng.IntN(2) == 0 {
			all, err := v.History(o, from, to, back)
			if err != nil {
				t.Fatal(err)
			}
			want, err := rest(all)
			if err := errors.Join(err, all.Close()); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if i > 0 && want[i].Position == want[i-1].Position {
					shared++
				}
			}
			h, err := v.Events(o, from, to, back)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, reader{h, want})
		}
		if err := sameEvents(v, o, from, to, back); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, _, err := askTwice(v, o, to); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := 0; i < len(open); i++ {
			r := &open[i]
			e, err := r.h.Next()
			switch {
			case err != nil || (e == nil) != (len(r.want) == 0) || e != nil && !reflect.DeepEqual(*e, r.want[0]):
				t.Fatalf("seed %d: read on beside others: %+v, %v, want %+v", seed, e, err, r.want)
			case e == nil:
				if err := r.h.Close(); err != nil {
					t.Fatal(err)
				}
				open = slices.Delete(open, i, i+1)
				i--
			default:
				r.want = r.want[1:]
			}
		}
	}
	if shared == 0 {
		t.Fatal("no two events shared a position")
	}
}
