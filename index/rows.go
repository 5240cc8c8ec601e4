package index

import (
	"encoding/binary"
	"encoding/json"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// Mark is a position of a source: evidence at or before it is in doubt (R2). A mark directly behind one of the same
// cause, with no evidence between, extends it (R10): From is where it began, End where it ends.
type Mark struct {
	From  uint64 // offset of the first record that set it
	End   Position
	Cause continuity.Cause
	// HasTime and Time are the publisher time (ms) of the record that set it last, Received our clock (ms).
	HasTime  bool
	Time     int64
	Received int64
}

func (m *Mark) encode() []byte {
	var b []byte
	b = binary.AppendUvarint(b, m.End.Offset)
	b = binary.AppendUvarint(b, uint64(m.End.Event))
	b = append(b, byte(m.Cause))
	b = binary.AppendVarint(b, m.Received)
	if m.HasTime {
		b = binary.AppendVarint(b, m.Received-m.Time)
	}
	return b
}

func decodeMark(key, value []byte) (Mark, error) {
	if len(key) != 13 {
		return Mark{}, errEvidence
	}
	c := varint.Cursor{B: value}
	m := Mark{From: binary.BigEndian.Uint64(key[5:])}
	m.End = Position{c.Uvarint(), uint32(c.Uvarint())}
	m.Cause = continuity.Cause(c.Byte())
	m.Received = c.Varint()
	if m.HasTime = len(c.B) > 0; m.HasTime {
		m.Time = m.Received - c.Varint()
	}
	if c.Bad || len(c.B) != 0 {
		return m, errEvidence
	}
	return m, nil
}

// Gap is one line of gaps, as the index keeps it.
type Gap struct {
	Source uint32 `json:"-"`
	// After is the offset of the record that showed the loss; Before that of the source's last message before it, 0: none.
	After  uint64           `json:"-"`
	Before uint64           `json:"b,omitempty"`
	Cause  continuity.Cause `json:"c"`
	Epoch  uint64           `json:"e"`
	// First and Last are the missing sequence numbers; of a damaged message its own number. HasSeq: they are known.
	HasSeq bool   `json:"s,omitempty"`
	First  uint64 `json:"f,omitempty"`
	Last   uint64 `json:"l,omitempty"`
	// Missing is the number of missing sequence numbers.
	Missing uint64          `json:"m,omitempty"`
	Lost    continuity.Lost `json:"k,omitempty"`
	Min     uint64          `json:"n,omitempty"`
	Max     uint64          `json:"x,omitempty"`
	// Damage says what was wrong with a damaged message.
	Damage uint8 `json:"d,omitempty"`
	// MissingOffsets: the journal itself lost the offsets First..Last.
	MissingOffsets bool `json:"o,omitempty"`
	// TimeBefore and TimeAfter are publisher times, Unix ms; nil: none.
	TimeBefore *int64 `json:"tb,omitempty"`
	TimeAfter  *int64 `json:"ta,omitempty"`
	// Received is our clock at the record that showed it, Unix ms.
	Received int64 `json:"r"`
}

// Place is a record as an answer shows it.
type Place struct {
	Offset   uint64 `json:"o,omitempty"` // 0: none
	Seq      uint64 `json:"s,omitempty"`
	Events   uint32 `json:"n,omitempty"`
	HasTime  bool   `json:"h,omitempty"`
	Time     int64  `json:"t,omitempty"` // publisher time, Unix ms
	Received int64  `json:"r,omitempty"` // our clock, Unix ms
}

// SourceState is where a source stands in the index.
type SourceState struct {
	Epoch uint64 `json:"epoch"`
	// HasID and EventID are of the last event.
	HasID   bool   `json:"has_id,omitempty"`
	EventID uint64 `json:"id,omitempty"`
	// Last is the newest message that is no duplicate; damaged ones count.
	Last Place `json:"last"`
	// AsOf is the newest batch or mark, which answers speak of by default; while a window of R5 is open it stays at what
	// it was before. Batch: it is a batch.
	AsOf  Place `json:"as_of"`
	Batch bool  `json:"batch,omitempty"`
	// Window: the window of R5 is open.
	Window    bool `json:"window,omitempty"`
	Connected bool `json:"connected,omitempty"`
	// MarkFrom and Mark are the newest mark; MarkFrom is 0 where there is none.
	MarkFrom  uint64           `json:"mark_from,omitempty"`
	MarkEnd   Position         `json:"mark_end"`
	MarkCause continuity.Cause `json:"mark_cause,omitempty"`
	// Evidence: something counts as evidence since the newest mark.
	Evidence bool `json:"evidence,omitempty"`
	// Reading is where the reading of the master that was begun last began; nil: none is under way.
	Reading *Place `json:"reading,omitempty"`
	// Excepted counts the objects that its parts except so far.
	Excepted uint64 `json:"excepted,omitempty"`
	// Lost is the offset of the newest loss in the journal itself, or of the record that tells of it, if that is behind it; 0: none.
	Lost uint64 `json:"lost,omitempty"`
	// Readings counts those that ended.
	Readings uint64 `json:"readings,omitempty"`
	// Counters, from the beginning on.
	Messages   uint64 `json:"messages"`
	Events     uint64 `json:"events"`
	Duplicates uint64 `json:"duplicates,omitempty"`
	Damaged    uint64 `json:"damaged,omitempty"`
	// Stale counts messages of endpoints that do not deliver any more; they change nothing.
	Stale uint64 `json:"stale,omitempty"`
	Marks uint64 `json:"marks,omitempty"`
	Gaps  uint64 `json:"gaps,omitempty"`
}

func (s *SourceState) encode() ([]byte, error) { return json.Marshal(s) }
