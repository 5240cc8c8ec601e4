// Package varint reads the numbers of kvjournal's own rows and blocks, which are Go's varints (encoding/binary): a Cursor is
// read field by field and asked once at the end whether all was there, so that a decoder stays as short as its format.
package varint

import "encoding/binary"

// Cursor reads from B. Bad is set by a read that finds less than it needs, and stays set; what such a read returns
// means nothing.
type Cursor struct {
	B   []byte
	Bad bool
}

// Byte reads one byte.
func (c *Cursor) Byte() byte {
	if len(c.B) == 0 {
		c.Bad = true
		return 0
	}
	v := c.B[0]
	c.B = c.B[1:]
	return v
}

// Uvarint reads an unsigned varint.
func (c *Cursor) Uvarint() uint64 {
	if len(c.B) > 0 && c.B[0] < 0x80 { // most are one byte
		v := c.B[0]
		c.B = c.B[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.B)
	if n <= 0 {
		c.Bad = true
		return 0
	}
	c.B = c.B[n:]
	return v
}

// Varint reads a signed (zigzag) varint.
func (c *Cursor) Varint() int64 {
	u := c.Uvarint()
	return int64(u>>1 ^ -(u & 1))
}

// Delta reads a number that AppendDelta wrote against the same base.
func (c *Cursor) Delta(base uint64) uint64 { return base + uint64(c.Varint()) }

// Bytes reads n bytes; they alias B.
func (c *Cursor) Bytes(n uint64) []byte {
	if n > uint64(len(c.B)) {
		c.Bad = true
		return nil
	}
	v := c.B[:n:n]
	c.B = c.B[n:]
	return v
}

// Done reports whether everything was read, and nothing is left.
func (c *Cursor) Done() bool { return !c.Bad && len(c.B) == 0 }

// AppendDelta appends v as its difference to base, which may be above it.
func AppendDelta(dst []byte, v, base uint64) []byte { return binary.AppendVarint(dst, int64(v-base)) }
