package event

import (
	"encoding/binary"
	"math"
)

// MaxDepth is the deepest nesting that is read; anything deeper is damage (R6). The payload array is at depth 0, an
// event map at 2, the fields of an event at 3.
const MaxDepth = 64

// Kind is the kind of a MessagePack value.
type Kind uint8

// The kinds of values. str and bin are told apart here, but wherever the stream has text or bytes both are read alike.
const (
	KindAbsent Kind = iota // no value at all
	KindNil
	KindBool
	KindUint // positive fixint and the four unsigned encodings
	KindInt  // negative fixint and the four signed encodings, which can also hold what is not negative
	KindFloat
	KindString
	KindBinary
	KindArray
	KindMap
	KindExtension
)

// format is what the first byte of a value says about it.
type format struct {
	kind       Kind  // KindAbsent for the byte 0xc1, which MessagePack never uses
	sizeLength uint8 // bytes of a size that follows, or 0
	size       uint8 // what is added to that size; see header.size
}

var formats = func() (table [256]format) {
	for first := range table {
		c := uint8(first)
		switch {
		case c <= 0x7f:
			table[c] = format{kind: KindUint}
		case c <= 0x8f:
			table[c] = format{kind: KindMap, size: c & 0x0f}
		case c <= 0x9f:
			table[c] = format{kind: KindArray, size: c & 0x0f}
		case c <= 0xbf:
			table[c] = format{kind: KindString, size: c & 0x1f}
		case c >= 0xe0:
			table[c] = format{kind: KindInt}
		}
	}
	table[0xc0] = format{kind: KindNil}
	table[0xc2] = format{kind: KindBool}
	table[0xc3] = format{kind: KindBool}
	table[0xca] = format{kind: KindFloat, size: 4}
	table[0xcb] = format{kind: KindFloat, size: 8}
	for i := range uint8(4) { // 8, 16, 32, 64 bits
		table[0xcc+i] = format{kind: KindUint, size: 1 << i}
		table[0xd0+i] = format{kind: KindInt, size: 1 << i}
	}
	for i := range uint8(3) { // sizes of 8, 16, 32 bits; the type of an extension is the first byte of its content
		table[0xc4+i] = format{kind: KindBinary, sizeLength: 1 << i}
		table[0xc7+i] = format{kind: KindExtension, sizeLength: 1 << i, size: 1}
		table[0xd9+i] = format{kind: KindString, sizeLength: 1 << i}
	}
	for i := range uint8(5) { // 1, 2, 4, 8, 16 bytes
		table[0xd4+i] = format{kind: KindExtension, size: 1 + 1<<i}
	}
	table[0xdc] = format{kind: KindArray, sizeLength: 2}
	table[0xdd] = format{kind: KindArray, sizeLength: 4}
	table[0xde] = format{kind: KindMap, sizeLength: 2}
	table[0xdf] = format{kind: KindMap, sizeLength: 4}
	return table
}()

// header is the beginning of a value. The bytes that it promises exist: those of a number, a text or an extension, at
// least one for each element of an array, at least two for each pair of a map. So size is never larger than the payload.
type header struct {
	kind Kind
	size int // content in bytes; in elements for arrays; in pairs for maps
	body int // index of the content
}

// readHeader reads the beginning of the value at p[i]. The cause is None, Cut, or Malformed for 0xc1.
func readHeader(p []byte, i int) (header, Cause) {
	if i >= len(p) {
		return header{}, Cut
	}
	f := formats[p[i]]
	h := header{kind: f.kind, size: int(f.size), body: i + 1}
	if f.sizeLength > 0 {
		size, rest := uint32(0), p[h.body:]
		if len(rest) < int(f.sizeLength) {
			return header{}, Cut
		}
		switch f.sizeLength {
		case 1:
			size = uint32(rest[0])
		case 2:
			size = uint32(binary.BigEndian.Uint16(rest))
		case 4:
			size = binary.BigEndian.Uint32(rest)
		}
		if uint64(size) > uint64(len(rest)) {
			return header{}, Cut
		}
		h.size += int(size)
		h.body += int(f.sizeLength)
	}
	room := len(p) - h.body
	if h.size > room || h.kind == KindMap && h.size > room/2 {
		return header{}, Cut
	}
	if h.kind == KindAbsent {
		return header{}, Malformed
	}
	return h, None
}

