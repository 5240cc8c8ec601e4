package query

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// TestDropsCountedBeforeShown: a poll counts the drops of a loss that only a later message shows; the next losses are credited with them.
func TestDropsCountedBeforeShown(t *testing.T) {
	s := newScripted(t)
	count := func(batches, dropped uint64) *reading.Counters {
		return &reading.Counters{Batches: batches, Events: batches, Dropped: dropped}
	}
	type want struct {
		dropped, earlier uint64
		all              bool
		text             string
	}
	var wants []want
	loss := func(lost uint64, numbered bool, w want) {
		s.send(lost, numbered, "k")
		s.send(0, true, "l")
		wants = append(wants, w)
	}
	s.send(0, true, "a")
	// As it was seen: one poll holds the drops of two losses.
	loss(1700, false, want{3153, 0, true, "went from 3191 to 6344, which explains all 1700 missing numbers;"})
	s.poll(count(1, 3191), count(3, 6344))
	loss(1453, false, want{0, 1453, true, "stayed at 6344, and 1453 counted before that had not shown yet, which explains all 1453 missing numbers;"})
	s.poll(count(4, 6344), count(5, 6344))
	// Counted by a poll that was not kept, since no loss had been seen then.
	loss(20, false, want{0, 20, true, "which explains all 20 missing numbers"})
	s.poll(count(8, 6364), count(9, 6364))
	// What waits may be shown later still: it proves nothing of what was lost on the way, and does not acquit the publisher.
	loss(1, false, want{6, 0, true, "which explains the 1 missing number;"})
	s.poll(count(10, 6364), count(11, 6370))
	loss(5, true, want{0, 5, false, "the publisher dropped at most 5 of these 5 itself"})
	s.poll(count(12, 6370), count(13, 6370))
	loss(5, false, want{0, 5, true, "which explains all 5 missing numbers;"})
	s.poll(count(14, 6370), count(15, 6370))
	// All is used up: nothing is credited twice.
	loss(10, false, want{0, 0, false, "explains none of the 10 missing numbers; make the publisher's event queue larger, or give its sending thread CPU, on master-7, and look at the network too."})
	s.poll(count(16, 6370), count(17, 6370))
	// Drops that may be its own are not credited to the next loss.
	loss(3, false, want{4, 0, true, "explains all 3 missing numbers;"})
	s.poll(count(18, 6370), count(19, 6374))
	loss(3, false, want{0, 0, false, "explains none of the 3 missing numbers;"})
	s.poll(count(20, 6374), count(21, 6374))
	// Another process: nothing is carried over.
	loss(1, false, want{100, 0, true, "which explains the 1 missing number;"})
	s.poll(count(22, 6374), count(23, 6474))
	s.send(1, false, "r")
	wants = append(wants, want{text: "-"})
	s.poll(count(24, 6474), count(1, 0))
	loss(7, false, want{0, 0, false, "explains none of the 7 missing numbers"})
	s.poll(count(2, 0), count(3, 0))
	check := func(got []*GapOut, wants []want) {
		t.Helper()
		if len(got) != len(wants) {
			t.Fatalf("%d losses, want %d", len(got), len(wants))
		}
		for i, w := range wants {
			a := got[i].Attribution
			switch {
			case w.text == "-":
				if a != nil {
					t.Errorf("loss %d: %+v, want none", i, a)
				}
			case a == nil:
				t.Errorf("loss %d: nothing, want %+v", i, w)
			case a.Dropped != w.dropped || a.DroppedEarlier != w.earlier || a.ExplainsAll != w.all || !strings.Contains(a.Text, w.text):
				t.Errorf("loss %d: %+v\nwant %+v", i, a, w)
			}
		}
	}
	got := s.losses()
	check(got, wants)
	// A question about the second only answers the same.
	var some []*GapOut
	span := Span{From: When{Kind: AtOffset, Offset: got[1].FirstOffsetAfter}}
	s.must(s.e.Gaps(t.Context(), &GapsQuery{Span: span}, nil, func(g *GapOut) error { some = append(some, g); return nil }))
	check(some, wants[len(wants)-len(some):])
	if len(some) == 0 || len(some) == len(got) {
		t.Errorf("%d of %d losses behind an offset", len(some), len(got))
	}
}

