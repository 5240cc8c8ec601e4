package pack

import (
	"errors"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// ErrPacked is returned for bytes that are no packed block.
var ErrPacked = errors.New("packed block does not decode")

// maxSmall bounds what a block may claim for its small columns beyond the bytes it unpacks to.
const maxSmall = 1 << 20

// Unpack appends the messages of a packed block, one behind the other, to dst. They must be exactly size bytes. It allocates no more than
// the block's own bytes and size call for.
func Unpack(dst, packed []byte, size int, z *zstd.Decoder) ([]byte, error) {
	small, hex, err := split(packed, size, z, false)
	if err != nil {
		return dst, err
	}
	d := decoder{hex: varint.Cursor{B: hex}, limit: len(dst) + size}
	if !d.columns(small) {
		return dst, ErrPacked
	}
	dst, ok := d.messages(dst)
	if !ok || len(dst) != d.limit || !d.used() {
		return dst, ErrPacked
	}
	return dst, nil
}

// split takes a packed block, of messages of size bytes together, apart, and unpacks small. They are copies where own says so; else they may be parts
// of packed.
func split(packed []byte, size int, z *zstd.Decoder, own bool) (small, hex []byte, err error) {
	head := varint.Cursor{B: packed}
	rawLen, storedLen := head.Uvarint(), head.Uvarint()
	stored := head.Bytes(storedLen)
	hex = head.B
	// A raw message stands in small as it is; definitions and numbers come on top, a few bytes per byte of message at most.
	if head.Bad || rawLen > 4*uint64(size)+maxSmall {
		return nil, nil, ErrPacked
	}
	room := rawLen
	if own {
		room += uint64(len(hex)) // one piece of memory holds both
	}
	switch {
	case storedLen != rawLen:
		if small, err = z.DecodeAll(stored, make([]byte, 0, room)); err != nil || uint64(len(small)) != rawLen {
			return nil, nil, ErrPacked
		}
	case own:
		small = append(make([]byte, 0, room), stored...)
	default:
		small = stored
	}
	if own {
		both := append(small, hex...)
		small, hex = both[:rawLen:rawLen], both[rawLen:]
	}
	return small, hex, nil
}

type decoder struct {
	cols     [columns]varint.Cursor
	hex      varint.Cursor
	shapes   []shape
	tails    [][]byte
	time, id uint64
	limit    int
	key      []byte
}

// columns splits small, and reads the definitions.
func (d *decoder) columns(small []byte) bool {
	head := varint.Cursor{B: small}
	var lens [columns]uint64
	for i := range lens {
		lens[i] = head.Uvarint()
	}
	for i := range d.cols {
		d.cols[i].B = head.Bytes(lens[i])
	}
	if head.Bad || len(head.B) != 0 {
		return false
	}
	c := &d.cols[colShapes]
	for len(c.B) > 0 && !c.Bad && len(d.shapes) < maxShapes {
		d.shapes = append(d.shapes, readShape(c))
	}
	t := &d.cols[colTails]
	for len(t.B) > 0 && !t.Bad && len(d.tails) < maxTails {
		tail := t.Bytes(t.Uvarint())
		if len(tail) == 0 {
			return false
		}
		d.tails = append(d.tails, tail)
	}
	return !c.Bad && !t.Bad
}

// used reports whether every column was read to its end.
func (d *decoder) used() bool {
	for i := range d.cols {
		if d.cols[i].Bad || len(d.cols[i].B) != 0 {
			return false
		}
	}
	return !d.hex.Bad && len(d.hex.B) == 0
}

func (d *decoder) messages(dst []byte) ([]byte, bool) {
	for len(d.cols[colForm].B) > 0 {
		var ok bool
		if dst, ok = d.message(dst); !ok {
			return dst, false
		}
	}
	return dst, true
}

// message appends the next message.
func (d *decoder) message(dst []byte) ([]byte, bool) {
	form := d.cols[colForm].Byte()
	if form == 0 {
		dst = append(dst, d.cols[colRaw].Bytes(d.cols[colRawLen].Uvarint())...)
		return dst, !d.cols[colRaw].Bad && !d.cols[colRawLen].Bad && len(dst) <= d.limit
	}
	tail, n, ok := d.begin(form)
	if !ok {
		return dst, false
	}
	dst = appendUint(append(dst, tail[0]), d.time)
	dst = appendArrayHead(dst, n)
	for range n {
		if dst, ok = d.event(dst); !ok {
			return dst, false
		}
	}
	dst = append(dst, tail[1:]...)
	return dst, len(dst) <= d.limit
}

// begin reads what stands before a message's events: its tail, its time, and how many they are.
func (d *decoder) begin(form byte) (tail []byte, events int, ok bool) {
	if int(form) > len(d.tails) {
		return nil, 0, false
	}
	d.time = d.cols[colTime].Delta(d.time)
	n := d.cols[colCount].Uvarint()
	return d.tails[form-1], int(n), n <= 0xffff
}

// event appends the next event.
func (d *decoder) event(dst []byte) ([]byte, bool) {
	c := &d.cols
	number := int(c[colShape].Byte())
	if number >= len(d.shapes) {
		return dst, false
	}
	s := &d.shapes[number]
	var v values
	for _, h := range s.holes {
		switch h {
		case holeID:
			v.id = c[colID].Delta(d.id + 1)
			d.id = v.id
		case holeStamp:
			v.stamp = c[colStamp].Delta(d.time)
		case holeKey:
			d.key = readKey(d.key[:0], &c[colText], &d.hex)
			v.key = d.key
		case holeText:
			v.text = c[colText].Bytes(c[colText].Uvarint())
		case holeSuffix, holeStart:
		default:
			return dst, false
		}
	}
	if c[colShape].Bad || c[colID].Bad || c[colStamp].Bad || c[colText].Bad || d.hex.Bad || s.start > len(v.key) {
		return dst, false
	}
	dst = s.write(dst, &v)
	return dst, len(dst) <= d.limit
}
