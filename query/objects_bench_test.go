package query

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

var (
	pastEvents = flag.Int("past.events", 500_000, "how many events benchmarks of the past record")
	pastDir    = flag.String("past.dir", "", "where they are kept for the next time; empty: nowhere")
)

const pastTime = 1_795_985_000_000 // ms

// pastEngine is an engine over events of a cache's life, 64 a message, 300,000 a minute.
func pastEngine(b *testing.B) *Engine {
	b.Helper()
	dir := *pastDir
	if dir == "" {
		dir = b.TempDir()
	}
	kept := filepath.Join(dir, "complete")
	_, err := os.Stat(kept)
	fresh := err != nil
	j, err := journal.Open(dir, nil, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	if fresh {
		recordPast(b, j, *pastEvents)
	}
	x, err := index.Open(j, true, index.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close() })
	if err := x.CatchUp(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	if fresh {
		if err := x.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(kept, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return &Engine{Journal: j, Index: x}
}

func recordPast(b *testing.B, j *journal.Journal, events int) {
	b.Helper()
	r := recordInto(b, j, "past")
	traffic := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Tenants: 3}, 64, pastTime)
	traffic.EventsPerMS = 5
	for made := 0; made < events; made += 64 {
		frames, ms := traffic.Next()
		r.add(ms, frames[:])
	}
	r.end()
}

// BenchmarkObjectsCount counts all objects at a moment before the newest tenth of the events. One operation is one count.
// For the figure: go test ./query -run NONE -bench ObjectsCount -past.events 20000000 -past.dir /tmp/past
func BenchmarkObjectsCount(b *testing.B) {
	e := pastEngine(b)
	at := pastTime + int64(*pastEvents)*9/10/5
	b.ReportAllocs()
	b.ResetTimer()
	looked := uint64(0)
	for range b.N {
		c, err := e.CountObjects(b.Context(), ObjectsQuestion{At: When{Kind: AtTime, Ms: at}, State: AnyState}, nil)
		if err != nil {
			b.Fatal(err)
		}
		looked += c.Objects
	}
	b.ReportMetric(float64(looked)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(looked)/float64(b.N), "objects/op")
}

// BenchmarkObjectsList lists objects as JSON, up to a million of them. One operation is one object.
func BenchmarkObjectsList(b *testing.B) {
	e := pastEngine(b)
	b.ReportAllocs()
	b.ResetTimer()
	var line []byte
	for left := b.N; left > 0; {
		n := uint64(0)
		err := e.Objects(b.Context(), ObjectsQuestion{State: AnyState, Limit: uint64(left)}, nil, func(l *ObjectLine) error {
			n++
			line = l.AppendJSON(line[:0])
			_, err := io.Discard.Write(line)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		left -= int(n)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

// BenchmarkDiffMinute compares two moments a minute (300,000 events) apart, in the middle of what is recorded. One operation is
// one diff with all its changes as JSON.
func BenchmarkDiffMinute(b *testing.B) {
	e := pastEngine(b)
	from := pastTime + int64(*pastEvents)/2/5
	q := DiffQuestion{From: When{Kind: AtTime, Ms: from}, To: When{Kind: AtTime, Ms: from + time.Minute.Milliseconds()}}
	b.ReportAllocs()
	b.ResetTimer()
	events, changes := uint64(0), uint64(0)
	var line []byte
	for range b.N {
		s, err := e.Diff(b.Context(), q, nil, func(l *ChangeLine) error {
			line = l.AppendJSON(line[:0])
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		events += s.Events
		changes += s.Gained + s.Lost
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
	b.ReportMetric(float64(changes)/float64(b.N), "changes/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
}
