package pack

import "encoding/binary"

// The columns, in their order in a packed block. Part of the format.
const (
	colShapes = iota // definitions: see shape.append
	colTails         // definitions: length uvarint, bytes: the array's head byte, then all behind the events
	colForm          // a byte a message: 0 raw, else 1 + its tail's number
	colTime          // a message's time, varint, above that of the message before
	colCount         // a message's number of events, uvarint
	colShape         // a byte an event: its shape's number
	colID            // varint
	colStamp         // varint
	colText          // keys and texts: see appendKey, appendText
	colRawLen        // the length of a raw message, uvarint
	colRaw           // raw messages
	columns
)

const (
	// maxShapes and maxTails bound what a block defines; a message that needs more is kept raw.
	maxShapes = 128
	maxTails  = 64
	// minHex is the shortest run of hex digits that is kept apart.
	minHex = 16
)

func zigzag(dst []byte, v, base uint64) []byte { return binary.AppendVarint(dst, int64(v-base)) }

// cursor reads a column; bad is set where it ends too early.
type cursor struct {
	b   []byte
	bad bool
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

func (c *cursor) uvarint() uint64 {
	// One byte, mostly.
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) delta(base uint64) uint64 {
	u := c.uvarint()
	return base + (u>>1 ^ -(u & 1))
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}
