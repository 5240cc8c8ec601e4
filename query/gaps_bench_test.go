package query

import (
	"context"
	"flag"
	"syscall"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

var manyLosses = flag.Int("gaps.losses", 100_000, "losses that BenchmarkGapsPage records")

// lossy records losses of the publisher's queue, each with a poll behind it, and returns the offsets of the messages that showed them.
func lossy(b *testing.B, n int) (*Engine, []uint64) {
	b.Helper()
	j, err := journal.Open(b.TempDir(), nil, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	r := recordInto(b, j, "lossy")
	encoder := event.NewEncoder(event.EncodeOptions{LegacyCompat: true, ObjectKey: true})
	ms, seq, id, dropped := int64(pastTime), uint64(0), uint64(0), uint64(0)
	var at []uint64
	send := func(lost uint64) {
		ms, seq, id = ms+1, seq+1+lost, id+1
		frame := event.SeqFrame(seq)
		r.add(ms, [][]byte{{}, frame[:], encoder.AppendPayload(nil, ms, []event.Fields{{Type: event.Stored, ID: id, Tenant: "default", Medium: "cpu", Key: "k"}}, 0)})
	}
	counters := func() *reading.Counters {
		return &reading.Counters{Batches: seq - dropped, Events: seq - dropped, Dropped: dropped}
	}
	send(0)
	for i := range n {
		before := counters()
		dropped += 1 + uint64(i%3)
		send(1 + uint64(i%3))
		st := reading.Status{From: "http://master-7:9003", Facts: []string{reading.FactCounters}, Counters: counters(), Before: before}
		offset, err := r.feed.Fact(r.g, journal.PublisherStatus, ms*1e6, continuity.Verdict{}, &st)
		r.must(err)
		at = append(at, offset-1)
		send(0)
	}
	r.end()
	x, err := index.Open(j, true, index.Options{})
	r.must(err)
	b.Cleanup(func() { x.Close() })
	r.must(x.CatchUp(b.Context(), nil))
	return &Engine{Journal: j, Index: x, Credits: &CreditCache{}}, at
}

// cpu is how much processor time this process took so far, in ms.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	ms := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e3 + float64(t.Usec)/1e3 }
	return ms(u.Utime) + ms(u.Stime)
}

// BenchmarkGapsPage asks for 100 losses of many: the first, those in the middle and the last, in processor time.
func BenchmarkGapsPage(b *testing.B) {
	e, at := lossy(b, *manyLosses)
	const page = 100
	for _, c := range []struct {
		name  string
		first int
	}{{"first", 0}, {"middle", len(at) / 2}, {"last", len(at) - page}} {
		b.Run(c.name, func(b *testing.B) {
			q := &GapsQuery{NoObjects: true, Span: Span{
				From: When{Kind: AtOffset, Offset: at[c.first]}, To: When{Kind: AtOffset, Offset: at[c.first+page-1]},
			}}
			begun := cpu(b)
			for range b.N {
				n := 0
				err := e.Gaps(context.Background(), q, nil, func(g *GapOut) error {
					if g.Attribution == nil || !g.Attribution.ExplainsAll {
						b.Fatalf("%+v", g)
					}
					n++
					return nil
				})
				if err != nil || n != page {
					b.Fatalf("%d losses, %v", n, err)
				}
			}
			b.ReportMetric((cpu(b)-begun)/float64(b.N), "cpu-ms/op")
		})
	}
}
