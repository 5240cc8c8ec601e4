package query

import "github.com/kvjournal/kvjournal/journal/reading"

// drops accounts for what the queue of one publisher process dropped. The publisher counts a drop at once, and it shows as a loss only with
// the next message: polls may count what a later loss shows. So a drop that no loss was shown for yet waits for the next one, and none is
// credited twice: what losses were explained with never exceeds what was counted.
type drops struct {
	// known: a poll of this process was accounted for, whose counters are last. Otherwise what was dropped before is not known.
	known bool
	from  string // the admin URL
	last  reading.Counters
	// waiting are those counted that no loss of the queue was shown for. doubtful of them may lie in other losses that were shown.
	waiting, doubtful uint64
	// short are missing numbers of the queue's losses that nothing was counted for, yet.
	short uint64
}

// lostBetween sums up what is missing by the losses that two polls lie around.
type lostBetween struct {
	losses int
	// queue are the missing numbers of publisher_queue, other those of the causes that a drop might explain too.
	queue, other uint64
	// tail: the second poll found the end of the stream missing. Nothing is under way then: all that was dropped has been shown.
	tail bool
	more bool // there are too many losses to sum up
}

// credit is what the counters around losses explain of them.
type credit struct {
	// own was dropped between the polls around them, earlier before, without a loss that it would explain.
	own, earlier uint64
	// unsure: more may have been dropped earlier, that no poll tells from what was shown.
	unsure bool
	// queue is how many missing numbers of the queue's losses are explained.
	queue uint64
	// others is how many of the other losses may be explained at most; allOthers: surely all.
	others    uint64
	allOthers bool
}

// settle accounts for losses that a poll lies behind. It returns false where its counters tell nothing of them.
func (d *drops) settle(s *reading.Status, lost *lostBetween) (credit, bool) {
	after, before := s.Counters, s.Before
	if lost.more || before != nil && fewer(after, before) || before == nil && after.Dropped > 0 {
		*d = drops{} // another process, or when they were dropped is not known
		return credit{}, false
	}
	var c credit
	was := *d
	switch {
	case before == nil: // it never dropped any
		was = drops{}
	case d.known && d.from == s.From && !fewer(before, &d.last):
		c.own, c.earlier = after.Dropped-before.Dropped, d.waiting+before.Dropped-d.last.Dropped
	default:
		was = drops{}
		c.own, c.unsure = after.Dropped-before.Dropped, before.Dropped > 0
	}
	c.queue = min(c.own+c.earlier, lost.queue)
	left := c.own + c.earlier - c.queue
	c.others = min(left, lost.other)
	paid := min(left, was.short)
	left -= paid
	sure := left - min(left, was.doubtful)
	if !lost.tail { // what was dropped earlier may show later still
		sure = min(sure, c.own-min(c.own, lost.queue))
	}
	c.allOthers = sure > 0 && sure >= lost.other && lost.other > 0
	next := drops{known: true, from: s.From, last: *after, short: was.short - paid}
	if !c.unsure {
		next.short += lost.queue - c.queue
	}
	switch {
	case lost.tail:
	case c.allOthers:
		next.waiting = left - lost.other
		next.doubtful = min(was.doubtful, next.waiting)
	default:
		next.waiting = left
		next.doubtful = min(was.doubtful+lost.other, left)
	}
	*d = next
	return c, true
}

// pass accounts for a poll that no loss lies before.
func (d *drops) pass(s *reading.Status) {
	if d.known && d.from == s.From && !fewer(s.Counters, &d.last) {
		d.waiting += s.Counters.Dropped - d.last.Dropped
		d.last = *s.Counters
		return
	}
	*d = drops{known: true, from: s.From, last: *s.Counters}
}

// fewer reports whether one of the counters is lower than before: they are of another process.
func fewer(c, before *reading.Counters) bool {
	return c.Dropped < before.Dropped || c.Batches < before.Batches || c.Events < before.Events
}
