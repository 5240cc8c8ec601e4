package query

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// fillJournal appends events of a cache's life, 64 a message, to a fresh journal on disk.
func fillJournal(b *testing.B, events int) *journal.Journal {
	b.Helper()
	j, err := journal.Open(b.TempDir(), nil, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := recordInto(b, j, "bench")
	traffic := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Tenants: 3}, 64, 1_795_985_000_000)
	for made := 0; made < events; made += 64 {
		frames, ms := traffic.Next()
		r.add(ms, frames[:])
	}
	r.end()
	r.must(j.Seal(b.Context()))
	b.Cleanup(func() { j.Close() })
	return j
}

// BenchmarkLog is log from a journal on disk into a file, as JSON lines; an operation is an event.
func BenchmarkLog(b *testing.B) {
	j := fillJournal(b, b.N)
	e := &Engine{Journal: j}
	file, err := os.Create(filepath.Join(b.TempDir(), "log.ndjson"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 64<<10)
	var line []byte
	bytes := 0
	b.ReportAllocs()
	b.ResetTimer()
	err = e.Log(b.Context(), LogOptions{}, nil, func(l *LogLine) error {
		line = append(l.AppendJSON(line[:0]), '\n')
		bytes += len(line)
		_, err := out.Write(line)
		return err
	})
	if err != nil || out.Flush() != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/event")
}

// BenchmarkActivity counts all events; an operation is an event.
func BenchmarkActivity(b *testing.B) {
	j := fillJournal(b, b.N)
	e := &Engine{Journal: j}
	b.ReportAllocs()
	b.ResetTimer()
	events := uint64(0)
	err := e.Activity(b.Context(), ActivityOptions{}, nil, func(a *ActivityBucket) error {
		events += a.Events
		return nil
	})
	if err != nil || events < uint64(b.N) {
		b.Fatal(events, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
