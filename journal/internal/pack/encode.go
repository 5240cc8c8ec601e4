package pack

import (
	"bytes"
	"encoding/binary"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Encoder packs the messages of one block. The zero value is ready; Reset begins the next block.
type Encoder struct {
	cols  [columns][]byte
	hex   []byte
	tails [][]byte
	time  uint64
	id    uint64
	small []byte
	zstd  []byte // small, compressed

	// known are the shapes seen so far, in any block: a publisher's next block has those of the last one.
	known   []knownShape
	recent  int    // the shape of the event before
	block   uint64 // never the same again: a shape's number must be this block's
	defined int    // in this block
	starts  bool   // one of them has a holeStart
}

// knownShape is a shape, and its number in the block that defines it.
type knownShape struct {
	shape
	definition []byte
	block      uint64
	number     byte
}

// Reset begins a block.
func (e *Encoder) Reset() {
	for i := range e.cols {
		e.cols[i] = e.cols[i][:0]
	}
	e.hex, e.tails = e.hex[:0], e.tails[:0]
	e.time, e.id, e.defined, e.starts = 0, 0, 0, false
	e.block++
	if len(e.known) == maxShapes {
		e.known = e.known[:0] // make room: whoever sends so many kinds goes on to send others
	}
}

// Add packs one message's payload; any bytes will do.
func (e *Encoder) Add(payload []byte) {
	if !e.message(payload) {
		e.AddRaw(payload)
	}
}

// AddRaw keeps bytes as they are.
func (e *Encoder) AddRaw(parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
		e.cols[colRaw] = append(e.cols[colRaw], p...)
	}
	e.cols[colForm] = append(e.cols[colForm], 0)
	e.cols[colRawLen] = binary.AppendUvarint(e.cols[colRawLen], uint64(n))
}

// message packs [time, [events…], …]. Where it cannot, it leaves no trace but definitions, and returns false.
func (e *Encoder) message(b []byte) bool {
	if len(b) == 0 || b[0] < 0x92 || b[0] > 0x9f {
		return false
	}
	time, p := readUint(b, 1)
	if p == 0 {
		return false
	}
	n, p := readArray(b, p)
	if p == 0 {
		return false
	}
	marks := e.mark()
	id := e.id
	for range n {
		var v values
		s, next := e.find(b, p, &v)
		if next == 0 || !e.define(s) {
			e.undo(marks)
			return false
		}
		p = next
		c := &e.cols
		c[colShape] = append(c[colShape], s.number)
		for _, h := range s.holes {
			switch h {
			case holeID:
				c[colID] = varint.AppendDelta(c[colID], v.id, id+1)
				id = v.id
			case holeStamp:
				c[colStamp] = varint.AppendDelta(c[colStamp], v.stamp, time)
			case holeKey:
				c[colText], e.hex = appendKey(c[colText], e.hex, v.key)
			case holeText:
				c[colText] = appendPart(c[colText], v.text)
			}
		}
	}
	tail := e.tail(b[0], b[p:])
	if tail < 0 {
		e.undo(marks)
		return false
	}
	c := &e.cols
	c[colForm] = append(c[colForm], byte(1+tail))
	c[colTime] = varint.AppendDelta(c[colTime], time, e.time)
	c[colCount] = binary.AppendUvarint(c[colCount], uint64(n))
	e.time, e.id = time, id
	return true
}

// find reads the event at p by a known shape, or makes one; next is 0 where neither can be. Where only a shape fits that says less than
// another would, the other is made while there is plenty of room.
func (e *Encoder) find(b []byte, p int, v *values) (s *knownShape, next int) {
	if e.recent < len(e.known) {
		s = &e.known[e.recent]
		if next = s.match(b, p, v); next != 0 && !s.loose(v) {
			return s, next
		}
	}
	loose := -1
	for i := range e.known {
		s = &e.known[i]
		if next = s.match(b, p, v); next == 0 {
			continue
		}
		if !s.loose(v) {
			e.recent = i
			return s, next
		}
		loose = i
	}
	room := maxShapes
	if loose >= 0 {
		room = maxShapes / 2
	}
	if len(e.known) < room {
		if s, next = e.learn(b, p, v); next != 0 {
			return s, next
		}
	}
	if loose < 0 {
		return nil, 0
	}
	e.recent = loose
	return &e.known[loose], e.known[loose].match(b, p, v)
}

// learn makes a shape of the event at p, and reads it by that; next is 0 where that cannot be.
func (e *Encoder) learn(b []byte, p int, v *values) (s *knownShape, next int) {
	fresh, ok := shapeOf(b, p)
	if !ok {
		return nil, 0
	}
	if next = fresh.match(b, p, v); next == 0 {
		return nil, 0
	}
	e.recent = len(e.known)
	e.known = append(e.known, knownShape{shape: fresh, definition: fresh.append(nil), block: e.block - 1})
	return &e.known[e.recent], next
}

// define gives a shape a number in this block, if it has none yet and there is room.
func (e *Encoder) define(s *knownShape) bool {
	if s.block == e.block {
		return true
	}
	if e.defined == maxShapes {
		return false
	}
	s.block, s.number = e.block, byte(e.defined)
	e.starts = e.starts || s.start > 0
	e.cols[colShapes] = append(e.cols[colShapes], s.definition...)
	e.defined++
	return true
}

// tail is the number of the message's tail, -1 where there is no room for another.
func (e *Encoder) tail(head byte, rest []byte) int {
	for i, t := range e.tails {
		if t[0] == head && bytes.Equal(t[1:], rest) {
			return i
		}
	}
	if len(e.tails) == maxTails || len(rest) > maxLiterals {
		return -1
	}
	t := append([]byte{head}, rest...)
	e.tails = append(e.tails, t)
	e.cols[colTails] = appendPart(e.cols[colTails], t)
	return len(e.tails) - 1
}

// marks remembers the lengths of the columns that a message's events write to.
type marks struct{ shape, id, stamp, text, hex int }

func (e *Encoder) mark() marks {
	c := &e.cols
	return marks{len(c[colShape]), len(c[colID]), len(c[colStamp]), len(c[colText]), len(e.hex)}
}

func (e *Encoder) undo(m marks) {
	c := &e.cols
	c[colShape], c[colID], c[colStamp], c[colText] = c[colShape][:m.shape], c[colID][:m.id], c[colStamp][:m.stamp], c[colText][:m.text]
	e.hex = e.hex[:m.hex]
}

// Starts reports whether the block has a shape whose group_id comes from the start of the key, which the first programs do not know.
func (e *Encoder) Starts() bool { return e.starts }

// minSmall is the size of the smallest columns that are compressed, in bytes: those of some 100 events. A block of fewer is soon merged with
// others, and unpacked twice until then, which costs more than the few hundred bytes.
const minSmall = 1 << 10

// AppendTo appends the packed block.
func (e *Encoder) AppendTo(dst []byte, z *zstd.Encoder) []byte {
	small := e.small[:0]
	for i := range e.cols {
		small = binary.AppendUvarint(small, uint64(len(e.cols[i])))
	}
	for i := range e.cols {
		small = append(small, e.cols[i]...)
	}
	e.small = small
	compressed := small
	if len(small) >= minSmall {
		if e.zstd = z.EncodeAll(small, e.zstd[:0]); len(e.zstd) < len(small) {
			compressed = e.zstd
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(small)))
	dst = binary.AppendUvarint(dst, uint64(len(compressed)))
	dst = append(dst, compressed...)
	return append(dst, e.hex...)
}
