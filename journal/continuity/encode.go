package continuity

import (
	"encoding/binary"
	"errors"
)

var (
	// ErrState is returned for bytes that are no encoded State.
	ErrState = errors.New("continuity: not an encoded state")
	// ErrNewerState is returned for a State with parts that this program does not know.
	ErrNewerState = errors.New("continuity: a state of a newer program")
)

const (
	flagHasEventID = 1 << iota
	flagKeyed
	flagHasTime
	flagWindow
	flagWindowUsed
	flagMore // the second part follows

	flagsKnown = 1<<iota - 1
)

// Flags of the second part.
const (
	moreConnected = 1 << iota
	moreFromPoll
	moreAnchored

	moreKnown = 1<<iota - 1
)

// Flags of an endpoint that does not deliver.
const (
	linkBroken = 1 << iota
	linkWindow
	linkConnected
	linkReplaced // an encoded replaced follows

	linkKnown = 1<<iota - 1
)

func bits(flags ...bool) (b byte) {
	for i, on := range flags {
		if on {
			b |= 1 << i
		}
	}
	return b
}

// AppendBinary appends the state without the last message's frames:
//
//	flags u8, break u8, then epoch, seq and event_id as uvarints and the time as a varint
//
// and, where flags say so, because one of its fields is not zero (states of earlier versions have no second part):
//
//	flags u8, endpoint and changes as uvarints
//	kind of the earlier messages u8; where not 0, their stream
//	number of other endpoints as uvarint, and of each: number as uvarint, flags u8, the stream of when it delivered, if it did
//
// A stream is epoch and seq as uvarints, u8 whether event_id is known, event_id as uvarint, 16 bytes of digest.
func (s *State) AppendBinary(dst []byte) []byte {
	more := bits(s.Connected, s.FromPoll, s.Anchored)
	second := more != 0 || s.Endpoint != 0 || s.Changes != 0 || s.earlier.kind != notEarlier || len(s.others) > 0
	dst = append(dst, bits(s.HasEventID, s.Keyed, s.HasTime, s.Window, s.WindowUsed, second), byte(s.Break))
	dst = binary.AppendUvarint(dst, s.Epoch)
	dst = binary.AppendUvarint(dst, s.Seq)
	dst = binary.AppendUvarint(dst, s.EventID)
	dst = binary.AppendVarint(dst, s.Time)
	if !second {
		return dst
	}
	dst = append(dst, more)
	dst = binary.AppendUvarint(dst, uint64(s.Endpoint))
	dst = binary.AppendUvarint(dst, s.Changes)
	dst = append(dst, byte(s.earlier.kind))
	if s.earlier.kind != notEarlier {
		dst = s.earlier.append(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.others)))
	for i := range s.others {
		l := &s.others[i]
		dst = binary.AppendUvarint(dst, uint64(l.endpoint))
		dst = append(dst, bits(l.broken, l.window, l.connected, l.old.epoch != 0))
		if l.old.epoch != 0 {
			dst = l.old.append(dst)
		}
	}
	return dst
}

func (r *replaced) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, r.epoch)
	dst = binary.AppendUvarint(dst, r.seq)
	dst = append(dst, bits(r.hasID))
	dst = binary.AppendUvarint(dst, r.eventID)
	return append(dst, r.last[:]...)
}

// decoder reads a state; bad after something that is none.
type decoder struct {
	newer bool // a flag is not known
	b     []byte
	bad   bool
}

func (d *decoder) bytes(n int) []byte {
	if d.bad || len(d.b) < n {
		d.bad = true
		return make([]byte, n)
	}
	got := d.b[:n]
	d.b = d.b[n:]
	return got
}

func (d *decoder) byte() byte { return d.bytes(1)[0] }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) endpoint() int {
	v := d.uvarint()
	if v > MaxEndpoint {
		d.bad = true
		return 0
	}
	return int(v)
}

func (d *decoder) replaced() (r replaced) {
	r.epoch, r.seq = d.uvarint(), d.uvarint()
	r.hasID, r.eventID = d.byte() != 0, d.uvarint()
	copy(r.last[:], d.bytes(len(r.last)))
	d.bad = d.bad || r.epoch == 0
	return r
}

// DecodeState reads what AppendBinary wrote, of this version or an earlier one.
func DecodeState(b []byte) (State, error) {
	d := decoder{b: b}
	flags := d.byte()
	if flags&^byte(flagsKnown) != 0 {
		return State{}, ErrNewerState
	}
	s := State{
		HasEventID: flags&flagHasEventID != 0, Keyed: flags&flagKeyed != 0, HasTime: flags&flagHasTime != 0,
		Window: flags&flagWindow != 0, WindowUsed: flags&flagWindowUsed != 0, Break: Break(d.byte()),
	}
	s.Epoch, s.Seq, s.EventID, s.Time = d.uvarint(), d.uvarint(), d.uvarint(), d.varint()
	if flags&flagMore != 0 {
		d.second(&s)
	}
	if d.newer {
		return State{}, ErrNewerState
	}
	if d.bad || len(d.b) != 0 {
		return State{}, ErrState
	}
	return s, nil
}

func (d *decoder) second(s *State) {
	more := d.byte()
	d.newer = more&^byte(moreKnown) != 0
	s.Connected, s.FromPoll, s.Anchored = more&moreConnected != 0, more&moreFromPoll != 0, more&moreAnchored != 0
	s.Endpoint, s.Changes = d.endpoint(), d.uvarint()
	if s.earlier.kind = earlierKind(d.byte()); s.earlier.kind != notEarlier {
		s.earlier.replaced = d.replaced()
		d.bad = d.bad || s.earlier.kind > earlierTail
	}
	before := -1
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		l := link{endpoint: d.endpoint()}
		flags := d.byte()
		d.newer = d.newer || flags&^byte(linkKnown) != 0
		l.broken, l.window, l.connected = flags&linkBroken != 0, flags&linkWindow != 0, flags&linkConnected != 0
		if flags&linkReplaced != 0 {
			l.old = d.replaced()
		}
		d.bad = d.bad || l.endpoint <= before || l.endpoint == s.Endpoint
		before = l.endpoint
		s.others = append(s.others, l)
	}
}
