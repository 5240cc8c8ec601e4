package continuity

import (
	"crypto/sha256"
	"encoding/binary"
	"sort"

	"github.com/kvjournal/kvjournal/journal/event"
)

// MaxEndpoint is the largest number that an endpoint of a source may have.
const MaxEndpoint = 1<<16 - 1

// numbers are where the messages of one process stand.
type numbers struct {
	seq     uint64
	hasID   bool
	eventID uint64
}

func (s *State) numbers() numbers { return numbers{s.Seq, s.HasEventID, s.EventID} }

// goesOn reports whether b's numbers are the ones that come next (R3). Nothing comes next to the largest.
func (n *numbers) goesOn(b *event.Batch) bool {
	if b.Seq == 0 || b.Seq-1 != n.seq {
		return false
	}
	if !n.hasID || len(b.Events) == 0 || !b.Events[0].HasID {
		return true
	}
	return b.Events[0].ID != 0 && b.Events[0].ID-1 == n.eventID
}

// jump is how many event_ids are missing before b: 0 if they are not known, or go back.
func (n *numbers) jump(b *event.Batch) (missing uint64, known bool) {
	known = n.hasID && len(b.Events) > 0 && b.Events[0].HasID
	if known && b.Events[0].ID > n.eventID {
		missing = b.Events[0].ID - n.eventID - 1
	}
	return missing, known
}

// goesBack reports whether b proves another process (R5). broken: the connection is not the one of the message before.
func (n *numbers) goesBack(b *event.Batch, broken bool) bool {
	jump, known := n.jump(b)
	back := known && n.seq != 0 && b.Events[0].ID <= n.eventID
	return b.Seq <= n.seq || back || (b.Seq == n.seq+1 && jump > 0 && !broken)
}

// moveTo moves behind b.
func (n *numbers) moveTo(b *event.Batch) {
	n.seq = b.Seq
	switch k := len(b.Events); {
	case b.Damage != event.None:
		n.hasID, n.eventID = false, 0
	case k > 0:
		n.hasID, n.eventID = b.Events[k-1].HasID, b.Events[k-1].ID
	}
}

// replaced is the stream of a process that another one has replaced: enough to know its messages again.
type replaced struct {
	epoch uint64 // of the process; 0: there is none
	numbers
	last [16]byte // digest of the last message's frames; 0: not known
}

func (s *State) replaced() replaced { return replaced{s.Epoch, s.numbers(), digest(s.last)} }

// digest stands for a message's frames where they are only compared.
func digest(frames [][]byte) (d [16]byte) {
	if frames == nil {
		return d
	}
	h := sha256.New()
	for _, f := range frames {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f))))
		h.Write(f)
	}
	copy(d[:], h.Sum(nil))
	return d
}

// repeats reports whether frames are the stream's last message once more.
func (r *replaced) repeats(frames [][]byte) bool {
	return r.last != [16]byte{} && r.last == digest(frames)
}

// link is an endpoint that does not deliver.
type link struct {
	endpoint int
	// old is the stream of when it did, if ever.
	old replaced
	// broken: its connection changed since its last message, so that a number that goes on proves nothing.
	broken            bool
	window, connected bool // as of State
}

func (l *link) breaks(window, connected bool) {
	l.broken = l.old.epoch != 0
	l.window, l.connected = window, connected
}

// find is where the endpoint stands, or belongs, among the others.
func (s *State) find(endpoint int) (at int, found bool) {
	at = sort.Search(len(s.others), func(i int) bool { return s.others[i].endpoint >= endpoint })
	return at, at < len(s.others) && s.others[at].endpoint == endpoint
}

// other returns what is known of an endpoint that does not deliver; until the next call.
func (s *State) other(endpoint int) *link {
	at, found := s.find(endpoint)
	if !found {
		s.others = append(s.others, link{})
		copy(s.others[at+1:], s.others[at:])
		s.others[at] = link{endpoint: endpoint}
	}
	return &s.others[at]
}

