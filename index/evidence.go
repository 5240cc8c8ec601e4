package index

import (
	"encoding/binary"
	"errors"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Evidence is what an event, or a clear, says, with all that an answer shows of it, so that an answer opens no block.
type Evidence struct {
	Position Position
	// Stored: the event was `stored`; else `removed`, or `cleared` where the evidence is a scope's.
	Stored bool
	Epoch  uint64
	Seq    uint64
	// HasID: the event had an event_id.
	HasID bool
	ID    uint64
	// HasTime: the batch stands at a publisher time, Unix ms.
	HasTime bool
	Time    int64
	// Received is the recorder's clock, Unix ms.
	Received int64
	// Window: its batch was received while the connection's boundary was not known, so that nothing is proven there (R5).
	Window bool
	// Cut: it ends a full batch, so that its object's change may go on in the next one (R8).
	Cut bool
	// HasGroup: the event had a group_id; Row.Group has it.
	HasGroup bool
	// Reading: it is no event but what a reading of the master says (R9); Seq is the last one received before.
	Reading bool
}

const (
	evStored = 1 << iota
	evHasID
	evHasTime
	evWindow
	evCut
	evGroup
	evReading
)

var errEvidence = errors.New("evidence does not decode")

// appendEvidence appends all but the position and the group: flags u8, then varints: epoch, seq, event_id, received, and
// received - time.
func appendEvidence(dst []byte, e *Evidence) []byte {
	flags := bit(e.Stored, evStored) | bit(e.HasID, evHasID) | bit(e.HasTime, evHasTime) | bit(e.Window, evWindow) | bit(e.Cut, evCut) | bit(e.HasGroup, evGroup) |
		bit(e.Reading, evReading)
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, e.Epoch)
	dst = binary.AppendUvarint(dst, e.Seq)
	if e.HasID {
		dst = binary.AppendUvarint(dst, e.ID)
	}
	dst = binary.AppendVarint(dst, e.Received)
	if e.HasTime {
		dst = binary.AppendVarint(dst, e.Received-e.Time)
	}
	return dst
}

func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

func decodeEvidence(b []byte, at Position) (Evidence, error) {
	e, group := cutEvidence(b, at)
	if group.Bad || !e.HasGroup && len(group.B) != 0 || e.HasGroup && !validGroup(group) {
		return e, errEvidence
	}
	return e, nil
}

// cutEvidence reads the evidence and leaves the group.
func cutEvidence(b []byte, at Position) (Evidence, varint.Cursor) {
	c := varint.Cursor{B: b}
	flags := c.Byte()
	e := Evidence{
		Position: at, Stored: flags&evStored != 0, HasID: flags&evHasID != 0, HasTime: flags&evHasTime != 0,
		Window: flags&evWindow != 0, Cut: flags&evCut != 0, HasGroup: flags&evGroup != 0,
		Reading: flags&evReading != 0,
	}
	e.Epoch, e.Seq = c.Uvarint(), c.Uvarint()
	if e.HasID {
		e.ID = c.Uvarint()
	}
	e.Received = c.Varint()
	if e.HasTime {
		e.Time = e.Received - c.Varint()
	}
	return e, c
}

// connectorGroup begins the groups of SGLang's connector; the first bytes of the object's key follow (seen in captures of real
// masters). Such a group is kept as the number of those bytes.
const connectorGroup = "sglang-hicache:"

// appendGroup appends an event's group behind its evidence: 0 and the number of the key's bytes that follow connectorGroup,
// or the group's length + 1 and the group.
func appendGroup(dst, group, key []byte) []byte {
	if n := len(group) - len(connectorGroup); n >= 0 && n <= len(key) &&
		string(group[:len(connectorGroup)]) == connectorGroup && string(group[len(connectorGroup):]) == string(key[:n]) {
		return binary.AppendUvarint(append(dst, 0), uint64(n))
	}
	return append(binary.AppendUvarint(dst, uint64(len(group))+1), group...)
}

func validGroup(c varint.Cursor) bool {
	if n := c.Uvarint(); n > 0 {
		return !c.Bad && uint64(len(c.B)) == n-1
	}
	c.Uvarint()
	return !c.Bad && len(c.B) == 0
}

// appendGroupOf appends to dst the group that c stands at, of the object with that key.
func appendGroupOf(dst []byte, c varint.Cursor, key []byte) ([]byte, error) {
	n := c.Uvarint()
	switch {
	case c.Bad:
		return dst, errEvidence
	case n > 0:
		if uint64(len(c.B)) != n-1 {
			return dst, errEvidence
		}
		return append(dst, c.B...), nil
	}
	if n = c.Uvarint(); c.Bad || len(c.B) != 0 || n > uint64(len(key)) {
		return dst, errEvidence
	}
	return append(append(dst, connectorGroup...), key[:n]...), nil
}
