package journal_test

import (
	"context"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// traffic makes the messages beforehand, so that only the journal is measured.
func traffic(batchEvents, messages int) []capture.Record {
	const start = 1_700_000_000_000
	tr := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1}, batchEvents, start)
	recs := make([]capture.Record, messages)
	for i := range recs {
		frames, ms := tr.Next()
		recs[i] = capture.Record{Kind: capture.Message, Received: (ms + 1) * 1e6}
		for _, f := range frames {
			recs[i].Frames = append(recs[i].Frames, append([]byte(nil), f...))
		}
	}
	return recs
}

// fed is a new journal of one source, and what records of that are given to.
func fed(b *testing.B, dir string) (j *journal.Journal, feed *recorder.Feed, source uint32) {
	b.Helper()
	j, err := journal.Open(dir, nil, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	src, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	if feed, err = recorder.NewFeed(j, src.ID); err != nil {
		b.Fatal(err)
	}
	return j, feed, src.ID
}

// BenchmarkAppend is judging, compressing and synced commits, on the operating system's disk; one operation is one
// event. Groups hold as many messages as arrive in one sync under load ("busy"), or one ("light", sealed at the end).
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name            string
		batch, perGroup int
	}{
		{"events=64/busy", 64, 60},
		{"events=1/busy", 1, 1000},
		{"events=64/light", 64, 1},
		{"events=1/light", 1, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			recs := traffic(c.batch, min((b.N+c.batch-1)/c.batch, 200_000/c.batch))
			dir := b.TempDir()
			j, feed, _ := fed(b, dir)
			defer j.Close()
			events, raw := 0, 0
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; events < b.N; {
				g := j.NewGroup()
				for range c.perGroup {
					// Beyond the prepared messages they begin again: a restart of the publisher.
					if _, err := feed.Add(g, &recs[i%len(recs)], false); err != nil {
						b.Fatal(err)
					}
					for _, f := range recs[i%len(recs)].Frames {
						raw += len(f)
					}
					i++
					if events += c.batch; events >= b.N {
						break
					}
				}
				feed.Save(g)
				if err := g.Commit(); err != nil {
					b.Fatal(err)
				}
			}
			if err := j.Sync(); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			perSecond := float64(events) / b.Elapsed().Seconds()
			if err := j.Seal(context.Background()); err != nil {
				b.Fatal(err)
			}
			if err := j.Flush(); err != nil {
				b.Fatal(err)
			}
			s := j.Stats()
			if s.Totals.Events != uint64(events) {
				b.Fatalf("%d events counted, %d appended", s.Totals.Events, events)
			}
			b.ReportMetric(perSecond, "events/s")
			b.ReportMetric(float64(s.TableBytes)/float64(events), "B/event")
			b.ReportMetric(float64(raw)/float64(events), "raw-B/event")
		})
	}
}
