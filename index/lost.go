package index

import (
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// lost applies the record of a loss in the journal itself: a mark and a line of gaps for its source and all that it names.
func (a *applier) lost(b *journal.Block, i int, h *journal.Header, place Place) error {
	var err error
	if a.frames, err = b.Frames(i, a.frames[:0], &a.seq); err != nil {
		return err
	}
	l, err := journal.DecodeLost(place.Offset, a.frames)
	if err != nil {
		return err
	}
	if err := a.lostOf(h, &l, place); err != nil {
		return err
	}
	for _, also := range l.Also {
		if also.Source != h.Source {
			s := a.source(also.Source)
			other := *h
			other.Source, other.Epoch, other.HasTime, other.Time = also.Source, s.Epoch, s.Last.HasTime, s.Last.Time
			at := place
			at.HasTime, at.Time = other.HasTime, other.Time
			if err := a.lostOf(&other, &l, at); err != nil {
				return err
			}
		}
		if also.Silent != 0 {
			if err := a.silent(also.Source, also.Silent, place.Offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// lostOf applies a loss to one source. A reading that began before it is void: parts of it may be gone. So is one that a journal kept behind it
// until it was repaired: it is told as its difference from what was known then, some of which is gone.
func (a *applier) lostOf(h *journal.Header, l *journal.Lost, place Place) error {
	s := a.source(h.Source)
	a.changed[h.Source] = true
	s.Window, s.Connected = false, false
	s.Reading, s.Excepted, s.Lost = nil, 0, max(s.Lost, place.Offset, l.Last, l.Through)
	g := Gap{
		Before: s.Last.Offset, Received: place.Received, TimeBefore: s.Last.time(), Cause: continuity.Damaged, Epoch: max(h.Epoch, 1),
		MissingOffsets: true, First: l.First, Last: l.Last,
	}
	if err := a.gap(h.Source, place.Offset, 0, &g, s); err != nil {
		return err
	}
	return a.mark(h, s, place)
}

// void reports whether a reading that began at an offset is void because of a loss behind it, or at it (its beginning may be what is
// lost), or before it and found later: what is left of it is not applied.
func (s *SourceState) void(begun uint64) bool { return begun <= s.Lost }