// TestDropsTail: the end of the stream is found missing by two equal polls, so the counters never move between them.
func TestDropsTail(t *testing.T) {
	at := func(batches, dropped uint64) *reading.Counters {
		return &reading.Counters{Batches: batches, Events: batches, Dropped: dropped}
	}
	tail := func(missing uint64) *lostBetween { return &lostBetween{losses: 1, other: missing, tail: true} }
	var d drops
	d.pass(&reading.Status{Counters: at(10, 0)})
	c, ok := d.settle(&reading.Status{Before: at(10, 4), Counters: at(10, 4)}, tail(4))
	if !ok || !c.allOthers || d.waiting != 0 {
		t.Errorf("4 of 4: %+v, %v, then %+v", c, ok, d)
	}
	c, ok = d.settle(&reading.Status{Before: at(10, 5), Counters: at(10, 5)}, tail(4))
	if !ok || c.allOthers || c.others != 1 || d.waiting != 0 {
		t.Errorf("1 of 4: %+v, %v, then %+v", c, ok, d)
	}
	d = drops{}
	if c, ok = d.settle(&reading.Status{Before: at(10, 5), Counters: at(10, 5)}, tail(4)); !ok || c.allOthers || !c.unsure {
		t.Errorf("nothing known of before: %+v, %v", c, ok)
	}
	out := &Attribution{DroppedBefore: &at(10, 5).Dropped, DroppedAfter: 5}
	attribute(continuity.TailLoss, &pollsAround{status: &index.SourceStatus{Status: reading.Status{From: "http://m:1"}}, lost: *tail(4), credit: c}, out)
	if want := "Lost on the way, or dropped by the publisher before it was asked (dropped_events stayed at 5)"; !strings.HasPrefix(out.Text, want) {
		t.Errorf("%q, want %q", out.Text, want)
	}
	if d.settle(&reading.Status{Before: at(10, 5), Counters: at(2, 5)}, tail(1)); d.known {
		t.Errorf("another process: %+v", d)
	}
}

// TestDropsModel: a publisher that drops, polls in any order with what shows it, and a network that loses too. No more is explained than was
// counted, and where the network lost nothing, all is.
func TestDropsModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		var d drops
		network := rng.IntN(2) == 0
		last := reading.Counters{Batches: 1, Dropped: rng.Uint64N(100)}
		d.pass(&reading.Status{Counters: &last})
		first := last.Dropped
		c := last // as they are now
		hidden, explained := uint64(0), uint64(0)
		for range 30 {
			before := c
			for range rng.IntN(3) { // polls that are not kept
				n := rng.Uint64N(10)
				c.Dropped, hidden = c.Dropped+n, hidden+n
				before = c
			}
			n := rng.Uint64N(10)
			c.Dropped, hidden = c.Dropped+n, hidden+n
			lost := lostBetween{losses: 2, queue: rng.Uint64N(hidden + 1)}
			hidden -= lost.queue
			if network {
				lost.other = rng.Uint64N(5)
				lost.queue += rng.Uint64N(3) // what the continuity of ids cannot tell from a drop
			}
			after := c
			got, ok := d.settle(&reading.Status{Before: &before, Counters: &after}, &lost)
			if !ok {
				t.Fatalf("seed %d: nothing told of %+v, %+v", seed, before, after)
			}
			explained += got.queue
			if got.allOthers {
				explained += lost.other
			}
			if explained > c.Dropped-first || got.queue > lost.queue || got.others > lost.other {
				t.Fatalf("seed %d: %d explained by %d drops: %+v of %+v", seed, explained, c.Dropped-first, got, lost)
			}
			if !network && got.queue != lost.queue {
				t.Fatalf("seed %d: %+v of %+v, though all were counted before they showed", seed, got, lost)
			}
		}
	}
}
