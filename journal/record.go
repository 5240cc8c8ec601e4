package journal

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// Kind says what a record is. Values are part of the format: never renumber, only append.
type Kind uint8

const (
	// Message: one ZMQ message, raw.
	Message Kind = 1
	// Connected: the socket is connected, and no message of an older connection is still to come.
	Connected Kind = 2
	// Disconnected: the socket lost its connection; messages of it may still follow.
	Disconnected Kind = 3
	// RecorderStarted: a recorder began to listen to the source.
	RecorderStarted Kind = 4
	// RecorderStopped: a recorder ended in good order.
	RecorderStopped Kind = 5
	// TailLost: offsets that had been acknowledged are not in the journal any more. Its one frame is a Lost. It stands behind them, or,
	// in a repaired journal, at the last of them.
	TailLost Kind = 6
	// PublisherStatus: the master's counters or segments say something that changes a claim. Its one frame is JSON
	// (reading.Status).
	PublisherStatus Kind = 7
	// ReconciliationBegun, ReconciliationPart and ReconciliationEnded: a reading of the master (package reading).
	ReconciliationBegun Kind = 8
	ReconciliationPart  Kind = 9
	ReconciliationEnded Kind = 10
)

var kindNames = map[Kind]string{
	Message: "message", Connected: "connected", Disconnected: "disconnected", RecorderStarted: "recorder_started",
	RecorderStopped: "recorder_stopped", TailLost: "tail_lost", PublisherStatus: "publisher_status",
	ReconciliationBegun: "reconciliation_begun", ReconciliationPart: "reconciliation_part", ReconciliationEnded: "reconciliation_ended",
}

func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// Header is all that the journal knows of a record beside its raw bytes.
type Header struct {
	Kind Kind
	// Source is the id that EnsureSource gave.
	Source uint32
	// Received is the recorder's clock, Unix ns.
	Received int64
	// HasSeq and Seq are the publisher's sequence number, where readable. Of a Message only.
	HasSeq bool
	Seq    uint64
	// Events is the number of events in the batch, 0 if damaged. Of a Message only.
	Events uint32
	// Verdict: of a Message all of it; of the other kinds Epoch, HasTime, Time, Mark and MarkCause only.
	continuity.Verdict
}

// Counts reports whether the record is a message of the source's stream: neither a duplicate, nor stale (of an HA group's
// endpoint that does not deliver any more).
func (h *Header) Counts() bool { return h.Kind == Message && !h.Duplicate && !h.Stale }

// Applies reports whether the record is a batch that changes state: decoded, and part of the stream.
func (h *Header) Applies() bool { return h.Counts() && h.Damage == 0 }

// entry is a header with its place among the block's payload bytes.
type entry struct {
	Header
	// plain: frames are ["", Seq big-endian, payload]; only the payload is stored. Else frames holds their lengths.
	plain  bool
	start  int
	length int
	frames []int
}

// framesOf appends the entry's frames to dst. They alias payload, and seq (8 bytes of scratch, one per record).
func (e *entry) framesOf(payload []byte, dst [][]byte, seq *[8]byte) [][]byte {
	b := payload[e.start : e.start+e.length : e.start+e.length]
	if e.plain {
		binary.BigEndian.PutUint64(seq[:], e.Seq)
		return append(dst, b[:0:0], seq[:], b)
	}
	for _, n := range e.frames {
		dst = append(dst, b[:n:n])
		b = b[n:]
	}
	return dst
}

// isPlain reports whether frames have the usual shape, which needs no lengths of its own.
func isPlain(h *Header, frames [][]byte) bool {
	return h.Kind == Message && h.HasSeq && len(frames) == 3 && len(frames[0]) == 0 && len(frames[1]) == 8 &&
		binary.BigEndian.Uint64(frames[1]) == h.Seq
}

// tailLostHeader is the record that marks a lost tail for one source.
func tailLostHeader(source uint32, p *Position) Header {
	epoch := max(p.State.Epoch, 1)
	return Header{
		Kind: TailLost, Source: source, Received: time.Now().UnixNano(),
		Verdict: continuity.Verdict{
			Epoch: epoch, HasTime: p.State.HasTime, Time: p.State.Time,
			Mark: continuity.MarkBehind, MarkCause: continuity.Damaged,
			Gap: continuity.Gap{Cause: continuity.Damaged, Epoch: epoch},
		},
	}
}
