package reconcile

import (
	"context"
	"encoding/binary"
	"testing"

	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

func keyOf(i int) string {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	return hex.EncodeToString(h[:]) + "_0_k"
}

// What it costs to look for events of 100,000 of 1,000,000 objects, in the order of their keys.
func BenchmarkTouched(b *testing.B) {
	const n = 1_000_000
	j, err := journal.Open(b.TempDir(), nil, journal.Options{NoSealer: true})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	x, err := index.Open(j, true, index.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	s, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	feed, err := recorder.NewFeed(j, s.ID)
	if err != nil {
		b.Fatal(err)
	}
	encoder := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	for i := 0; i < n; {
		g := j.NewGroup()
		for range 500 {
			var fields []event.Fields
			for range 63 {
				i++
				fields = append(fields, event.Fields{Type: event.Stored, ID: uint64(i), Timestamp: 1, Backend: "b0", Tenant: "default", Key: keyOf(i), Medium: cpu})
			}
			seq := event.SeqFrame(uint64(i / 63))
			rec := capture.Record{Kind: capture.Message, Received: worldStart.UnixNano(), Frames: [][]byte{{}, append([]byte{}, seq[:]...), encoder.AppendPayload(nil, 1, fields, 0)}}
			if _, err := feed.Add(g, &rec, false); err != nil {
				b.Fatal(err)
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
	if err := x.CatchUp(context.Background(), nil); err != nil {
		b.Fatal(err)
	}
	if err := x.Flush(); err != nil {
		b.Fatal(err)
	}
	si := &SourceIndex{Source: s.ID, Index: func() (*index.Index, error) { return x, nil }}
	var keys [][]byte
	for i := 1; i <= n; i += 10 {
		keys = append(keys, []byte(keyOf(i)))
	}
	slices.SortFunc(keys, func(a, c []byte) int { return slices.Compare(a, c) })
	scope := reading.Scope{Backend: []byte("b0"), Tenant: []byte("default")}
	for b.Loop() {
		for at := 0; at < len(keys); at += touchedAtOnce {
			part := keys[at:min(at+touchedAtOnce, len(keys))]
			if err := si.Touched(context.Background(), scope, part, 1<<40, j.Durable(), make([]bool, len(part))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(len(keys))*1e6, "µs/key")
}
