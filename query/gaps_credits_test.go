package query

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/reading"
)

// spans of losses answer what all of them do, whatever is kept of questions before.
func TestCreditsKept(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	s := newScripted(t)
	c := reading.Counters{Batches: 1, Events: 1}
	s.send(0, true, "a")
	polled := func() { // as a recorder does behind a loss, or without one
		before := c
		c.Batches, c.Events = c.Batches+1, c.Events+1
		s.poll(&before, &c)
	}
	record := func(n int) {
		for range n {
			switch rng.IntN(10) {
			case 0:
				s.send(0, true, "k")
			case 1: // another process begins anew
				c = reading.Counters{Batches: 1, Events: 1}
				s.seq, s.id = 0, 0
				s.send(0, true, "r")
			case 2:
				polled()
			default:
				lost := 1 + rng.Uint64N(5)
				c.Dropped += lost * rng.Uint64N(2)
				s.send(lost, rng.IntN(4) == 0, "k")
				if rng.IntN(3) > 0 {
					polled()
				}
			}
		}
	}
	told := func(e *Engine, from, to uint64) (out []*GapOut) {
		t.Helper()
		q := &GapsQuery{Span: Span{From: When{Kind: AtOffset, Offset: from}, To: When{Kind: AtOffset, Offset: to}}}
		s.must(e.Gaps(t.Context(), q, nil, func(g *GapOut) error { out = append(out, g); return nil }))
		return out
	}
	kept := *s.e
	kept.Credits = &CreditCache{}
	kept.Credits.sources = map[uint32]*creditTrail{}
	for range 4 {
		record(150)
		all := told(s.e, 1, s.j.Durable())
		for _, source := range s.j.Sources() {
			if kept.Credits.sources[source.ID] == nil {
				kept.Credits.sources[source.ID] = &creditTrail{every: 3}
			}
		}
		attributed := 0
		for range 40 {
			i := rng.IntN(len(all))
			j := i + rng.IntN(min(8, len(all)-i))
			var want []*GapOut // one message may show several
			for _, g := range all {
				if all[i].FirstOffsetAfter <= g.FirstOffsetAfter && g.FirstOffsetAfter <= all[j].FirstOffsetAfter {
					want = append(want, g)
				}
			}
			got := told(&kept, all[i].FirstOffsetAfter, all[j].FirstOffsetAfter)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: losses %d to %d of %d:\n%s\nwant\n%s", seed, i, j, len(all), lossLines(t, got), lossLines(t, want))
			}
			for _, g := range got {
				if g.Attribution != nil {
					attributed++
				}
			}
		}
		if attributed < 20 {
			t.Errorf("seed %d: %d losses were attributed", seed, attributed)
		}
	}
	for id, trail := range kept.Credits.sources {
		if len(trail.states) < 20 {
			t.Errorf("seed %d: of source %d %d states are kept", seed, id, len(trail.states))
		}
	}
}

func lossLines(t *testing.T, losses []*GapOut) string {
	t.Helper()
	s := ""
	for _, g := range losses {
		b, err := AppendJSON(nil, g)
		if err != nil {
			t.Fatal(err)
		}
		s += string(b) + "\n"
	}
	return s
}

// What is kept is bounded, and the place that is found is the last before an offset.
func TestCreditCacheBounds(t *testing.T) {
	var c CreditCache
	for i := range uint64(10 * creditPlaces) {
		if i%uint64(c.spacing(1)/creditSpacing) == 0 {
			c.keep(1, creditState{at: 10 * (i + 1)})
		}
	}
	trail := c.sources[1]
	if n := len(trail.states); n >= creditPlaces || n < creditPlaces/4 || trail.every <= creditSpacing {
		t.Errorf("%d states, each %d", n, trail.every)
	}
	last := trail.states[len(trail.states)-1].at
	for _, w := range []struct{ offset, at uint64 }{{1, 0}, {trail.states[0].at, 0}, {trail.states[0].at + 1, trail.states[0].at}, {last + 1000, last}, {last, trail.states[len(trail.states)-2].at}} {
		if got := c.before(1, w.offset); got.at != w.at {
			t.Errorf("before %d: %d, want %d", w.offset, got.at, w.at)
		}
	}
	if got := (*CreditCache)(nil).before(1, 5); got != (creditState{from: 1}) {
		t.Errorf("where nothing is kept: %+v", got)
	}
	for i := range uint32(2 * creditSources) {
		c.keep(i+2, creditState{at: 1})
	}
	if n := len(c.sources); n > creditSources {
		t.Errorf("%d sources", n)
	}
	if fmt.Sprint(c.before(7, 1)) != fmt.Sprint(creditState{from: 1}) {
		t.Error("a source of which nothing lies before")
	}
}
