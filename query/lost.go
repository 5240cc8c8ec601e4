package query

import (
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// LostEnd are acknowledged records that are gone from the end of a journal at rest, of which no record tells yet: the next recorder goes on
// behind them and writes it down.
type LostEnd struct {
	First uint64 `json:"first_missing_offset"`
	Last  uint64 `json:"last_missing_offset"`
}

// LostError is the answer to a question about a moment at which records were lost on our own disk. It is a journal.ErrNotFound.
type LostError struct {
	First uint64 // offsets that are gone, both included
	Last  uint64

	text string
}

func (e *LostError) Error() string { return e.text }

func (e *LostError) Unwrap() error { return journal.ErrNotFound }

// notThere says why the record at an offset cannot be had, where err does not: what was lost, and which moments around it can be asked for.
func (e *Engine) notThere(offset uint64, err error) error {
	if !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	end := e.Journal.Durable()
	switch l := e.LostEnd; {
	case offset > end && l != nil && offset <= l.Last:
		return &LostError{l.First, l.Last, fmt.Sprintf("offset %d: %v any more: the records at offsets %d to %d are gone from its end; ask --at offset:%d, the newest moment that is left",
			offset, journal.ErrNotFound, l.First, l.Last, end)}
	case offset > end:
		return usagef("offset %d is not recorded yet: the journal ends at %d", offset, end)
	}
	h, ok, herr := e.Journal.HoleAt(offset)
	if herr != nil || !ok {
		return errors.Join(err, herr)
	}
	before, _, herr := e.Journal.Around(h.First)
	_, after, aerr := e.Journal.Around(offset)
	if err := errors.Join(herr, aerr); err != nil {
		return err
	}
	return &LostError{h.First, h.Last, fmt.Sprintf("offset %d: %v: the records at offsets %d to %d were lost on our own disk%s", offset, journal.ErrNotFound, h.First, h.Last, askAround(before, after))}
}

// askAround names the moments on both sides of a loss, 0: none.
func askAround(before, after uint64) string {
	switch {
	case before == 0 && after == 0:
		return ""
	case before == 0:
		return fmt.Sprintf("; ask --at offset:%d, directly behind them (nothing is left before)", after)
	case after == 0:
		return fmt.Sprintf("; ask --at offset:%d, directly before them", before)
	}
	return fmt.Sprintf("; ask --at offset:%d, directly before them, or --at offset:%d, directly behind", before, after)
}

// behindLoss moves a moment that is the position of a record of a loss behind all records of that loss, which must be indexed then: each marks
// its own source only, and all of it was lost before the first.
func (e *Engine) behindLoss(m *moment) (need uint64, err error) {
	last, err := e.Journal.EndOfLoss(m.at.Offset)
	if err != nil {
		return 0, err
	}
	m.at = index.Behind(last)
	return last, nil
}
