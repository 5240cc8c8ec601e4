package query

import (
	"errors"
	"math"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Attribution says what the master's own counters tell of whose fault a loss was. Of several losses between two polls the counters are
// the same.
type Attribution struct {
	// DroppedBefore and DroppedAfter are dropped_events as the polls before and after the loss had it. DroppedBefore is left out where
	// there was no poll before.
	DroppedBefore *uint64 `json:"dropped_before,omitempty"`
	DroppedAfter  uint64  `json:"dropped_after"`
	// Dropped is how many events the publisher's own queue dropped between the polls. Each leaves one missing number.
	Dropped uint64 `json:"dropped"`
	// DroppedEarlier is how many it had dropped before these polls that no earlier loss had shown: a drop is counted at once, and shown by
	// the next message.
	DroppedEarlier uint64 `json:"dropped_earlier,omitempty"`
	// ExplainsAll: that is enough for all the numbers that are missing between the polls, but for those with another explanation.
	ExplainsAll bool `json:"explains_all"`
	// Text says what an operator can make of it.
	Text string `json:"text"`
}

// attributor attributes the losses of one source, in their order. It goes through all that lies before them, from the last place on that is
// kept, so that what is said of a loss does not depend on the span that was asked for.
type attributor struct {
	v      *index.View
	source uint32
	kept   *CreditCache // nil: nothing is kept
	gaps   ahead[index.Gap]
	polls  ahead[index.SourceStatus]
	creditState
	around pollsAround // the last losses that a poll was found behind
	begun  bool
	ended  bool // no poll lies behind what was read
	steps  int  // since the state was kept
}

// pollsAround are two polls and what they tell of the losses between them.
type pollsAround struct {
	// The records that showed these losses lie at the offsets from to to; status is the second poll.
	from, to uint64
	status   *index.SourceStatus // nil: there is none
	lost     lostBetween
	credit   credit
	told     bool // the counters tell something
}

// lossesSummed is how many losses between two polls are summed up.
const lossesSummed = 1000

// attributable reports whether a drop of the publisher's queue might explain a cause.
func attributable(c continuity.Cause) bool {
	switch c {
	case continuity.PublisherQueue, continuity.Transport, continuity.RecorderSlow, continuity.TailLoss, continuity.Disconnected, continuity.Unknown:
		return true
	}
	return false
}

// of returns nil where the counters tell nothing.
func (a *attributor) of(g *index.Gap) (*Attribution, error) {
	if !attributable(g.Cause) || !g.HasSeq {
		return nil, nil
	}
	if !a.begun {
		a.begin(g.After)
	}
	for {
		if known, err := a.decided(g); err != nil {
			return nil, err
		} else if known {
			break
		}
		if err := a.step(); err != nil {
			return nil, err
		}
	}
	p := &a.around
	if p.to < g.After || !p.told || g.After < p.from {
		return nil, nil
	}
	out := &Attribution{DroppedAfter: p.status.Counters.Dropped, Dropped: p.credit.own, DroppedEarlier: p.credit.earlier}
	if p.status.Before != nil {
		out.DroppedBefore = &p.status.Before.Dropped
	}
	attribute(g.Cause, p, out)
	return out, nil
}

// begin goes to the last place before the offset that is kept.
func (a *attributor) begin(offset uint64) {
	a.begun = true
	a.creditState = a.kept.before(a.source, offset)
	a.gaps.from, a.polls.from = a.at+1, a.at+1
}

// decided reports whether what was read says all that there is to say of a loss.
func (a *attributor) decided(g *index.Gap) (bool, error) {
	if a.ended || a.around.to >= g.After {
		return true, nil
	}
	if !a.lost.more && a.from <= g.After {
		return false, nil
	}
	// No counters will tell of it: too many losses lie between two polls, or the counters began anew behind it.
	next, err := a.gap()
	return err == nil && (next == nil || next.After > g.After), err
}

// step accounts for the next loss or poll.
func (a *attributor) step() error {
	s, err := a.poll()
	if err != nil {
		return err
	}
	if s == nil {
		a.ended = true
		return nil
	}
	g, err := a.gap()
	if err != nil {
		return err
	}
	if g != nil && g.After <= s.Offset {
		a.gaps.skip()
		a.at = g.After
		a.addLoss(g)
	} else {
		a.polls.skip()
		a.at = s.Offset
		a.addPoll(s)
	}
	a.steps++
	return a.keep()
}

// keep keeps the state now and then, where all that lies at its offset was accounted for.
func (a *attributor) keep() error {
	if a.kept == nil || a.steps < a.kept.spacing(a.source) {
		return nil
	}
	s, err := a.poll()
	if err != nil {
		return err
	}
	g, err := a.gap()
	if err != nil || s != nil && s.Offset <= a.at || g != nil && g.After <= a.at {
		return err
	}
	a.steps = 0
	a.kept.keep(a.source, a.creditState)
	return nil
}

// addPoll accounts for a poll.
func (a *attributor) addPoll(s *index.SourceStatus) {
	switch {
	case s.Counters == nil || len(s.Facts) == 0: // no poll, or one that did not look whether a loss waited for it
	case forLoss(s):
		a.around = pollsAround{from: a.from, to: s.Offset, status: s, lost: a.lost}
		a.around.credit, a.around.told = a.drops.settle(&s.Status, &a.lost)
		a.from, a.lost = s.Offset+1, lostBetween{}
	case a.lost.losses == 0:
		a.drops.pass(&s.Status)
	}
}

// addLoss accounts for a loss.
func (a *attributor) addLoss(g *index.Gap) {
	explains := attributable(g.Cause)
	if g.Epoch != a.epoch || g.Cause == continuity.PublisherRestart || !explains && (g.MissingOffsets || g.HasSeq && g.Missing > 0) {
		// The counters begin anew; or numbers are missing that some drops may be among, nobody knows how many.
		a.drops, a.epoch = drops{}, g.Epoch
		a.from, a.lost = g.After, lostBetween{}
	}
	if explains {
		a.lost.add(g)
	}
}

func (l *lostBetween) add(g *index.Gap) {
	if g.Cause == continuity.PublisherQueue {
		l.queue += g.Missing
	} else {
		l.other += g.Missing
	}
	l.tail = l.tail || g.Cause == continuity.TailLoss
	l.losses++
	l.more = l.more || l.losses > lossesSummed
}

// forLoss reports whether a status was kept for a loss: it tells the counters before and after it.
func forLoss(s *index.SourceStatus) bool {
	return s.Counters != nil && (slices.Contains(s.Facts, reading.FactCounters) || slices.Contains(s.Facts, reading.FactTailLoss))
}

// rowsAhead is how many rows are read at once.
const rowsAhead = 256

// ahead are rows that were read before they are needed.
type ahead[T any] struct {
	rows []T
	from uint64 // the offset to read on from
	end  bool   // there are no more
}

// peek returns the next row, nil: there is none. It stays what it is when later ones are read.
func (a *ahead[T]) peek(read func(from uint64) ([]T, error), offset func(*T) uint64) (*T, error) {
	if len(a.rows) == 0 && !a.end {
		rows, err := read(a.from)
		if err != nil {
			return nil, err
		}
		if a.rows, a.end = rows, len(rows) == 0; !a.end {
			a.from = offset(&rows[len(rows)-1]) + 1
		}
	}
	if len(a.rows) == 0 {
		return nil, nil
	}
	return &a.rows[0], nil
}

func (a *ahead[T]) skip() { a.rows = a.rows[1:] }

// poll returns the next status, which stays the next.
func (a *attributor) poll() (*index.SourceStatus, error) {
	return a.polls.peek(func(from uint64) (page []index.SourceStatus, err error) {
		err = a.v.Statuses(a.source, max(from, 1)-1, a.v.Applied(), false, func(s *index.SourceStatus) error {
			if page = append(page, *s); len(page) == rowsAhead {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return page, err
	}, func(s *index.SourceStatus) uint64 { return s.Offset })
}

// gap returns the next loss, which stays the next. Those that one record showed are read together.
func (a *attributor) gap() (*index.Gap, error) {
	return a.gaps.peek(func(from uint64) ([]index.Gap, error) {
		page, err := a.v.GapPage(nil, a.source, from, a.v.Applied(), rowsAhead)
		if err != nil || len(page) < rowsAhead {
			return page, err
		}
		last := page[len(page)-1].After
		for len(page) > 0 && page[len(page)-1].After == last {
			page = page[:len(page)-1]
		}
		return a.v.GapPage(page, a.source, last, last, math.MaxInt)
	}, func(g *index.Gap) uint64 { return g.After })
}
