package query

import (
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// benchCache records events of a cache's life, so many a message. Every loseEvery-th message is lost; 0: none.
func benchCache(b *testing.B, events, batch, loseEvery int) *Engine {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	j, err := journal.Open(dir, nil, journal.Options{})
	must(err)
	r := recordInto(b, j, "bench")
	traffic := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Tenants: 3}, batch, 1_795_985_000_000)
	for n := 1; (n-1)*batch < events; n++ {
		if frames, ms := traffic.Next(); loseEvery == 0 || n%loseEvery != 0 {
			r.add(ms, frames[:])
		}
	}
	r.end()
	x, err := index.Open(j, true, index.Options{})
	must(err)
	must(x.CatchUp(b.Context(), nil))
	must(x.Flush())
	b.Cleanup(func() {
		must(x.Close())
		must(j.Close())
	})
	return &Engine{Journal: j, Index: x}
}

// BenchmarkLifetimes counts the lifetimes of a cache; one operation is one event's row.
func BenchmarkLifetimes(b *testing.B) {
	for _, by := range []string{"tenant", "group"} {
		b.Run("by="+by, func(b *testing.B) {
			e := benchCache(b, b.N, 64, 0)
			b.ResetTimer()
			err := e.Lifetimes(b.Context(), &LifetimesQuery{By: by}, nil, func(*LifetimesOut) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkGapsInDoubt counts what losses put in doubt; one operation is one event's row.
func BenchmarkGapsInDoubt(b *testing.B) {
	for _, c := range []struct {
		name             string
		batch, loseEvery int
	}{{"some", 64, 20}, {"many", 8, 2}} {
		b.Run(c.name, func(b *testing.B) {
			e := benchCache(b, b.N, c.batch, c.loseEvery)
			b.ResetTimer()
			losses := 0
			err := e.Gaps(b.Context(), &GapsQuery{}, nil, func(*GapOut) error { losses++; return nil })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(losses), "losses")
		})
	}
}
