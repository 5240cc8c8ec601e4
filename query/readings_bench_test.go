package query

import (
	"fmt"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// BenchmarkObjectsCountRead counts 1,000,000 objects that a loss put in doubt (-past.events of them): in doubt; right behind a reading
// of the master that agrees; behind one with an exception for each tenth; and behind events about each second since.
func BenchmarkObjectsCountRead(b *testing.B) {
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	n := *pastEvents
	j, err := journal.Open(b.TempDir(), nil, journal.Options{})
	must(err)
	defer j.Close()
	x, err := index.Open(j, true, index.Options{})
	must(err)
	defer x.Close()
	src, err := j.EnsureSource("past", nil, nil)
	must(err)
	feed, err := recorder.NewFeed(j, src.ID)
	must(err)
	at, seq, id := int64(pastTime), uint64(0), uint64(0)
	encoder := event.NewEncoder(event.EncodeOptions{LegacyCompat: true, ObjectKey: true})
	key := func(i int) string { return fmt.Sprintf("%064x_0_k", uint64(i)*0x9e3779b97f4a7c15) }
	g := j.NewGroup()
	commit := func() {
		feed.Save(g)
		must(g.Commit())
		g = j.NewGroup()
	}
	send := func(keys []string) {
		at, seq = at+1, seq+1
		var events []event.Fields
		for _, k := range keys {
			id++
			events = append(events, event.Fields{Type: event.Stored, ID: id, Tenant: "default", Medium: "cpu", Key: k})
		}
		frame := event.SeqFrame(seq)
		_, err := feed.Add(g, &capture.Record{Kind: capture.Message, Received: at * 1e6, Frames: [][]byte{{}, append([]byte{}, frame[:]...), encoder.AppendPayload(nil, at, events, 0)}}, false)
		must(err)
		if g.Raw() >= 1<<20 {
			commit()
		}
	}
	fill := func(step int) {
		var keys []string
		for i := 0; i < n; i += step {
			if keys = append(keys, key(i)); len(keys) == 63 {
				send(keys)
				keys = keys[:0]
			}
		}
		send(append(keys, key(0)))
	}
	read := func(exceptions int) {
		at++
		h, err := feed.Fact(g, journal.ReconciliationBegun, at*1e6, continuity.Verdict{}, &reading.Begun{})
		must(err)
		var parts [][]byte
		for i := 0; i < exceptions; i++ {
			if i%10_000 == 0 {
				parts = append(parts, reading.AppendPart(nil, h, nil, []byte("default")))
			}
			last := len(parts) - 1
			parts[last] = reading.AppendEntry(parts[last], &reading.Entry{What: reading.Unsaid, Key: []byte(key(i * 10))})
		}
		_, err = feed.End(g, at*1e6, parts, &reading.Ended{Begun: h, Through: h, Scopes: []reading.Scope{{Tenant: []byte("default")}}, Exceptions: exceptions})
		must(err)
		commit()
	}
	count := func(name string) {
		commit()
		must(j.Sync())
		must(x.CatchUp(b.Context(), nil))
		must(x.Flush())
		e := &Engine{Journal: j, Index: x}
		b.Run(name, func(b *testing.B) {
			var c *ObjectCounts
			b.ReportAllocs()
			for range b.N {
				var err error
				if c, err = e.CountObjects(b.Context(), ObjectsQuestion{State: AnyState}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.Objects)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
			b.ReportMetric(float64(c.Confirmed), "confirmed")
		})
	}
	fill(1)
	seq += 3
	send([]string{key(0)})
	send([]string{key(0)})
	count("in doubt")
	read(0)
	count("read")
	read(n / 10)
	count("read with exceptions")
	read(0)
	fill(2)
	count("read, and events since")
}
