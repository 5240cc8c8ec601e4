package varint

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestCursor(t *testing.T) {
	numbers := []uint64{0, 1, 127, 128, 300, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
	var b []byte
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
		b = binary.AppendVarint(b, int64(n))
		b = AppendDelta(b, n, 12345)
		b = append(b, byte(n), 'x', 'y')
	}
	c := Cursor{B: b}
	for _, n := range numbers {
		if v := c.Uvarint(); v != n {
			t.Errorf("uvarint %d came back as %d", n, v)
		}
		if v := c.Varint(); v != int64(n) {
			t.Errorf("varint %d came back as %d", int64(n), v)
		}
		if v := c.Delta(12345); v != n {
			t.Errorf("delta %d came back as %d", n, v)
		}
		if v := c.Byte(); v != byte(n) {
			t.Errorf("byte %d came back as %d", byte(n), v)
		}
		if v := c.Bytes(2); string(v) != "xy" {
			t.Errorf("bytes came back as %q", v)
		}
	}
	if !c.Done() {
		t.Errorf("%d bytes are left, bad: %v", len(c.B), c.Bad)
	}
}

// TestCut reads from every cut of a row: it must be seen, and stay so.
func TestCut(t *testing.T) {
	row := append(binary.AppendUvarint(nil, 1<<40), 7, 'a', 'b')
	for n := range row {
		c := Cursor{B: row[:n]}
		c.Uvarint()
		c.Byte()
		c.Bytes(2)
		if !c.Bad || c.Done() {
			t.Errorf("cut at %d was not seen", n)
		}
	}
	for _, b := range [][]byte{{0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		c := Cursor{B: b}
		if c.Uvarint(); !c.Bad {
			t.Errorf("% x was read as a number", b)
		}
	}
}