// isText says whether a value of the kind can be a name, a key, or any other text of the stream.
func (k Kind) isText() bool { return k == KindString || k == KindBinary }

// readUint returns the integer whose header is h and whose first byte is p[i]. It is false if the value is no integer
// or negative.
func readUint(p []byte, i int, h header) (uint64, bool) {
	switch h.kind {
	case KindUint:
		return readBits(p, i, h), true
	case KindInt:
		n := readInt(p, i, h)
		return uint64(n), n >= 0
	}
	return 0, false
}

// readBits returns the content of a KindUint value.
func readBits(p []byte, i int, h header) uint64 {
	switch h.size {
	case 0:
		return uint64(p[i])
	case 1:
		return uint64(p[h.body])
	case 2:
		return uint64(binary.BigEndian.Uint16(p[h.body:]))
	case 4:
		return uint64(binary.BigEndian.Uint32(p[h.body:]))
	}
	return binary.BigEndian.Uint64(p[h.body:])
}

// readInt returns the content of a KindInt value.
func readInt(p []byte, i int, h header) int64 {
	switch h.size {
	case 0:
		return int64(int8(p[i]))
	case 1:
		return int64(int8(p[h.body]))
	case 2:
		return int64(int16(binary.BigEndian.Uint16(p[h.body:])))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(p[h.body:])))
	}
	return int64(binary.BigEndian.Uint64(p[h.body:]))
}

// readFloat returns the content of a KindFloat value.
func readFloat(p []byte, h header) float64 {
	if h.size == 4 {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(p[h.body:])))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(p[h.body:]))
}

// scanner walks over a payload. It keeps the first damage that it meets; after that its results mean nothing.
type scanner struct {
	payload []byte
	damage  Cause
	at      int // of the damage, bytes into the payload
}

// fail notes damage and returns -1, which stands for "no next value".
func (s *scanner) fail(cause Cause, at int) int {
	s.damage, s.at = cause, at
	return -1
}

// skip returns the index behind the value at index i, or -1 on damage anywhere in it.
func (s *scanner) skip(i, depth int) int {
	if depth > MaxDepth {
		return s.fail(Depth, i)
	}
	h, cause := readHeader(s.payload, i)
	if cause != None {
		return s.fail(cause, i)
	}
	return s.skipContent(h, depth)
}

// skipContent is skip for a value whose header has been read.
func (s *scanner) skipContent(h header, depth int) int {
	i := h.body
	switch h.kind {
	case KindArray:
		for range h.size {
			if i = s.skip(i, depth+1); i < 0 {
				return -1
			}
		}
		return i
	case KindMap:
		for range h.size {
			if _, i = s.mapKey(i, depth+1); i < 0 {
				return -1
			}
			if i = s.skip(i, depth+1); i < 0 {
				return -1
			}
		}
		return i
	}
	return i + h.size
}

// mapKey returns the key of a map at index i and the index behind it, or -1.
func (s *scanner) mapKey(i, depth int) ([]byte, int) {
	if depth > MaxDepth {
		return nil, s.fail(Depth, i)
	}
	h, cause := readHeader(s.payload, i)
	if cause != None {
		return nil, s.fail(cause, i)
	}
	if !h.kind.isText() {
		return nil, s.fail(MapKey, i)
	}
	end := h.body + h.size
	return s.payload[h.body:end:end], end
}

// shortKey is mapKey for a key of less than 32 bytes, which is how every publisher writes the names of fields. It notes
// no damage: -1 means that mapKey must look at it.
func (s *scanner) shortKey(i int) ([]byte, int) {
	if i >= len(s.payload) || s.payload[i]&0xe0 != 0xa0 {
		return nil, -1
	}
	end := i + 1 + int(s.payload[i]&0x1f)
	if end > len(s.payload) {
		return nil, -1
	}
	return s.payload[i+1 : end], end
}
