package pack

import (
	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// UnpackOne appends message number i of a packed block, 0 the first, to dst; those before it are read over, and those behind it are not
// looked at. It must have length bytes; size is what all messages together have.
func UnpackOne(dst, packed []byte, size, i, length int, z *zstd.Decoder) ([]byte, error) {
	d, err := open(packed, size, z)
	if err != nil {
		return dst, err
	}
	for range i {
		if !d.skip() {
			return dst, ErrPacked
		}
	}
	d.limit = len(dst) + length
	if len(d.cols[colForm].B) == 0 {
		return dst, ErrPacked
	}
	dst, ok := d.message(dst)
	if !ok || len(dst) != d.limit {
		return dst, ErrPacked
	}
	return dst, nil
}

// skip reads over the next message.
func (d *decoder) skip() bool {
	c := &d.cols
	if len(c[colForm].B) == 0 {
		return false
	}
	form := c[colForm].Byte()
	if form == 0 {
		c[colRaw].Bytes(c[colRawLen].Uvarint())
		return !c[colRaw].Bad && !c[colRawLen].Bad
	}
	_, n, ok := d.begin(form)
	for ; ok && n > 0; n-- {
		ok = d.skipEvent()
	}
	return ok
}

func (d *decoder) skipEvent() bool {
	c := &d.cols
	number := int(c[colShape].Byte())
	if number >= len(d.shapes) {
		return false
	}
	for _, h := range d.shapes[number].holes {
		switch h {
		case holeID:
			d.id = c[colID].Delta(d.id + 1)
		case holeStamp:
			c[colStamp].Uvarint()
		case holeKey:
			skipKey(&c[colText], &d.hex)
		case holeText:
			c[colText].Bytes(c[colText].Uvarint())
		case holeSuffix, holeStart:
		default:
			return false
		}
	}
	return !c[colShape].Bad && !c[colID].Bad && !c[colStamp].Bad && !c[colText].Bad && !d.hex.Bad
}

// skipKey reads over the next key.
func skipKey(text, hex *varint.Cursor) {
	for {
		text.Bytes(text.Uvarint())
		n := text.Uvarint()
		if n == 0 || text.Bad {
			return
		}
		if hex.Bytes(n); hex.Bad {
			return
		}
	}
}
