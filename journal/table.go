package journal

import (
	"encoding/binary"
	"errors"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
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

func zigzag(dst []byte, v, prev uint64) []byte { return binary.AppendVarint(dst, int64(v-prev)) }

// add appends one record's header; frames are its frame lengths, nil where plain.
func (w *tableWriter) add(h *Header, plain bool, frames [][]byte, length int) {
	p := &w.prev
	flags := uint64(0)
	set := func(on bool, bit uint64) {
		if on {
			flags |= bit
		}
	}
	set(h.HasSeq, recHasSeq)
	set(h.HasTime, recHasTime)
	set(h.Duplicate, recDuplicate)
	set(h.Follows, recFollows)
	set(h.InWindow, recInWindow)
	set(h.Keyed, recKeyed)
	set(plain, recPlain)
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
	set(rare != 0, recRare)

	c := &w.cols
	c[colFlags] = append(c[colFlags], byte(h.Kind), byte(flags))
	c[colSource] = zigzag(c[colSource], uint64(h.Source), uint64(p.Source))
	c[colEpoch] = zigzag(c[colEpoch], h.Epoch, p.Epoch)
	c[colSeq] = zigzag(c[colSeq], h.Seq, p.Seq)
	c[colTime] = zigzag(c[colTime], uint64(h.Time), uint64(p.Time))
	c[colReceived] = zigzag(c[colReceived], uint64(h.Received), uint64(p.Received))
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

// cursor reads varints of a column; bad is set where there is none.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) delta(prev uint64) uint64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return prev + uint64(v)
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// decodeTable appends the entries of a table of count records, whose payloads together are payloadLen bytes long.
func decodeTable(dst []entry, table []byte, count, payloadLen int) ([]entry, error) {
	head := cursor{b: table}
	var lens [columns]uint64
	for i := range lens {
		lens[i] = head.uvarint()
	}
	var cols [columns]cursor
	rest := head.b
	for i := range cols {
		if head.bad || lens[i] > uint64(len(rest)) {
			return dst, errTable
		}
		cols[i].b, rest = rest[:lens[i]], rest[lens[i]:]
	}
	if len(rest) != 0 || len(cols[colFlags].b) != 2*count {
		return dst, errTable
	}
	var p Header
	at := 0
	for range count {
		e := entry{}
		e.Kind = Kind(cols[colFlags].byte())
		flags := cols[colFlags].byte()
		e.HasSeq = flags&recHasSeq != 0
		e.HasTime = flags&recHasTime != 0
		e.Duplicate = flags&recDuplicate != 0
		e.Follows = flags&recFollows != 0
		e.InWindow = flags&recInWindow != 0
		e.Keyed = flags&recKeyed != 0
		e.plain = flags&recPlain != 0
		e.Source = uint32(cols[colSource].delta(uint64(p.Source)))
		e.Epoch = cols[colEpoch].delta(p.Epoch)
		e.Seq = cols[colSeq].delta(p.Seq)
		e.Time = int64(cols[colTime].delta(uint64(p.Time)))
		e.Received = int64(cols[colReceived].delta(uint64(p.Received)))
		e.Events = uint32(cols[colEvents].uvarint())
		length := cols[colLength].uvarint()
		if length > uint64(payloadLen-at) {
			return dst, errTable
		}
		e.start, e.length = at, int(length)
		at += e.length
		if flags&recRare != 0 && !decodeRare(&cols[colRare], &e) {
			return dst, errTable
		}
		dst = append(dst, e)
		p = e.Header
	}
	for i := range cols {
		if cols[i].bad || len(cols[i].b) != 0 {
			return dst, errTable
		}
	}
	if at != payloadLen {
		return dst, errTable
	}
	return dst, nil
}

func decodeRare(c *cursor, e *entry) bool {
	rare := c.byte()
	if rare&rareDamage != 0 {
		e.Damage = event.Cause(c.byte())
	}
	if rare&rareMark != 0 {
		e.Mark, e.MarkCause = continuity.MarkPlace(c.byte()), continuity.Cause(c.byte())
	}
	if rare&rareGap != 0 {
		g := &e.Gap
		g.Cause, g.Lost = continuity.Cause(c.byte()), continuity.Lost(c.byte())
		for _, v := range []*uint64{&g.Epoch, &g.First, &g.Last, &g.Min, &g.Max} {
			*v = c.uvarint()
		}
	}
	if rare&rareFrames != 0 {
		n := c.uvarint()
		if n > uint64(len(c.b)) {
			return false
		}
		total := 0
		e.frames = make([]int, 0, n)
		for range n {
			l := c.uvarint()
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
	return !c.bad
}
