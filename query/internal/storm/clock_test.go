package storm

import (
	"errors"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// TestClockSteps: the recorder's clock steps back and forth by up to three hours, again and again. Offsets, positions and times of the publisher
// answer as the oracle says, which knows of our clock only that a batch must not be an hour ahead of it.
func TestClockSteps(t *testing.T) {
	seed := firstSeed(t)
	confirmed, withheld := 0, 0
	for n := range uint64(20) {
		r := newRun(seed+n, faultfs.NewCrashable(), func(m string) { t.Error(m) })
		// A moment without any batch whose time is used is before all for us, and behind all for the oracle. And a reading during which the
		// clock steps by hours is taken for one that was given up when the journal is pruned.
		r.mayWithhold = true
		var shift time.Duration
		for i := range r.stream.Records {
			if r.rng.IntN(8) == 0 {
				shift = time.Duration(r.rng.Int64N(int64(6*time.Hour))) - 3*time.Hour
			}
			r.stream.Records[i].Received += int64(shift)
		}
		if err := r.life(); err != nil {
			t.Fatalf("seed %d: %v", seed+n, err)
		}
		if err := r.left(r.fs, r.acked, r.taken); err != nil {
			t.Fatalf("seed %d: %v", seed+n, err)
		}
		confirmed += r.atTimes(t)
		withheld += r.withheld
	}
	if confirmed == 0 || withheld*10 > confirmed {
		t.Errorf("%d answers were confirmed, %d withheld", confirmed, withheld)
	}
}

// atTimes compares the answers at times of the publisher.
func (r *run) atTimes(t *testing.T) (confirmed int) {
	t.Helper()
	j, err := journal.Open(dir, nil, r.journalOptions(r.fs))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x, err := openIndex(j, r.indexOptions(r.fs))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.CatchUp(ctx, nil); err != nil {
		t.Fatal(err)
	}
	o := oracle.New()
	for i := range r.taken {
		r.taken[i].tell(o)
	}
	times := o.Times()
	r.rng.Shuffle(len(times), func(a, b int) { times[a], times[b] = times[b], times[a] })
	for _, ms := range times[:min(len(times), 20)] {
		err := r.sameAt(&query.Engine{Journal: j, Index: x}, o, source, query.When{Kind: query.AtTime, Ms: ms}, func(obj oracle.Object, medium string) oracle.State {
			s := o.AtTime(ms, obj, medium)
			if s.Confirmed {
				confirmed++
			}
			return s
		})
		if err != nil && !errors.As(err, new(*query.PrunedError)) {
			t.Fatalf("seed %d: %v", r.seed, err)
		}
	}
	return confirmed
}
