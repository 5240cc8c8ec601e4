package query

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// historyEvents is of all objects; a twentieth of them are of one, the hot object.
var historyEvents = flag.Int("history.events", 200_000, "events in the journal of BenchmarkHistoryHot and BenchmarkWhyHot; the figures are those of 20,000,000")

const (
	hotKey     = "7b3e52f4a1c09d8e6f5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f_0_k"
	hotStart   = 1_795_985_000_000 // ms
	hotPerFull = 4                 // of 80 events, so 5 %
)

// hotEngine is one over a journal in which the hot object has a twentieth of the events, evenly, among random ones. Every
// millionth event lies behind a lost message.
func hotEngine(b *testing.B) *Engine {
	b.Helper()
	dir := b.TempDir()
	j, err := journal.Open(dir, nil, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	r := recordInto(b, j, "bench")
	rng := rand.New(rand.NewPCG(1, 2))
	encoder := event.NewEncoder(event.EncodeOptions{ObjectKey: true, LegacyCompat: true})
	events := make([]event.Fields, 80)
	seq, id, ms := uint64(0), uint64(0), int64(hotStart)
	for made := 0; made < *historyEvents; made += len(events) {
		seq++
		if made/1_000_000 != (made+len(events))/1_000_000 {
			seq, id = seq+1, id+64
		}
		ms += 2
		for i := range events {
			id++
			f := event.Fields{Type: event.Stored, ID: id, Timestamp: ms, Backend: "b0", Tenant: "default", Medium: "cpu"}
			if f.Key = hotKey; i >= hotPerFull {
				f.Key = fmt.Sprintf("%016x%016x%016x%016x_0_k", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
			}
			if i%2 == 1 {
				f.Type = event.Removed
			}
			if i%4 >= 2 {
				f.Medium = "disk"
			}
			events[i] = f
		}
		number := event.SeqFrame(seq)
		r.add(ms, [][]byte{{}, number[:], encoder.AppendPayload(nil, ms, events, 0)})
	}
	r.end()
	x, err := index.Open(j, true, index.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	if err := x.CatchUp(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	if err := x.Flush(); err != nil {
		b.Fatal(err)
	}
	settle()
	return &Engine{Journal: j, Index: x}
}

// settle waits until compactions are done, a few minutes at most: they would be counted as if the questions cost that.
func settle() {
	for range 600 {
		before := cpuSeconds()
		time.Sleep(500 * time.Millisecond)
		if cpuSeconds()-before < 0.02 {
			return
		}
	}
}

// hotMoments are asked in turn: the default, and places all over the journal.
func hotMoments(e *Engine) []When {
	out := []When{{}}
	end := e.Journal.Durable()
	for i := range uint64(7) {
		out = append(out, When{Kind: AtOffset, Offset: 1 + end*i/7}, When{Kind: AtTime, Ms: hotStart + int64(end*i/7)*2})
	}
	return out
}

var hotName = Name{Source: "bench", Backend: Bytes("b0"), Tenant: Bytes(defaultTenant), Key: Bytes(hotKey)}

// BenchmarkHistoryHot reads a page of 100 lines of an object with a twentieth of all events: the newest, those from a moment on, the same
// with the original events; and all of them.
func BenchmarkHistoryHot(b *testing.B) {
	e := hotEngine(b)
	moments := hotMoments(e)
	history := func(ask func(i int) HistoryAsk) func(b *testing.B) {
		return func(b *testing.B) {
			lines, begun := 0, cpuSeconds()
			var buf []byte
			for i := 0; b.Loop(); i++ {
				a := ask(i)
				a.Name = hotName
				if err := e.History(b.Context(), &a, nil, func(v any) error {
					lines++
					var err error
					buf, err = AppendJSON(buf[:0], v)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
			b.ReportMetric((cpuSeconds()-begun)*1000/float64(b.N), "cpu-ms/op")
		}
	}
	b.Run("newest", history(func(i int) HistoryAsk { return HistoryAsk{Limit: 100, Span: Span{To: moments[i%4]}} }))
	b.Run("from", history(func(i int) HistoryAsk { return HistoryAsk{Limit: 100, Span: Span{From: moments[1+i%8]}} }))
	b.Run("raw", history(func(i int) HistoryAsk { return HistoryAsk{Limit: 100, Raw: true, Span: Span{From: moments[1+i%8]}} }))
	b.Run("all", history(func(int) HistoryAsk { return HistoryAsk{} }))
}

// BenchmarkWhyHot tells the story of such an object, at moments all over the journal.
func BenchmarkWhyHot(b *testing.B) {
	e := hotEngine(b)
	moments, begun := hotMoments(e), cpuSeconds()
	for i := 0; b.Loop(); i++ {
		if err := e.Why(b.Context(), hotName, moments[i%len(moments)], func(w *WhyOut) error {
			_, err := AppendJSON(nil, w)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuSeconds()-begun)*1000/float64(b.N), "cpu-ms/op")
}

// cpuSeconds is what this process used: on a busy machine it says more than the time that went by.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
