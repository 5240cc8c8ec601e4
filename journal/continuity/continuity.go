package continuity

import (
	"bytes"
	"math"

	"github.com/kvjournal/kvjournal/journal/event"
)

const (
	// fullBatch is the largest number of events a publisher puts into one batch (subscriber guide, "Transport").
	fullBatch = 64
	// maxAheadMs is how far a batch's time may lie ahead of its receive time before it is not used (R8).
	maxAheadMs = 3600 * 1000
)

// Break says what stands between the last message and the next one.
type Break uint8

const (
	// Unbroken: the same connection.
	Unbroken Break = iota
	// ConnectionBroken: the socket was disconnected since the last message.
	ConnectionBroken
	// RecorderWasDown: no recorder ran since the last message.
	RecorderWasDown
)

// MarkPlace says where the mark of a record lies.
type MarkPlace uint8

const (
	NoMark MarkPlace = iota
	// MarkBefore lies directly before the record's first event: older evidence is in doubt, its own is not.
	MarkBefore
	// MarkBehind lies behind the record's last event: its own evidence is in doubt too (the shadow of R4).
	MarkBehind
)

// Lost says how much is known about the number of lost events.
type Lost uint8

const (
	LostUnknown Lost = iota
	LostExactly      // Gap.Min events
	LostBetween      // Gap.Min to Gap.Max events
)

// Gap is one loss, as seen at the message behind it.
type Gap struct {
	Cause Cause
	// Epoch is the epoch before the gap; of a PublisherRestart, the new one.
	Epoch uint64
	// First and Last are the missing sequence numbers, both inclusive; 0, 0: none.
	First, Last uint64
	Lost        Lost
	Min, Max    uint64
}

// Missing is the number of missing sequence numbers.
func (g Gap) Missing() uint64 {
	if g.Last == 0 || g.Last < g.First {
		return 0
	}
	return g.Last - g.First + 1
}

// Verdict is what the state machine says of one message. The journal keeps it beside the message, so that nothing
// that reads the journal has to judge again.
type Verdict struct {
	Epoch uint64
	// Time is the publisher time in Unix ms that the message stands at: its own, or its predecessor's where it has
	// none that can be used (R8). HasTime is false before the first usable time of a source.
	HasTime bool
	Time    int64
	// Duplicate: equal in all frames to the message before it; it changes nothing.
	Duplicate bool
	// Damage is not event.None for a message that cannot be applied (R6).
	Damage event.Cause
	// Follows: nothing is missing between the message before and this one, so a moment between them is proven (R8).
	Follows bool
	// InWindow: received while the connection's boundary was not known (R5): every moment here is unproven.
	InWindow bool
	// Keyed: this process had surely sent a per-object event before this message (R7).
	Keyed bool

	Mark      MarkPlace
	MarkCause Cause
	// Gap is valid where Gap.Cause is not CauseNone.
	Gap Gap
}

// State is what must be known of a source to judge its next message. The zero value is a source never heard of.
type State struct {
	// Epoch of the last message; 0 only in the zero value, which stands for 1.
	Epoch uint64
	// Seq of the last message whose seq could be read, 0: none yet.
	Seq uint64
	// EventID of the last event, where HasEventID.
	HasEventID bool
	EventID    uint64
	// Keyed: this process has surely sent a per-object event since the newest mark that can hide another process.
	Keyed   bool
	HasTime bool
	Time    int64
	Break   Break
	// Window: DISCONNECTED was seen and the end of the old connection's messages is not known yet (R5).
	Window bool
	// WindowUsed: messages arrived in the open window.
	WindowUsed bool

	// last are the frames of the last message, nil: not known. They are compared, never changed.
	last [][]byte
}

// SetLast gives the frames of the source's last message, as read back from the journal after a restart.
func (s *State) SetLast(frames [][]byte) { s.last = frames }

// Last returns the frames of the last message, nil where not known.
func (s *State) Last() [][]byte { return s.last }

// RecorderStarts tells that a recorder (or an import) begins behind what the state was restored from: whatever comes
// next is the first message behind an unknown time. It returns the mark to journal, if one is due at this position.
func (s *State) RecorderStarts(cause Break) Cause {
	mark := s.closeWindow()
	if s.heard() {
		s.Break = cause
	}
	return mark
}

// Disconnects opens the window of R5.
func (s *State) Disconnects() {
	s.Window = true
	if s.Break == Unbroken && s.heard() {
		s.Break = ConnectionBroken
	}
}

// heard reports whether any message of the source was received.
func (s *State) heard() bool { return s.Seq != 0 || s.last != nil }

// Connects ends the window of R5, and begins a connection: the next message is its first, whatever came in the window. The
// returned cause is not CauseNone where a mark lies at this position: messages arrived in the window, and which
// connection they came by is not known.
func (s *State) Connects() Cause {
	if s.Break == Unbroken && s.heard() {
		s.Break = ConnectionBroken
	}
	return s.closeWindow()
}

func (s *State) closeWindow() Cause {
	used := s.Window && s.WindowUsed
	s.Window, s.WindowUsed = false, false
	if used {
		return Disconnected
	}
	return CauseNone
}

