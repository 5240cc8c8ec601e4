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

// attributor attributes the losses of one source, in their order. It goes through all that lies before them once, so that what is said of a
// loss does not depend on the span that was asked for.
type attributor struct {
	v      *index.View
	source uint32
	gaps   ahead[index.Gap]
	polls  ahead[index.SourceStatus]
	drops  drops
	epoch  uint64 // that drops are of
	around pollsAround
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
	for a.around.to < g.After {
		if err := a.next(); err != nil {
			return nil, err
		}
	}
	p := &a.around
	if !p.told || g.After < p.from {
		return nil, nil
	}
	out := &Attribution{DroppedAfter: p.status.Counters.Dropped, Dropped: p.credit.own, DroppedEarlier: p.credit.earlier}
	if p.status.Before != nil {
		out.DroppedBefore = &p.status.Before.Dropped
	}
	attribute(g.Cause, p, out)
	return out, nil
}

// next finds the next losses and the poll behind them.
func (a *attributor) next() error {
	p := pollsAround{from: a.around.to + 1, to: math.MaxUint64}
	defer func() { a.around = p }()
	for {
		s, err := a.poll()
		if err != nil || s == nil {
			return err
		}
		if err := a.losses(&p, s.Offset); err != nil {
			return err
		}
		switch {
		case s.Counters == nil || len(s.Facts) == 0: // no poll, or one that did not look whether a loss waited for it
		case forLoss(s):
			p.to, p.status = s.Offset, s
			p.credit, p.told = a.drops.settle(&s.Status, &p.lost)
			return nil
		case p.lost.losses == 0:
			a.drops.pass(&s.Status)
		}
	}
}

// losses sums up those that the records up to an offset showed.
func (a *attributor) losses(p *pollsAround, upTo uint64) error {
	for {
		g, err := a.gap()
		if err != nil || g == nil || g.After > upTo {
			return err
		}
		a.gaps.skip()
		explains := attributable(g.Cause)
		if g.Epoch != a.epoch || g.Cause == continuity.PublisherRestart || !explains && (g.MissingOffsets || g.HasSeq && g.Missing > 0) {
			// The counters begin anew; or numbers are missing that some drops may be among, nobody knows how many.
			a.drops, a.epoch = drops{}, g.Epoch
			p.from, p.lost = g.After, lostBetween{}
		}
		if explains {
			p.lost.add(g)
		}
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

// poll returns the next status.
func (a *attributor) poll() (*index.SourceStatus, error) {
	s, err := a.polls.peek(func(from uint64) (page []index.SourceStatus, err error) {
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
	if s != nil {
		a.polls.skip()
	}
	return s, err
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
