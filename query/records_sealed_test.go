package query

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// Small blocks that are merged while they are read give each record once all the same.
func TestEachRecordOnceWhileBlocksAreMerged(t *testing.T) {
	j, err := journal.Open("data", nil, journal.Options{FS: vfs.NewMem(), NoSealer: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	source, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const records = 60
	for range records {
		g := j.NewGroup()
		g.Add(&journal.Header{Kind: journal.RecorderStarted, Source: source.ID, Verdict: continuity.Verdict{Epoch: 1}}, nil)
		if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	e := &Engine{Journal: j}
	all := []stretch{{Source: source, to: index.Behind(records)}}
	next, told := uint64(1), uint64(0)
	progress := func(done, total uint64) {
		if done < told || done > total || total != records {
			t.Errorf("%d of %d is told behind %d", done, total, told)
		}
		told = done
	}
	err = e.eachRecord(context.Background(), all, progress, func(r *record) error {
		if r.Offset != next {
			t.Fatalf("offset %d comes where %d was to", r.Offset, next)
		}
		if next++; next == 10 {
			return j.Seal(t.Context())
		}
		return nil
	})
	if err != nil || next != records+1 || told != records {
		t.Fatalf("up to offset %d of %d, told %d: %v", next-1, records, told, err)
	}
}
