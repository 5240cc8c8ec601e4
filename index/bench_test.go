package index

import (
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

const benchTime = 1_795_985_000_000 // ms

// fill appends events of a cache's life to a fresh journal in dir, in batches of batchEvents.
func fill(tb testing.TB, dir string, events, batchEvents int) *journal.Journal {
	tb.Helper()
	j, err := journal.Open(dir, nil, journal.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := j.EnsureSource("bench", nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	feed, err := recorder.NewFeed(j, s.ID)
	if err != nil {
		tb.Fatal(err)
	}
	traffic := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Tenants: 3}, batchEvents, benchTime)
	var kept [3][]byte
	g := j.NewGroup()
	commit := func() {
		feed.Save(g)
		if err := g.Commit(); err != nil {
			tb.Fatal(err)
		}
		g = j.NewGroup()
	}
	for made := 0; made < events; made += batchEvents {
		frames, ms := traffic.Next()
		for i, f := range frames {
			kept[i] = append([]byte(nil), f...)
		}
		if _, err := feed.Add(g, &capture.Record{Kind: capture.Message, Received: ms * 1e6, Frames: append([][]byte(nil), kept[:]...)}, false); err != nil {
			tb.Fatal(err)
		}
		if g.Raw() >= 1<<20 {
			commit()
		}
	}
	commit()
	if err := j.Sync(); err != nil {
		tb.Fatal(err)
	}
	return j
}

// BenchmarkCatchUp is the materializer alone: one operation is one event, decoded from the journal and written. longest-ms is the longest time
// between two writes.
func BenchmarkCatchUp(b *testing.B) {
	j := fill(b, b.TempDir(), b.N, 64)
	defer j.Close()
	x, err := Open(j, true, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	longest, last := time.Duration(0), time.Now()
	if err := x.CatchUp(b.Context(), func(uint64) {
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
	}); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(longest.Seconds()*1e3, "longest-ms")
	b.ReportMetric(float64(x.Database().Levels[0].Sublevels), "sublevels")
	if err := x.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(x.Bytes())/float64(b.N), "B/event")
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
}
