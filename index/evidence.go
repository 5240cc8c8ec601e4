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
}

const (
	evStored = 1 << iota
	evHasID
	evHasTime
)

var errEvidence = errors.New("evidence does not decode")

// appendEvidence appends all but the position: flags u8, then varints: epoch, seq, event_id, received, and received - time.
func appendEvidence(dst []byte, e *Evidence) []byte {
	var flags byte
	if e.Stored {
		flags |= evStored
	}
	if e.HasID {
		flags |= evHasID
	}
	if e.HasTime {
		flags |= evHasTime
	}
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

func decodeEvidence(b []byte, at Position) (Evidence, error) {
	c := varint.Cursor{B: b}
	flags := c.Byte()
	e := Evidence{Position: at, Stored: flags&evStored != 0, HasID: flags&evHasID != 0, HasTime: flags&evHasTime != 0}
	e.Epoch, e.Seq = c.Uvarint(), c.Uvarint()
	if e.HasID {
		e.ID = c.Uvarint()
	}
	e.Received = c.Varint()
	if e.HasTime {
		e.Time = e.Received - c.Varint()
	}
	if c.Bad || len(c.B) != 0 {
		return e, errEvidence
	}
	return e, nil
}
