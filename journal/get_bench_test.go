package journal_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
)

// BenchmarkGet reads single messages by number, any of all: with the default of memory for opened blocks, and with none. cpu-us/op is
// all processor time that the process took, that of collecting garbage too.
func BenchmarkGet(b *testing.B) {
	for _, c := range []struct {
		name            string
		batch, messages int
	}{
		{"events=64", 64, 15_625},
		{"events=1", 1, 300_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			source := fill(b, dir, traffic(c.batch, c.messages), max(1, 1000/c.batch))
			for _, memory := range []struct {
				name  string
				bytes int
			}{{"kept", 0}, {"none", -1}} {
				b.Run(memory.name, func(b *testing.B) {
					j, err := journal.Open(dir, nil, journal.Options{MessageCache: memory.bytes})
					if err != nil {
						b.Fatal(err)
					}
					defer j.Close()
					rng := rand.New(rand.NewPCG(1, 2))
					var r journal.Lone
					get := func(n int) {
						for range n {
							if err := j.LoneBySeq(&r, source, 1, 1+rng.Uint64N(uint64(c.messages))); err != nil {
								b.Fatal(err)
							}
						}
					}
					get(5000)
					b.ReportAllocs()
					b.ResetTimer()
					begun := processor(b)
					get(b.N)
					b.ReportMetric((processor(b)-begun)/float64(b.N), "cpu-us/op")
				})
			}
		})
	}
}

// fill makes a journal of messages, and closes it; it returns their source.
func fill(b *testing.B, dir string, recs []capture.Record, perGroup int) uint32 {
	b.Helper()
	j, feed, source := fed(b, dir)
	for len(recs) > 0 {
		g := j.NewGroup()
		n := min(len(recs), perGroup)
		for i := range recs[:n] {
			if _, err := feed.Add(g, &recs[i], false); err != nil {
				b.Fatal(err)
			}
		}
		recs = recs[n:]
		feed.Save(g)
		if err := g.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(j.Sync(), j.Seal(context.Background()), j.Flush(), j.Close()); err != nil {
		b.Fatal(err)
	}
	return source
}

// processor is the processor time of this process in us.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
