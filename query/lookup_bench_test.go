package query

import (
	"encoding/hex"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

var (
	lookupEvents  = flag.Int("lookup.events", 200_000, "events in the journal of BenchmarkLookup; the figures are those of 1,000,000 events of 100,000 objects")
	lookupObjects = flag.Int("lookup.objects", 20_000, "live objects that they grow to")
	lookupBatch   = flag.Int("lookup.batch", 64, "events a message")
	lookupCache   = flag.Int64("lookup.cache", 0, "bytes for objects that were asked for, as index.Options.ObjectCache")
)

// lookupWorld is a journal of a cache's life, indexed and settled.
type lookupWorld struct {
	e       *Engine
	source  uint32
	objects []Question // live ones
	first   int64      // publisher time, ms
	last    int64
	seqs    uint64
}

func newLookupWorld(b *testing.B) *lookupWorld {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	j, err := journal.Open(b.TempDir(), nil, journal.Options{})
	must(err)
	b.Cleanup(func() { j.Close() })
	r := recordInto(b, j, "bench")
	w := &lookupWorld{source: r.source, first: 1_795_985_000_000}
	t := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Objects: *lookupObjects}, *lookupBatch, w.first)
	t.EventsPerMS = 100
	for made := 0; made < *lookupEvents || t.Rest() > 0; made += *lookupBatch {
		n := *lookupBatch
		if made >= *lookupEvents {
			n = min(n, t.Rest())
		}
		frames, ms := t.NextOf(n)
		r.add(ms, frames[:])
		w.last = ms
		w.seqs++
	}
	r.end()
	must(j.Seal(b.Context()))
	must(j.Flush())
	x, err := index.Open(j, true, index.Options{ObjectCache: *lookupCache})
	must(err)
	b.Cleanup(func() { x.Close() })
	must(x.CatchUp(b.Context(), nil))
	must(x.Flush())
	must(x.Settle(b.Context()))
	for o := range t.Objects() {
		w.objects = append(w.objects, Question{Name{Source: "bench", Backend: Bytes(mooncaketest.DefaultBackendID), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}})
	}
	w.e = &Engine{Journal: j, Index: x}
	settle()
	return w
}

// BenchmarkLookup asks for one object, or for 1000, that is there, was there at a moment, or never was, with one Asker; now/own with none. All
// objects were asked for before.
func BenchmarkLookup(b *testing.B) {
	w := newLookupWorld(b)
	rng := rand.New(rand.NewPCG(1, 2))
	asker := w.e.Asker()
	lookup := asker.Lookup
	run := func(name string, ask func(i int) ([]Question, When)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			begun := cpuSeconds()
			for i := 0; b.Loop(); i++ {
				q, at := ask(i)
				if _, err := lookup(b.Context(), q, at); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuSeconds()-begun)*1e6/float64(b.N), "cpu-us/op")
		})
	}
	var sink []*Answer
	for chunk := range slices.Chunk(w.objects, 1000) {
		var err error
		if sink, err = w.e.Lookup(b.Context(), chunk, When{}); err != nil || len(sink) != len(chunk) {
			b.Fatal(err)
		}
	}
	some := func() []Question { i := rng.IntN(len(w.objects)); return w.objects[i : i+1] }
	moments := make([]int64, 64)
	for i := range moments {
		moments[i] = w.first + rng.Int64N(w.last-w.first+1)
	}
	var raw [32]byte
	miss := []Question{w.objects[0]}
	few := w.objects[:min(1000, len(w.objects))]
	lookup = w.e.Lookup
	run("now/own", func(int) ([]Question, When) { return some(), When{} })
	run("now/ownbatch", func(int) ([]Question, When) {
		i := rng.IntN(max(1, len(w.objects)-1000))
		return w.objects[i : i+len(few)], When{}
	})
	lookup = asker.Lookup
	run("now/hit", func(int) ([]Question, When) { return some(), When{} })
	run("now/miss", func(i int) ([]Question, When) {
		for k := range raw {
			raw[k] = byte(rng.Uint32())
		}
		miss[0].Key = append(hex.AppendEncode(miss[0].Key[:0:0], raw[:]), "_0_k"...)
		return miss, When{}
	})
	run("now/batch", func(int) ([]Question, When) {
		i := rng.IntN(max(1, len(w.objects)-1000))
		return w.objects[i : i+len(few)], When{}
	})
	run("at/hot", func(int) ([]Question, When) {
		i := rng.IntN(len(few))
		return few[i : i+1], When{Kind: AtTime, Ms: moments[rng.IntN(len(moments))]}
	})
	run("at/uniform", func(int) ([]Question, When) {
		return some(), When{Kind: AtTime, Ms: w.first + rng.Int64N(w.last-w.first+1)}
	})
	run("at/offset", func(int) ([]Question, When) {
		return some(), When{Kind: AtOffset, Offset: 1 + rng.Uint64N(w.seqs)}
	})
	b.Run("history", func(b *testing.B) {
		b.ReportAllocs()
		begun := cpuSeconds()
		for b.Loop() {
			if err := w.e.History(b.Context(), &HistoryAsk{Name: some()[0].Name}, nil, func(any) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpuSeconds()-begun)*1e6/float64(b.N), "cpu-us/op")
	})
	b.Run("seq", func(b *testing.B) {
		b.ReportAllocs()
		begun := cpuSeconds()
		var r journal.Lone
		for b.Loop() {
			if err := w.e.Journal.LoneBySeq(&r, w.source, 1, 1+rng.Uint64N(w.seqs)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpuSeconds()-begun)*1e6/float64(b.N), "cpu-us/op")
	})
}
