package main

import (
	"errors"
	"sort"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// recorded is what a journal at rest holds.
type recorded struct {
	objects  []object // every one that an event names, sorted
	records  uint64
	events   uint64 // with those before the horizon
	messages uint64
	last     uint64
	message  uint64 // offset of the last message
}

// readJournal opens the journal as any reader does, and decodes every record of it, from the horizon on.
func readJournal(t *testing.T, dir string) recorded {
	t.Helper()
	j, err := journal.OpenReadOnly(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var out recorded
	seen := map[object]bool{}
	var block *journal.Block
	var batch event.Batch
	horizon := j.Horizon()
	out.events = horizon.Events
	for after := horizon.Offset; ; after = block.Last() {
		if block, err = j.NextBlock(block, after); errors.Is(err, journal.ErrNotFound) {
			break
		} else if err != nil {
			t.Fatalf("behind offset %d: %v", after, err)
		}
		if block.First != after+1 && (after > horizon.Offset || block.First > after+1) {
			t.Errorf("the block behind offset %d begins at %d", after, block.First)
		}
		for i := range block.Len() {
			h := block.Header(i)
			if block.First+uint64(i) <= horizon.Offset {
				continue
			}
			out.records++
			if h.Kind != journal.Message {
				continue
			}
			out.messages++
			out.message = block.First + uint64(i)
			var scratch [8]byte
			frames, err := block.Frames(i, nil, &scratch)
			if err != nil {
				t.Fatalf("offset %d: %v", block.First+uint64(i), err)
			}
			batch.Scan(frames)
			if batch.Damage != event.None || batch.Damage != h.Damage || batch.Seq != h.Seq || uint32(len(batch.Events)) != h.Events {
				t.Fatalf("offset %d: read back as seq %d, %d events, damage %v; its header says %+v", block.First+uint64(i), batch.Seq, len(batch.Events), batch.Damage, h)
			}
			if h.Applies() {
				out.events += uint64(h.Events)
			}
			for k := range batch.Events {
				if e := &batch.Events[k]; e.Type != event.Cleared {
					seen[object{string(e.Tenant), string(e.Key)}] = true
				}
			}
		}
		out.last = block.Last()
	}
	if out.last != j.Durable() {
		t.Errorf("the journal ends at %d, its last record is %d", j.Durable(), out.last)
	}
	for o := range seen {
		out.objects = append(out.objects, o)
	}
	sort.Slice(out.objects, func(i, k int) bool {
		a, b := out.objects[i], out.objects[k]
		return a.tenant < b.tenant || a.tenant == b.tenant && a.key < b.key
	})
	return out
}
