package continuity

import "github.com/kvjournal/kvjournal/journal/event"

// earlier is where the messages stood when a poll moved the state on. Such messages may still be on their way, on the
// connection that stood then: a poll comes by another one, and overtakes them.
type earlier struct {
	kind earlierKind
	replaced
}

type earlierKind uint8

const (
	notEarlier earlierKind = iota
	// earlierProcess: a poll showed that another process publishes. What still comes of the old one changes nothing.
	earlierProcess
	// earlierTail: a poll showed that the tail is lost. What comes of it after all is as good as ever.
	earlierTail
)

// knows reports whether b's numbers are of this stream: they go on, or some were dropped before it and its ids go on.
func (e *earlier) knows(b *event.Batch) bool {
	jump, known := e.jump(b)
	return e.goesOn(b) || known && jump == 0 && b.Seq > e.seq && b.Events[0].ID > e.eventID
}

// leftOver reports, with its verdict, whether the message is of the process before the one that a poll showed.
func (s *State) leftOver(b *event.Batch, frames [][]byte, v *Verdict) bool {
	if s.earlier.kind != earlierProcess || !b.HasSeq {
		return false
	}
	again := s.earlier.repeats(frames)
	if !again && !s.earlier.knows(b) {
		return false
	}
	if !again {
		s.earlier.moveTo(b)
		s.earlier.last = digest(frames)
	}
	v.Stale, v.Duplicate, v.Damage = true, again, b.Damage
	v.Epoch, v.HasTime, v.Time, v.Keyed = s.earlier.epoch, s.HasTime, s.Time, s.Keyed
	return true
}

// comesLate moves the state back if b is the first of a tail that seemed to be lost.
func (s *State) comesLate(b *event.Batch) {
	if s.earlier.kind == earlierTail && b.Seq <= s.Seq && s.earlier.knows(b) {
		s.Seq, s.HasEventID, s.EventID = s.earlier.seq, s.earlier.hasID, s.earlier.eventID
	}
}
