package query

import (
	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// gapOf is the line of gaps that a record shows, from the record itself.
func (l *logger) gapOf(r *record) (*GapOut, error) {
	before, err := l.beforeOf(r)
	if err != nil {
		return nil, err
	}
	g := gapOfRecord(r.Header, r.Offset)
	g.Before = before.offset
	if before.hasTime {
		g.TimeBefore = &before.time
	}
	if r.Kind == journal.TailLost {
		frames, err := r.Frames()
		if err != nil {
			return nil, err
		}
		lost, err := journal.DecodeLost(r.Offset, frames)
		if err != nil {
			return nil, err
		}
		g.MissingOffsets, g.HasSeq, g.TimeAfter = true, false, nil
		g.First, g.Last = lost.First, lost.Last
	}
	return gapOut(r.Source, &g), nil
}

// gapOfRecord is what a record's header says of the loss before it.
func gapOfRecord(h *journal.Header, offset uint64) index.Gap {
	g := index.Gap{
		Source: h.Source, After: offset, Cause: h.Gap.Cause, Epoch: h.Gap.Epoch, HasSeq: h.Gap.Missing() > 0, First: h.Gap.First, Last: h.Gap.Last,
		Missing: h.Gap.Missing(), Lost: h.Gap.Lost, Min: h.Gap.Min, Max: h.Gap.Max, Received: h.Received / 1e6,
	}
	if h.HasTime {
		t := h.Time
		g.TimeAfter = &t
	}
	return g
}

// beforeOf is the last message of a record's source before it.
func (l *logger) beforeOf(r *record) (placed, error) {
	if p, ok := l.before[r.Header.Source]; ok {
		return p, nil
	}
	if r.Offset == 1 {
		return placed{}, nil
	}
	last, err := l.e.lastBatch(r.Header.Source, r.Offset-1)
	return placed{last.Offset, last.HasTime, last.Time}, err
}
