package query

import (
	"errors"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// PrunedError is the answer to a question about a moment before the horizon of a pruned journal.
type PrunedError = journal.PrunedError

// HorizonOut is where a pruned journal begins.
type HorizonOut struct {
	Offset   uint64 `json:"offset"`
	Time     *Time  `json:"time,omitempty"`
	Received *Time  `json:"received,omitempty"`
	// ForgottenTo is the offset up to which objects that were removed may have been forgotten; left out where none were.
	ForgottenTo uint64 `json:"forgotten_to,omitempty"`
}

// Horizon is where the journal begins, nil where it was never pruned.
func (e *Engine) Horizon() *HorizonOut { return horizonOut(e.Journal.Horizon()) }

func horizonOut(h journal.Horizon) *HorizonOut {
	if h.Generation == 0 {
		return nil
	}
	out := &HorizonOut{Offset: h.Offset, Received: msTime(h.Received / 1e6), ForgottenTo: h.Forgotten}
	if h.HasTime {
		out.Time = msTime(h.Time)
	}
	return out
}

// known returns a *PrunedError where what was so in a source at a position is not known any more, in the journal or in the view.
func (e *Engine) known(v *index.View, source uint32, at index.Position) error {
	if at.Offset < e.cut(v, source) {
		return &PrunedError{Horizon: e.Journal.Horizon()}
	}
	return nil
}

// cut is the offset from which on what was so in a source is known, in the journal and in the view: either may have been pruned before the
// other.
func (e *Engine) cut(v *index.View, source uint32) uint64 {
	h := e.Journal.Horizon()
	return max(h.Cut(source), v.Base().Cuts[source])
}

// knownFrom is known for the beginnings of stretches, which lie at the horizon or behind it unless it moved meanwhile.
func (e *Engine) knownFrom(v *index.View, in []stretch) error {
	for i := range in {
		if in[i].from.Offset < v.Base().Offset {
			return &PrunedError{Horizon: e.Journal.Horizon()}
		}
	}
	return nil
}

// seqPruned reports whether a message that is not in the journal may have been pruned: its number lies before those of the newest message of
// the source up to the horizon.
func (e *Engine) seqPruned(source uint32, epoch, seq uint64) (bool, error) {
	h := e.Journal.Horizon()
	if h.Generation == 0 {
		return false, nil
	}
	last, err := e.lastBatch(source, h.Offset)
	var moved *PrunedError
	if errors.As(err, &moved) {
		return true, nil
	}
	return err == nil && last.Offset != 0 && (epoch < last.Epoch || epoch == last.Epoch && last.HasSeq && seq <= last.Seq), err
}
