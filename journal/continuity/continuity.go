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
	// Stale: of a process that another one has replaced, so it changes nothing: not applied, no gap, no mark. Epoch is
	// the one that it belongs to. Time, InWindow and Keyed are the current process's.
	Stale bool
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

	// Endpoint is the one that delivered the last message that was not stale. Window, Break and Connected are its.
	Endpoint int
	// Connected: a connection stands, and no message of an older one is still to come.
	Connected bool
	// FromPoll: Seq is 0 because a poll says that no more of this process was received, not because nothing is known.
	FromPoll bool
	// Anchored: this process surely gave its first event the id 1, so that ids say how many events it has sent.
	Anchored bool
	// Changes counts the messages and the connection changes of the endpoint that delivers, so that Polls sees them.
	Changes uint64

	// last are the frames of the last message, nil: not known. They are compared, never changed.
	last [][]byte
	// earlier is where messages stood before a poll moved the state on.
	earlier earlier
	// others are the endpoints that do not deliver, ascending.
	others []link
}

// SetLast gives the frames of the last message of Endpoint that was not stale, as read back from the journal after a restart.
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
	s.Connected, s.earlier = false, earlier{}
	for i := range s.others {
		s.others[i].breaks(false, false)
	}
	s.Changes++
	return mark
}

// Disconnects is DisconnectsFrom the endpoint 0.
func (s *State) Disconnects() { s.DisconnectsFrom(0) }

// Connects is ConnectsFrom the endpoint 0.
func (s *State) Connects() Cause { return s.ConnectsFrom(0) }

// DisconnectsFrom opens the window of R5, if it is the endpoint that delivers. The loss of another one is no doubt.
func (s *State) DisconnectsFrom(endpoint int) {
	if endpoint != s.Endpoint {
		s.other(endpoint).breaks(true, false)
		return
	}
	s.Changes++
	s.Window, s.Connected = true, false
	if s.Break == Unbroken && s.heard() {
		s.Break = ConnectionBroken
	}
}

// heard reports whether anything is known of the source that another process would put in doubt.
func (s *State) heard() bool { return s.Seq != 0 || s.last != nil || s.FromPoll }

// ConnectsFrom ends the window of R5, and begins a connection: the next message is its first, whatever came in the window. The
// returned cause is not CauseNone where a mark lies at this position: messages arrived in the window, and which
// connection they came by is not known. Of an endpoint that does not deliver it means nothing yet.
func (s *State) ConnectsFrom(endpoint int) Cause {
	if endpoint != s.Endpoint {
		s.other(endpoint).breaks(false, true)
		return CauseNone
	}
	s.Changes++
	s.Connected, s.earlier = true, earlier{}
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

// Message is MessageFrom the endpoint 0.
func (s *State) Message(b *event.Batch, frames [][]byte, receivedNs int64, slow bool) Verdict {
	return s.MessageFrom(0, b, frames, receivedNs, slow)
}

// MessageFrom judges one message, received from an endpoint at Unix nanoseconds receivedNs, and moves the state behind it. b
// holds what Scan found in frames, which must not change before the next message that is not stale. slow: the recorder's
// own buffer was full since the source's last message, so that a loss may be its fault.
func (s *State) MessageFrom(endpoint int, b *event.Batch, frames [][]byte, receivedNs int64, slow bool) Verdict {
	s.begin()
	taken := false
	if endpoint != s.Endpoint {
		if v, judged := s.fromOther(endpoint, b, frames); judged {
			return v
		}
		taken = s.heard()
		s.takeOver(endpoint, taken)
	}
	s.Changes++
	v := Verdict{InWindow: s.Window}
	if sameFrames(frames, s.last) {
		s.last = frames
		v.Duplicate = true
		v.Epoch, v.HasTime, v.Time, v.Keyed = s.Epoch, s.HasTime, s.Time, s.Keyed
		return v
	}
	if s.leftOver(b, frames, &v) {
		return v
	}
	s.last = frames
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

	s.comesLate(b)
	v.Follows = s.Seq != 0 && s.goesOn(b) && s.Break == Unbroken
	begins := s.Seq == 0 && b.Seq == 1
	switch {
	case taken:
		s.restart(b, &v)
	case s.Window && s.Break != Unbroken && s.goesOn(b):
		// Messages of the old connection are still coming, or so it seems. The next connection's first message will be
		// judged as such; until then every moment is unproven.
	case begins && s.FromPoll && s.Break != Unbroken:
		// The poll's line tells of this process, but a reading may have been made of another one since.
		v.Mark, v.MarkCause = MarkBefore, Reconnect
		s.Break = Unbroken
	case begins, v.Follows:
		s.Break = Unbroken
	default:
		s.discontinue(b, slow, &v)
		s.Break = Unbroken
	}
	v.Epoch, v.Keyed = s.Epoch, s.Keyed
	s.Seq, s.FromPoll, s.earlier = b.Seq, false, earlier{}
	if b.Damage != event.None {
		s.HasEventID = false
		v.Mark, v.MarkCause = MarkBehind, Damaged
		return v
	}
	if n := len(b.Events); n > 0 {
		s.HasEventID, s.EventID = b.Events[n-1].HasID, b.Events[n-1].ID
		s.Anchored = s.Anchored || b.Seq == 1 && b.Events[0].HasID && b.Events[0].ID == 1
		for i := range b.Events {
			if b.Events[i].Type != event.Cleared {
				s.Keyed = true
				break
			}
		}
	}
	return v
}

// begin turns the zero value into what it stands for.
func (s *State) begin() {
	if s.Epoch == 0 {
		s.Epoch, s.HasEventID = 1, true // event ids begin at 1: the one before the first is 0
	}
}

// goesOn reports whether b's numbers are the ones that come next (R3).
func (s *State) goesOn(b *event.Batch) bool {
	n := s.numbers()
	return n.goesOn(b)
}

// restart judges the first message seen of a process, in the epoch that is already its own (R5).
func (s *State) restart(b *event.Batch, v *Verdict) {
	s.Keyed, s.Anchored = false, false
	s.Break = Unbroken
	v.Gap = Gap{Cause: PublisherRestart, Epoch: s.Epoch}
	v.Mark, v.MarkCause = MarkBefore, PublisherRestart
	if b.Seq > 1 {
		v.Gap.First, v.Gap.Last = 1, b.Seq-1
		v.Mark = MarkBehind
	}
}

// discontinue judges a message that does not follow: which cause, which gap, where the mark lies (R3, R4, R5).
func (s *State) discontinue(b *event.Batch, slow bool, v *Verdict) {
	broken := s.Break != Unbroken
	n := s.numbers()
	if n.goesBack(b, broken) {
		s.Epoch++
		s.restart(b, v)
		return
	}
	jump, known := n.jump(b)
	if broken {
		s.Keyed, s.Anchored = false, false
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
	case s.Seq == 0 || broken:
		v.Gap.Cause = s.missed()
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

// missed is the cause for which the first messages of a connection or of a source are missing.
func (s *State) missed() Cause {
	switch {
	case s.Seq == 0 && !s.FromPoll:
		return LateJoin
	case s.Break == RecorderWasDown:
		return RecorderDown
	}
	return Disconnected // of a process that a poll showed: what it sent before the connection stood
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