// fromOther judges a message of an endpoint that does not deliver. It returns false if the endpoint delivers from now on.
func (s *State) fromOther(endpoint int, b *event.Batch, frames [][]byte) (Verdict, bool) {
	v := Verdict{Epoch: s.Epoch, HasTime: s.HasTime, Time: s.Time, Keyed: s.Keyed, InWindow: s.Window, Damage: b.Damage}
	l := link{}
	if at, found := s.find(endpoint); found {
		l = s.others[at]
	}
	stale := func(duplicate bool) (Verdict, bool) {
		v.Stale, v.Duplicate, v.Epoch = true, duplicate, l.old.epoch
		return v, true
	}
	was := l.old.epoch != 0
	switch {
	case was && l.old.repeats(frames):
		return stale(true)
	case !b.HasSeq && was && !l.broken:
		return stale(false)
	case !b.HasSeq:
		// Whose it is cannot be known; nor whether the endpoint leads now: its next readable message shows.
		v.Mark, v.MarkCause = MarkBehind, Damaged
		return v, true
	case !was, l.old.goesBack(b, l.broken):
		return Verdict{}, false
	case s.mayLead(endpoint) && s.Break != Unbroken:
		// The numbers go forward, which proves nothing across its connections, and the connection that delivered last is
		// gone too: better a new epoch than a leader that is not heard.
		return Verdict{}, false
	}
	at, _ := s.find(endpoint)
	s.others[at].old.moveTo(b)
	s.others[at].old.last = digest(frames)
	return stale(false)
}

// takeOver makes an endpoint the one that delivers; in a new epoch, if something was known before.
func (s *State) takeOver(endpoint int, newEpoch bool) {
	before := link{endpoint: s.Endpoint, window: s.Window, connected: s.Connected}
	if s.Seq != 0 {
		before.old, before.broken = s.replaced(), s.Break != Unbroken
	}
	next := *s.other(endpoint)
	at, _ := s.find(endpoint)
	s.others = append(s.others[:at], s.others[at+1:]...)
	*s.other(before.endpoint) = before
	s.Endpoint, s.Window, s.Connected, s.WindowUsed = endpoint, next.window, next.connected, false
	if !newEpoch {
		return
	}
	s.Epoch++
	s.Seq, s.HasEventID, s.EventID, s.Break = 0, false, 0, Unbroken
	s.FromPoll, s.last, s.earlier = false, nil, earlier{}
}

// connected reports whether a connection to the endpoint stands.
func (s *State) connected(endpoint int) bool {
	if endpoint == s.Endpoint {
		return s.Connected
	}
	at, found := s.find(endpoint)
	return found && s.others[at].connected
}

// mayLead reports whether an endpoint that does not deliver may be another process than when it did.
func (s *State) mayLead(endpoint int) bool {
	at, found := s.find(endpoint)
	return !found || s.others[at].old.epoch == 0 || s.others[at].broken
}

// Leads tells that the master behind an endpoint says that it leads its group and serves. If the endpoint delivered before,
// and its connection broke since, its next message starts a new epoch though its numbers go on from where they were then.
// Tell it only of a master that is newer than the one behind Endpoint (a higher view_version): both may say that they lead. It
// returns whether that changed anything.
func (s *State) Leads(endpoint int) bool {
	at, found := s.find(endpoint)
	news := found && s.others[at].broken
	if news {
		s.forget(endpoint)
	}
	return news
}

// forget makes the next message of an endpoint that does not deliver start a new epoch: another process runs there.
func (s *State) forget(endpoint int) {
	if at, found := s.find(endpoint); found {
		s.others[at].old, s.others[at].broken = replaced{}, false
	}
}

// process names the process whose messages an endpoint last gave, and its last seq. 0: none.
func (s *State) process(endpoint int) (epoch, seq uint64) {
	if endpoint == s.Endpoint {
		return max(s.Epoch, 1), s.Seq
	}
	if at, found := s.find(endpoint); found {
		return s.others[at].old.epoch, s.others[at].old.seq
	}
	return 0, 0
}
