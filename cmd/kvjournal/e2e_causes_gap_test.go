package main

import (
	"encoding/json"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/query"
)

// sameGaps compares the lines of `gaps` with those that must be there, and their offsets with the journal's messages.
func sameGaps(t *testing.T, dir string, want []query.GapOut) {
	t.Helper()
	got := gaps(t, dir)
	j, err := journal.OpenReadOnly(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			placed(t, j, &got[i])
			g = bare(t, got[i])
		}
		if i < len(want) {
			want[i].Source = "default"
			w = bare(t, want[i])
		}
		if g != w {
			t.Errorf("gap %d is\n%s\nand must be\n%s", i+1, g, w)
		}
	}
}

// bare is what was lost and why, without where it was and what it did.
func bare(t *testing.T, g query.GapOut) string {
	t.Helper()
	b, err := json.Marshal(query.GapOut{
		Source: g.Source, Epoch: g.Epoch, Cause: g.Cause, FirstMissingSeq: g.FirstMissingSeq, LastMissingSeq: g.LastMissingSeq,
		MissingSeqs: g.MissingSeqs, LostEvents: g.LostEvents, LostEventsMin: g.LostEventsMin, LostEventsMax: g.LostEventsMax,
		Damage: g.Damage, FirstMissingOffset: g.FirstMissingOffset, LastMissingOffset: g.LastMissingOffset,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// placed checks that a gap lies between the messages with the numbers around the missing ones.
func placed(t *testing.T, j *journal.Journal, g *query.GapOut) {
	t.Helper()
	if g.FirstOffsetAfter <= g.LastOffsetBefore || g.Received == nil || g.InDoubt == nil {
		t.Errorf("a gap without its place, time or objects in doubt: %+v", *g)
	}
	if g.TimeBefore != nil && g.TimeAfter != nil && g.TimeAfter.Before(g.TimeBefore.Time) {
		t.Errorf("a gap ends at %v, before its begin at %v", g.TimeAfter, g.TimeBefore)
	}
	seqAt := func(offset uint64) (seq uint64, readable bool) {
		r, err := j.Record(offset)
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != journal.Message {
			t.Errorf("offset %d of a gap of cause %s is no message but %v", offset, g.Cause, r.Kind)
		}
		return r.Seq, r.HasSeq
	}
	if g.LastOffsetBefore > 0 {
		if seq, readable := seqAt(g.LastOffsetBefore); readable && g.FirstMissingSeq != nil && g.Cause != "publisher_restart" && seq != *g.FirstMissingSeq-1 {
			t.Errorf("the message before a gap of %d..%d is %d", *g.FirstMissingSeq, *g.LastMissingSeq, seq)
		}
	}
	switch {
	case g.Cause == "tail_loss", g.Cause == "silent": // shown by a poll
	case g.Cause == "damaged":
		if seq, readable := seqAt(g.FirstOffsetAfter); readable != (g.FirstMissingSeq != nil) || readable && seq != *g.FirstMissingSeq {
			t.Errorf("a damaged message with the number %d (readable: %v) is told as %+v", seq, readable, *g)
		}
	default:
		if seq, _ := seqAt(g.FirstOffsetAfter); g.LastMissingSeq != nil && seq != *g.LastMissingSeq+1 {
			t.Errorf("the message behind a gap of %d..%d is %d", *g.FirstMissingSeq, *g.LastMissingSeq, seq)
		}
	}
}

// missingSeqs is a gap of these sequence numbers.
func missingSeqs(c continuity.Cause, epoch, first, last uint64) query.GapOut {
	n := last - first + 1
	return query.GapOut{Cause: c.String(), Epoch: epoch, FirstMissingSeq: &first, LastMissingSeq: &last, MissingSeqs: &n}
}

// hole is a run of messages that the network never got.
type hole struct{ first, last, events uint64 }

// between is the gap of a hole by R3: at least the missing event ids, and at most one event more for each missing number that
// none of the lost messages needs.
func (h hole) between(c continuity.Cause) query.GapOut {
	out := missingSeqs(c, 1, h.first, h.last)
	most := h.events + *out.MissingSeqs - (h.events+63)/64
	out.LostEventsMin, out.LostEventsMax = &h.events, &most
	return out
}

// between are the gaps of all that was dropped at the mark.
func (w *wire) between(c continuity.Cause) (out []query.GapOut) {
	for _, h := range w.dropped {
		out = append(out, h.between(c))
	}
	return out
}
