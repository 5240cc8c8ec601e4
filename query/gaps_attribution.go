package query

import (
	"errors"
	"fmt"
	"net/url"
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
	// ExplainsAll: that is enough for all the numbers that are missing between the polls, but for those with another explanation.
	ExplainsAll bool `json:"explains_all"`
	// Text says what an operator can make of it.
	Text string `json:"text"`
}

// attributor attributes the losses of one source, in their order.
type attributor struct {
	v      *index.View
	source uint32
	// status is the first poll behind the offset from that was kept for a loss, nil: none. known: it was sought.
	known  bool
	from   uint64
	status *index.SourceStatus
	lost   lostBetween
}

// lostBetween sums up what is missing by the losses that two polls lie around.
type lostBetween struct {
	losses int
	// queue are the missing numbers of publisher_queue, other those of the causes that a drop might explain too.
	queue, other uint64
	more         bool // there are too many losses to sum up
}

// lossesSummed is how many losses between two polls are summed up.
const lossesSummed = 1000

// of returns nil where the counters tell nothing.
func (a *attributor) of(g *index.Gap) (*Attribution, error) {
	switch g.Cause {
	case continuity.PublisherQueue, continuity.Transport, continuity.RecorderSlow, continuity.TailLoss, continuity.Disconnected, continuity.Unknown:
	default:
		return nil, nil
	}
	if err := a.seek(g.After); err != nil || a.status == nil || a.lost.more || !g.HasSeq {
		return nil, err
	}
	after, before := a.status.Counters, a.status.Before
	out := &Attribution{DroppedAfter: after.Dropped, Dropped: after.Dropped}
	switch {
	case before != nil && (after.Dropped < before.Dropped || after.Batches < before.Batches || after.Events < before.Events):
		return nil, nil // of another process
	case before != nil:
		out.DroppedBefore, out.Dropped = &before.Dropped, after.Dropped-before.Dropped
	case after.Dropped > 0:
		return nil, nil // when is not known
	}
	a.judge(g, out)
	return out, nil
}

// seek finds the poll behind the loss that a record showed, and the other losses between it and the one before.
func (a *attributor) seek(at uint64) error {
	if a.known && a.from <= at && (a.status == nil || at <= a.status.Offset) {
		return nil
	}
	a.known, a.from, a.status, a.lost = true, at, nil, lostBetween{}
	err := a.v.Statuses(a.source, at-1, a.v.Applied(), false, func(s *index.SourceStatus) error {
		if !forLoss(s) {
			return nil
		}
		a.status = s
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) || a.status == nil {
		return err
	}
	first := uint64(0)
	err = a.v.Statuses(a.source, 0, at-1, true, func(s *index.SourceStatus) error {
		if s.Counters == nil || len(s.Facts) == 0 {
			return nil // no poll, or one that did not look whether a loss waited for it
		}
		first = s.Offset
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	a.from = first + 1
	gaps, err := a.v.GapPage(nil, a.source, first+1, a.status.Offset, lossesSummed+1)
	a.lost.more = len(gaps) > lossesSummed
	for i := range gaps {
		switch gaps[i].Cause {
		case continuity.PublisherQueue:
			a.lost.queue += gaps[i].Missing
		case continuity.Transport, continuity.RecorderSlow, continuity.TailLoss, continuity.Disconnected, continuity.Unknown:
			a.lost.other += gaps[i].Missing
		default:
			continue
		}
		a.lost.losses++
	}
	return err
}

// judge compares what was dropped with what is missing.
func (a *attributor) judge(g *index.Gap, out *Attribution) {
	host := "the master's host"
	if u, err := url.Parse(a.status.From); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	counter := fmt.Sprintf("dropped_events is %d", out.DroppedAfter)
	if out.DroppedBefore != nil {
		if counter = fmt.Sprintf("dropped_events stayed at %d", out.DroppedAfter); out.Dropped > 0 {
			counter = fmt.Sprintf("dropped_events went from %d to %d", *out.DroppedBefore, out.DroppedAfter)
		}
	}
	const queueKnob = "make the publisher's event queue larger, or give its sending thread CPU, on %s"
	if g.Cause == continuity.PublisherQueue {
		missing := fmt.Sprintf("all %d missing numbers", a.lost.queue)
		if a.lost.losses > 1 {
			missing += fmt.Sprintf(" of %d losses", a.lost.losses)
		}
		if out.ExplainsAll = out.Dropped >= a.lost.queue; out.ExplainsAll {
			out.Text = fmt.Sprintf("The publisher's own queue overflowed: %s, which explains %s; "+queueKnob+".", counter, missing, host)
			return
		}
		out.Text = fmt.Sprintf("Its queue overflowed, but %s, which explains %d of %s only; "+queueKnob+", and look at the network too.", counter, out.Dropped, missing, host)
		return
	}
	// What the queue's own losses leave over may be any of the others.
	left := out.Dropped - min(out.Dropped, a.lost.queue)
	if out.ExplainsAll = left > 0 && left >= a.lost.other; out.ExplainsAll {
		out.Text = fmt.Sprintf("The publisher dropped these itself: %s, which explains all missing numbers; "+queueKnob+".", counter, host)
		return
	}
	not := "the publisher dropped nothing meanwhile (" + counter + ")"
	switch {
	case left > 0:
		not = fmt.Sprintf("the publisher dropped at most %d of these %d itself (%s)", left, a.lost.other, counter)
	case out.Dropped > 0:
		not = fmt.Sprintf("what the publisher dropped (%s) is missing elsewhere", counter)
	}
	switch g.Cause {
	case continuity.RecorderSlow:
		out.Text = fmt.Sprintf("Lost here: %s, and kvjournal's own buffer was full; give this host a faster disk, or raise `record --buffer`.", not)
	case continuity.Disconnected:
		out.Text = fmt.Sprintf("Lost with the connection: %s; look at the network between %s and this host.", not, host)
	default:
		out.Text = fmt.Sprintf("Lost on the way: %s; raise the ZMQ send high-water mark on %s, then look at the network and this host's load.", not, host)
	}
}

// forLoss reports whether a status was kept for a loss: it tells the counters before and after it.
func forLoss(s *index.SourceStatus) bool {
	return s.Counters != nil && (slices.Contains(s.Facts, reading.FactCounters) || slices.Contains(s.Facts, reading.FactTailLoss))
}
