package oracle

import "github.com/kvjournal/kvjournal/journal/event"

// shade says how far a mark reaches.
type shade uint8

const (
	clear    shade = iota // no mark
	upTo                  // a mark before the message, which is evidence itself
	shadowed              // a mark behind the message (R4)
)

// verdict is how a message with a readable seq continues the stream.
type verdict struct {
	follows bool // R3; false for the very first message
	shade   shade
	another bool // it may be, or is, another process than before: it has not yet proved to send keys (R7)
	restart bool
	gap     *Gap
}

// doubt is the offset of the mark that the verdict sets if the message is at offset, 0 for none.
func (v verdict) doubt(offset uint64) uint64 {
	switch v.shade {
	case upTo:
		return offset - 1
	case shadowed:
		return offset
	}
	return 0
}

// goesOn says whether b, in an open window of R5, looks as if messages of the old connection still came: the first of the new
// one is still to be judged.
func (p *previous) goesOn(b *event.Batch) bool {
	if !p.fresh || p.seq == 0 || b.Seq == 0 || b.Seq-1 != p.seq {
		return false
	}
	if len(b.Events) == 0 || !b.Events[0].HasID || !p.known {
		return true
	}
	return b.Events[0].ID != 0 && b.Events[0].ID-1 == p.id
}

// judge holds a message with a readable seq against the one before (R3, R4, R5).
func (p *previous) judge(b *event.Batch) verdict {
	var first uint64
	compare := false // both event_ids are there
	if len(b.Events) > 0 && b.Events[0].HasID && p.known {
		first, compare = b.Events[0].ID, true
	}
	next := b.Seq != 0 && b.Seq-1 == p.seq // written so that it does not overflow
	idNext := !compare || first != 0 && first-1 == p.id
	idBack := compare && first <= p.id && p.seq != 0

	switch {
	case next && !p.fresh && idNext && p.seq != 0:
		return verdict{follows: true}
	case p.seq == 0 && b.Seq == 1:
		return verdict{}
	case b.Seq <= p.seq, idBack, next && !idNext && !p.fresh:
		v := verdict{shade: upTo, another: true, restart: true, gap: &Gap{Cause: PublisherRestart, Epoch: p.epoch + 1}}
		if b.Seq > 1 {
			v.shade = shadowed
			v.gap.missing(1, b.Seq-1)
		}
		return v
	}

	v := verdict{shade: shadowed, another: p.fresh, gap: &Gap{Epoch: p.epoch}}
	if next {
		v.gap.Cause = Reconnect
		return v
	}
	v.gap.missing(p.seq+1, b.Seq-1)
	switch {
	case p.seq == 0:
		v.gap.Cause = LateJoin
	case p.fresh:
		v.gap.Cause = DisconnectedGap
	case !compare:
		v.gap.Cause = Unknown
	case idNext:
		v.gap.Cause = PublisherQueue
		v.gap.lostExactly(v.gap.Missing)
	default:
		v.gap.Cause = Transport
		v.gap.lostBetween(first-p.id-1, v.gap.Missing)
	}
	return v
}

// advance makes b the message that the next one is held against.
func (p *previous) advance(b *event.Batch, v verdict) {
	p.fresh = false
	p.seq = b.Seq
	if !v.follows {
		p.whole = b.Seq == 1
	}
	if v.restart {
		p.epoch++
	}
	if v.another {
		p.keyed = false
	}
	switch n := len(b.Events); {
	case b.Damage != event.None:
		p.known = false
	case n > 0:
		p.known, p.id = b.Events[n-1].HasID, b.Events[n-1].ID
	}
}
