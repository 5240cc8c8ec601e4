package query

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// TestPruneSources: of several sources, of which one may have fallen silent long before the horizon, each is answered about as before: at
// offsets from the horizon on, and at times that lie behind the newest that the source had announced by then.
func TestPruneSources(t *testing.T) {
	answered, refused, idle := 0, 0, 0
	for n := range pruneStreams() {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 31)), fs: vfs.NewMem(), checkpoints: 20}
		streams := []*oracle.Stream{oracle.Generate(seed, oracle.Options{}), oracle.Generate(seed+1000, oracle.Options{})}
		r.stream = streams[0]
		r.open()
		var feeds []*recorder.Feed
		var times []int64
		for i := range streams {
			s, err := r.j.EnsureSource(fmt.Sprint("s", i), nil, nil)
			r.must(err)
			feed, err := recorder.NewFeed(r.j, s.ID)
			r.must(err)
			feeds = append(feeds, feed)
			o := oracle.New()
			for _, rec := range streams[i].Records {
				o.Apply(rec)
			}
			times = append(times, o.Times()...)
		}
		at := []int{0, 0}
		silent := r.rng.IntN(2) == 0 // the second comes first, and then no more
		for at[0] < len(streams[0].Records) || at[1] < len(streams[1].Records) {
			i := r.rng.IntN(2)
			if silent {
				i = 1
			}
			if at[i] == len(streams[i].Records) {
				i = 1 - i
			}
			g := r.j.NewGroup()
			_, err := feeds[i].Add(g, &streams[i].Records[at[i]], false)
			r.must(err)
			at[i]++
			feeds[i].Save(g)
			r.must(g.Commit())
		}
		r.must(r.j.Sync())
		r.must(r.x.CatchUp(t.Context(), nil))
		ask := func(met bool) map[string]string {
			out := map[string]string{}
			e := &Engine{Journal: r.j, Index: r.x, Now: func() time.Time { return time.UnixMilli(1_900_000_000_000) }}
			rng := rand.New(rand.NewPCG(seed, 37))
			moments := []When{{}}
			for range 30 {
				moments = append(moments, When{Kind: AtTime, Ms: times[rng.IntN(len(times))] + rng.Int64N(3) - 1}, When{Kind: AtOffset, Offset: 1 + rng.Uint64N(r.j.Durable())})
			}
			moments = append(moments, When{Kind: AtTime, Ms: 1_899_000_000_000})
			for _, w := range moments {
				for i, s := range streams {
					var questions []Question
					for _, o := range s.Objects {
						questions = append(questions, Question{Name{Source: fmt.Sprint("s", i), Backend: append(Bytes{}, o.Backend...), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}})
					}
					answers, err := e.Lookup(t.Context(), questions, w)
					if pruned := (*PrunedError)(nil); met && errors.As(err, &pruned) {
						if w.Kind == Latest || w.Kind == AtOffset && w.Offset >= r.j.Horizon().Offset || w.Ms == 1_899_000_000_000 {
							t.Fatalf("seed %d, %+v: %v", seed, w, err)
						}
						refused++
						continue
					}
					r.must(err)
					for k, a := range answers {
						out[fmt.Sprintf("%+v %+v", w, questions[k])] = string(mustJSON(a))
						if met {
							if answered++; a.AsOf.Offset < r.j.Horizon().Offset {
								idle++
							}
						}
					}
				}
			}
			r.must(e.Gaps(t.Context(), &GapsQuery{NoObjects: true}, nil, func(g *GapOut) error {
				out[fmt.Sprintf("gap %s %d %s", g.Source, g.FirstOffsetAfter, g.Cause)] = string(mustJSON(g))
				return nil
			}))
			return out
		}
		whole := ask(false)
		for range 2 {
			_, err := r.x.Prune(t.Context(), r.rng.Uint64N(r.j.Durable()+1), index.BaselineOptions{}, nil)
			if errors.Is(err, index.ErrNothingToPrune) {
				continue
			}
			r.must(err)
			for k, got := range ask(true) {
				if got != whole[k] {
					t.Fatalf("seed %d, horizon %d, %s:\ngot  %s\nwant %s", seed, r.j.Horizon().Offset, k, got, whole[k])
				}
			}
		}
		r.close()
	}
	t.Logf("%d answers, %d of them as of what lies before the horizon, %d refused", answered, idle, refused)
	if pruneStreams() >= 20 && (answered == 0 || idle == 0 || refused == 0) {
		t.Error("the streams test too little")
	}
}