// Message judges one message, received at Unix nanoseconds receivedNs, and moves the state behind it. b holds what
// Scan found in frames, which must not change before the next call. slow: the recorder's own buffer was full since
// the source's last message, so that a loss may be its fault.
func (s *State) Message(b *event.Batch, frames [][]byte, receivedNs int64, slow bool) Verdict {
	if s.Epoch == 0 {
		s.Epoch, s.HasEventID = 1, true // event ids begin at 1: the one before the first is 0
	}
	v := Verdict{InWindow: s.Window}
	duplicate := sameFrames(frames, s.last)
	s.last = frames
	if duplicate {
		v.Duplicate = true
		v.Epoch, v.HasTime, v.Time, v.Keyed = s.Epoch, s.HasTime, s.Time, s.Keyed
		return v
	}
	s.WindowUsed = s.WindowUsed || s.Window
	if b.HasTime && b.Time <= receivedNs/1e6+maxAheadMs {
		s.HasTime, s.Time = true, b.Time
	}
	v.HasTime, v.Time, v.Damage = s.HasTime, s.Time, b.Damage
	if !b.HasSeq {
		// Its place in the stream is unknown: the next readable message will show a gap.
		v.Epoch, v.Keyed = s.Epoch, s.Keyed
		v.Mark, v.MarkCause = MarkBehind, Damaged
		return v
	}

	v.Follows = s.Seq != 0 && s.goesOn(b) && s.Break == Unbroken
	begins := s.Seq == 0 && b.Seq == 1
	switch {
	case s.Window && s.Break != Unbroken && s.goesOn(b):
		// Messages of the old connection are still coming, or so it seems. The next connection's first message will be
		// judged as such; until then every moment is unproven.
	case begins, v.Follows:
		s.Break = Unbroken
	default:
		s.discontinue(b, slow, &v)
		s.Break = Unbroken
	}
	v.Epoch, v.Keyed = s.Epoch, s.Keyed
	s.Seq = b.Seq
	if b.Damage != event.None {
		s.HasEventID = false
		v.Mark, v.MarkCause = MarkBehind, Damaged
		return v
	}
	if n := len(b.Events); n > 0 {
		s.HasEventID, s.EventID = b.Events[n-1].HasID, b.Events[n-1].ID
		for i := range b.Events {
			if b.Events[i].Type != event.Cleared {
				s.Keyed = true
				break
			}
		}
	}
	return v
}

// goesOn reports whether b's numbers are the ones that come next (R3). Nothing comes next to the largest.
func (s *State) goesOn(b *event.Batch) bool {
	if b.Seq == 0 || b.Seq-1 != s.Seq {
		return false
	}
	if !s.HasEventID || len(b.Events) == 0 || !b.Events[0].HasID {
		return true
	}
	return b.Events[0].ID != 0 && b.Events[0].ID-1 == s.EventID
}

// discontinue judges a message that does not follow: which cause, which gap, where the mark lies (R3, R4, R5).
func (s *State) discontinue(b *event.Batch, slow bool, v *Verdict) {
	known := s.HasEventID && len(b.Events) > 0 && b.Events[0].HasID
	back := known && s.Seq != 0 && b.Events[0].ID <= s.EventID
	var jump uint64 // missing event_ids; meaningful where known and not back
	if known && b.Events[0].ID > s.EventID {
		jump = b.Events[0].ID - s.EventID - 1
	}
	broken := s.Break != Unbroken
	if b.Seq <= s.Seq || back || (b.Seq == s.Seq+1 && jump > 0 && !broken) {
		s.Epoch++
		s.Keyed = false
		v.Gap = Gap{Cause: PublisherRestart, Epoch: s.Epoch}
		v.Mark, v.MarkCause = MarkBefore, PublisherRestart
		if b.Seq > 1 {
			v.Gap.First, v.Gap.Last = 1, b.Seq-1
			v.Mark = MarkBehind
		}
		return
	}
	if broken {
		s.Keyed = false
	}
	v.Mark = MarkBehind
	v.Gap = Gap{Epoch: s.Epoch}
	if b.Seq == s.Seq+1 {
		v.Gap.Cause, v.MarkCause = Reconnect, Reconnect
		return
	}
	v.Gap.First, v.Gap.Last = s.Seq+1, b.Seq-1
	width := b.Seq - s.Seq - 1
	switch {
	case s.Seq == 0:
		v.Gap.Cause = LateJoin
	case s.Break == RecorderWasDown:
		v.Gap.Cause = RecorderDown
	case broken:
		v.Gap.Cause = Disconnected
	case !known:
		v.Gap.Cause = Unknown
	case jump == 0:
		v.Gap.Cause = PublisherQueue
		v.Gap.Lost, v.Gap.Min, v.Gap.Max = LostExactly, width, width
	default:
		v.Gap.Cause = Transport
		if slow {
			v.Gap.Cause = RecorderSlow
		}
		v.Gap.Lost, v.Gap.Min = LostBetween, jump
		// Each lost message held at most fullBatch events, so at least ceil(jump/64) of the missing numbers were
		// messages; all the others may have been reserved for dropped events (R3).
		messages := (jump-1)/fullBatch + 1
		v.Gap.Max = jump
		if width > messages {
			v.Gap.Max = saturate(jump, width-messages)
		}
	}
	v.MarkCause = v.Gap.Cause
}

// saturate adds without going round: a hostile publisher may send any numbers.
func saturate(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// sameFrames reports whether a message equals the last one in all frames.
func sameFrames(a, b [][]byte) bool {
	if b == nil || len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
