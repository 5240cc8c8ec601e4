package query

import (
	"fmt"
	"net/url"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// attribute says what the counters explain of a loss.
func attribute(cause continuity.Cause, p *pollsAround, out *Attribution) {
	host := "the master's host"
	if u, err := url.Parse(p.status.From); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	counter := counterText(out)
	if cause == continuity.PublisherQueue {
		out.ExplainsAll = p.credit.queue == p.lost.queue
		out.Text = queueText(p, counter, host)
		return
	}
	if out.ExplainsAll = p.credit.allOthers; out.ExplainsAll {
		out.Text = fmt.Sprintf("The publisher dropped these itself: %s, which explains all missing numbers; "+queueKnob+".", counter, host)
		return
	}
	not := "the publisher dropped nothing meanwhile (" + counter + ")"
	switch {
	case p.credit.others > 0:
		not = fmt.Sprintf("the publisher dropped at most %d of these %d itself (%s)", p.credit.others, p.lost.other, counter)
	case out.Dropped+out.DroppedEarlier > 0:
		not = fmt.Sprintf("what the publisher dropped (%s) is missing elsewhere", counter)
	}
	// Ids that are missing prove that the publisher had sent the events; without, it may have dropped them before it was asked.
	unproven := p.credit.unsure && p.credit.others == 0 && cause != continuity.Transport && cause != continuity.RecorderSlow
	switch {
	case unproven && cause == continuity.Disconnected:
		out.Text = fmt.Sprintf("Lost with the connection, or dropped by the publisher before it was asked (%s); look at the network between %s and this host.", counter, host)
	case unproven:
		out.Text = fmt.Sprintf("Lost on the way, or dropped by the publisher before it was asked (%s); raise the ZMQ send high-water mark on %s, then look at its event queue.", counter, host)
	case cause == continuity.RecorderSlow:
		out.Text = fmt.Sprintf("Lost here: %s, and kvjournal's own buffer was full; give this host a faster disk, or raise `record --buffer`.", not)
	case cause == continuity.Disconnected:
		out.Text = fmt.Sprintf("Lost with the connection: %s; look at the network between %s and this host.", not, host)
	default:
		out.Text = fmt.Sprintf("Lost on the way: %s; raise the ZMQ send high-water mark on %s, then look at the network and this host's load.", not, host)
	}
}

const queueKnob = "make the publisher's event queue larger, or give its sending thread CPU, on %s"

// queueText is of losses that the publisher's queue made; what of them was not counted is told too.
func queueText(p *pollsAround, counter, host string) string {
	all := fmt.Sprintf("%d %s", p.lost.queue, Plural(p.lost.queue, "missing number", "missing numbers"))
	if p.lost.losses > 1 {
		all += fmt.Sprintf(" of %d losses", p.lost.losses)
	}
	if p.credit.queue == p.lost.queue {
		if p.lost.queue > 1 {
			all = "all " + all
		} else {
			all = "the " + all
		}
		return fmt.Sprintf("The publisher's own queue overflowed: %s, which explains %s; "+queueKnob+".", counter, all, host)
	}
	explains := "none"
	if p.credit.queue > 0 {
		explains = fmt.Sprintf("only %d", p.credit.queue)
	}
	text := fmt.Sprintf("The publisher's own queue overflowed, and %s, which explains %s of the %s; "+queueKnob, counter, explains, all, host)
	if p.credit.unsure {
		return text + ". The rest may have been counted before that."
	}
	return text + ", and look at the network too."
}

// counterText says how dropped_events moved.
func counterText(out *Attribution) string {
	counter := fmt.Sprintf("dropped_events is %d", out.DroppedAfter)
	if out.DroppedBefore != nil {
		if counter = fmt.Sprintf("dropped_events stayed at %d", out.DroppedAfter); out.Dropped > 0 {
			counter = fmt.Sprintf("dropped_events went from %d to %d", *out.DroppedBefore, out.DroppedAfter)
		}
	}
	if out.DroppedEarlier > 0 {
		counter += fmt.Sprintf(", and %d counted before that had not shown yet", out.DroppedEarlier)
	}
	return counter
}
