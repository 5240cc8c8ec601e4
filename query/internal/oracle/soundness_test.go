package oracle

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seedFlag  = flag.Uint64("seed", 1, "first seed of the random streams")
	countFlag = flag.Int("streams", 0, "how many random streams; 0: each test's own number, a tenth of it with -short or -race")
)

// heard returns an oracle that has heard the whole stream.
func heard(s *Stream, r Repairs) *Oracle {
	o := NewRepaired(r)
	for _, r := range s.Records {
		o.Apply(r)
	}
	return o
}

// tally counts answers.
type tally struct{ answers, confirmed, present atomic.Int64 }

func (c *tally) String() string {
	n, sure, present := c.answers.Load(), c.confirmed.Load(), c.present.Load()
	return fmt.Sprintf("%d answers, %.1f %% confirmed (%d present, %d absent)",
		n, 100*float64(sure)/float64(max(n, 1)), present, sure-present)
}

// moments returns some of the publisher times around the batches of a stream, heard or not.
func moments(s *Stream, o *Oracle) []int64 {
	all := o.Times()
	for _, a := range s.announced {
		all = append(all, a.time, a.clock, a.clock+1)
	}
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), 60)]
}

// contradictions compares every confirmed answer about a stream with the truth, and reports those that differ.
func contradictions(s *Stream, o *Oracle, offsets, times *tally, truthAt func(int64) (Truth, bool), report func(question string, obj Object, medium string, got bool)) {
	check := func(c *tally, got State, truth Truth, obj Object, medium, question string, at int64) {
		c.answers.Add(1)
		if !got.Confirmed {
			return
		}
		c.confirmed.Add(1)
		if got.Present {
			c.present.Add(1)
		}
		if got.Present != truth.Present(obj, medium) {
			report(fmt.Sprintf("%s %d", question, at), obj, medium, got.Present)
		}
	}
	for _, obj := range s.Objects {
		for _, m := range s.Media {
			for i := range s.Records {
				check(offsets, o.AtOffset(uint64(i+1), obj, m), s.Truth[i], obj, m, "offset", int64(i+1))
			}
			if n := o.latest(); n > 0 {
				check(offsets, o.Latest(obj, m), s.Truth[n-1], obj, m, "latest", int64(n))
			}
		}
	}
	for _, t := range moments(s, o) {
		truth, ok := truthAt(t)
		if !ok {
			continue
		}
		for _, obj := range s.Objects {
			for _, m := range s.Media {
				check(times, o.AtTime(t, obj, m), truth, obj, m, "time", t)
			}
		}
	}
}

// TestConfirmedIsTrue is the promise itself: over random streams no confirmed answer contradicts the publisher.
func TestConfirmedIsTrue(t *testing.T) {
	promise(t, Options{}, Repairs{}, (*Stream).TruthAt, 3000)
}

// TestRepairedIsTrue makes all streams, also those for which the rules as written are too bold.
func TestRepairedIsTrue(t *testing.T) {
	all := Options{LoseSurvivors: true, UndatedAnywhere: true}
	t.Run("dated as R8 says", func(t *testing.T) { promise(t, all, Repairs{Clears: true, Undated: true}, (*Stream).TruthAt, 1000) })
	t.Run("dated by the clock", func(t *testing.T) {
		promise(t, all, Repairs{Clears: true, Undated: true}, (*Stream).TruthAtClock, 1000)
	})
}

func promise(t *testing.T, options Options, repairs Repairs, truthAt func(*Stream, int64) (Truth, bool), streams int) {
	if n := *countFlag; n > 0 {
		streams = n
	} else if testing.Short() || raceEnabled {
		streams /= 10
	}
	var offsets, times tally
	var records atomic.Int64
	causes := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan uint64)
	for range 2 {
		wg.Go(func() {
			for seed := range next {
				s := Generate(seed, options)
				records.Add(int64(len(s.Records)))
				o := heard(s, repairs)
				at := func(ms int64) (Truth, bool) { return truthAt(s, ms) }
				wrong := 0
				contradictions(s, o, &offsets, &times, at, func(question string, obj Object, medium string, got bool) {
					if wrong++; wrong <= 3 {
						t.Errorf("seed %d: %s: %q on %s is confirmed present=%v, which is not so", seed, question, obj, medium, got)
					}
				})
				mu.Lock()
				for _, g := range o.Gaps() {
					causes[g.Cause]++
				}
				mu.Unlock()
			}
		})
	}
	for i := range streams {
		if t.Failed() {
			break
		}
		next <- *seedFlag + uint64(i)
	}
	close(next)
	wg.Wait()
	t.Logf("%d streams from seed %d, %d records, gaps %v", streams, *seedFlag, records.Load(), causes)
	t.Logf("at offsets: %v", &offsets)
	t.Logf("at times:   %v", &times)
	for _, c := range []*tally{&offsets, &times} {
		if share := float64(c.confirmed.Load()) / float64(c.answers.Load()); share < 0.15 {
			t.Errorf("only %.3f of the answers are confirmed: the streams test too little", share)
		}
	}
}
