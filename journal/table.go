package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// The header table is stored by column, each a run of varints, because neighbours in a column hardly differ: seq goes
// up by one, times by little. What is rare (gaps, marks, damage, odd frames) stands in a column of its own that is
// empty in a block without any. doc.go draws it.

const (
	colFlags = iota
	colSource
	colEpoch
	colSeq
	colTime
	colReceived
	colEvents
	colLength
	colRare
	columns
)

// Flags of a record, low bits first. Part of the format.
const (
	recHasSeq = 1 << iota
	recHasTime
	recDuplicate
	recFollows
	recInWindow
	recKeyed
	recPlain
	recRare // damage, mark, gap or odd frames: see colRare
)

const (
	rareDamage = 1 << iota
	rareMark
	rareGap
	rareFrames
	rareStale
)

var errTable = errors.New("header table does not decode")

// tableWriter collects the columns of a block. The zero value is ready.
type tableWriter struct {
	cols [columns][]byte
	prev Header
}

func (w *tableWriter) reset() {
	for i := range w.cols {
		w.cols[i] = w.cols[i][:0]
	}
	w.prev = Header{}
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

// flags are those of a header that most records have some of.
func (h *Header) flags() byte {
	return flag(h.HasSeq, recHasSeq) | flag(h.HasTime, recHasTime) | flag(h.Duplicate, recDuplicate) |
		flag(h.Follows, recFollows) | flag(h.InWindow, recInWindow) | flag(h.Keyed, recKeyed)
}

// setFlags is the opposite of flags.
func (h *Header) setFlags(flags byte) {
	h.HasSeq = flags&recHasSeq != 0
	h.HasTime = flags&recHasTime != 0
	h.Duplicate = flags&recDuplicate != 0
	h.Follows = flags&recFollows != 0
	h.InWindow = flags&recInWindow != 0
	h.Keyed = flags&recKeyed != 0
}

// add appends one record's header; frames are its frame lengths, nil where plain.
func (w *tableWriter) add(h *Header, plain bool, frames [][]byte, length int) {
	p := &w.prev
	flags := h.flags() | flag(plain, recPlain)
	var rare byte
	if h.Damage != 0 {
		rare |= rareDamage
	}
	if h.Mark != continuity.NoMark {
		rare |= rareMark
	}
	if h.Gap.Cause != continuity.CauseNone {
		rare |= rareGap
	}
	if !plain {
		rare |= rareFrames
	}
	if h.Stale {
		rare |= rareStale
	}
	flags |= flag(rare != 0, recRare)

	c := &w.cols
	c[colFlags] = append(c[colFlags], byte(h.Kind), flags)
	c[colSource] = varint.AppendDelta(c[colSource], uint64(h.Source), uint64(p.Source))
	c[colEpoch] = varint.AppendDelta(c[colEpoch], h.Epoch, p.Epoch)
	c[colSeq] = varint.AppendDelta(c[colSeq], h.Seq, p.Seq)
	c[colTime] = varint.AppendDelta(c[colTime], uint64(h.Time), uint64(p.Time))
	c[colReceived] = varint.AppendDelta(c[colReceived], uint64(h.Received), uint64(p.Received))
	c[colEvents] = binary.AppendUvarint(c[colEvents], uint64(h.Events))
	c[colLength] = binary.AppendUvarint(c[colLength], uint64(length))
	if rare != 0 {
		c[colRare] = appendRare(c[colRare], rare, h, frames)
	}
	*p = *h
}

func appendRare(b []byte, rare byte, h *Header, frames [][]byte) []byte {
	b = append(b, rare)
	if rare&rareDamage != 0 {
		b = append(b, byte(h.Damage))
	}
	if rare&rareMark != 0 {
		b = append(b, byte(h.Mark), byte(h.MarkCause))
	}
	if rare&rareGap != 0 {
		g := &h.Gap
		b = append(b, byte(g.Cause), byte(g.Lost))
		for _, v := range []uint64{g.Epoch, g.First, g.Last, g.Min, g.Max} {
			b = binary.AppendUvarint(b, v)
		}
	}
	if rare&rareFrames != 0 {
		b = binary.AppendUvarint(b, uint64(len(frames)))
		for _, f := range frames {
			b = binary.AppendUvarint(b, uint64(len(f)))
		}
	}
	return b
}

// appendTo appends the whole table: the length of each column, then the columns.
func (w *tableWriter) appendTo(dst []byte) []byte {
	for _, c := range w.cols {
		dst = binary.AppendUvarint(dst, uint64(len(c)))
	}
	for _, c := range w.cols {
		dst = append(dst, c...)
	}
	return dst
}

// tableReader reads the entries of a table one by one. A copy of it goes on from the same place.
type tableReader struct {
	cols   [columns]varint.Cursor
	record int    // the next one
	start  int    // where its payload begins
	rest   int    // bytes of payload from there on
	source uint32 // of the record before, as the others
	epoch  uint64
	seq    uint64
	time   int64
	// received is in ns.
	received int64
}

// newTableReader reads a table of count records, whose payloads together are payloadLen bytes long.
func newTableReader(table []byte, count, payloadLen int) (r tableReader, err error) {
	r.rest = payloadLen
	head := varint.Cursor{B: table}
	var lens [columns]uint64
	for i := range lens {
		lens[i] = head.Uvarint()
	}
	for i := range r.cols {
		r.cols[i].B = head.Bytes(lens[i])
	}
	if !head.Done() || len(r.cols[colFlags].B) != 2*count {
		return r, errTable
	}
	return r, nil
}

// next fills e, which must be zero, with the next entry; there must be one.
func (r *tableReader) next(e *entry) error {
	c := &r.cols
	e.Kind = Kind(c[colFlags].Byte())
	flags := c[colFlags].Byte()
	e.setFlags(flags)
	e.plain = flags&recPlain != 0
	r.source = uint32(c[colSource].Delta(uint64(r.source)))
	r.epoch = c[colEpoch].Delta(r.epoch)
	r.seq = c[colSeq].Delta(r.seq)
	r.time = int64(c[colTime].Delta(uint64(r.time)))
	r.received = int64(c[colReceived].Delta(uint64(r.received)))
	e.Source, e.Epoch, e.Seq, e.Time, e.Received = r.source, r.epoch, r.seq, r.time, r.received
	e.Events = uint32(c[colEvents].Uvarint())
	length := c[colLength].Uvarint()
	if length > uint64(r.rest) {
		return errTable
	}
	e.start, e.length = r.start, int(length)
	r.start += e.length
	r.rest -= e.length
	if flags&recRare != 0 {
		if b := c[colRare].B; len(b) > 0 && b[0]&^rareKnown != 0 {
			return &newerRecord{r.record, fmt.Sprintf("flags %#x of which this program knows %#x", b[0], rareKnown)}
		}
		if !decodeRare(&c[colRare], e) {
			return errTable
		}
	}
	if flags&recRare != 0 || e.Kind != Message {
		if what := e.unknown(); what != "" {
			return &newerRecord{r.record, what}
		}
	}
	r.record++
	return nil
}

// end is nil where all was read, and nothing but that was there.
func (r *tableReader) end() error {
	for i := range r.cols {
		if !r.cols[i].Done() {
			return errTable
		}
	}
	if r.rest != 0 {
		return errTable
	}
	return nil
}

// decodeTable appends the entries of a table of count records, whose payloads together are payloadLen bytes long.
func decodeTable(dst []entry, table []byte, count, payloadLen int) ([]entry, error) {
	r, err := newTableReader(table, count, payloadLen)
	for i := 0; i < count && err == nil; i++ {
		dst = append(dst, entry{})
		err = r.next(&dst[len(dst)-1])
	}
	if err == nil {
		err = r.end()
	}
	return dst, err
}

func decodeRare(c *varint.Cursor, e *entry) bool {
	rare := c.Byte()
	e.Stale = rare&rareStale != 0
	if rare&rareDamage != 0 {
		e.Damage = event.Cause(c.Byte())
	}
	if rare&rareMark != 0 {
		e.Mark, e.MarkCause = continuity.MarkPlace(c.Byte()), continuity.Cause(c.Byte())
	}
	if rare&rareGap != 0 {
		g := &e.Gap
		g.Cause, g.Lost = continuity.Cause(c.Byte()), continuity.Lost(c.Byte())
		for _, v := range []*uint64{&g.Epoch, &g.First, &g.Last, &g.Min, &g.Max} {
			*v = c.Uvarint()
		}
	}
	if rare&rareFrames != 0 {
		n := c.Uvarint()
		if n > uint64(len(c.B)) {
			return false
		}
		total := 0
		e.frames = make([]int, 0, n)
		for range n {
			l := c.Uvarint()
			if l > uint64(e.length-total) {
				return false
			}
			e.frames = append(e.frames, int(l))
			total += int(l)
		}
		if total != e.length {
			return false
		}
	}
	return !c.Bad
}
