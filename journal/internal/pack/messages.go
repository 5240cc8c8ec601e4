package pack

import (
	"math"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Messages are those of a packed block, to be read one by one in any order: the columns, unpacked, and marks in them. It never changes,
// and any number of goroutines may read it at once.
type Messages struct {
	cols   [columns][]byte
	hex    []byte
	shapes []shape
	tails  [][]byte
	marks  []mark
	count  int
	size   int
}

// mark is how far the columns are read before a message.
type mark struct {
	message  uint32
	cols     [columns]uint32
	hex      uint32
	time, id uint64
}

// markEvery is how many messages and events together lie between two marks: they are read over to come to a message, in 10 to 20 ns each.
const markEvery = 32

// Open unpacks the columns of a packed block, of messages of size bytes together; what it keeps is copied. It reads over all messages once.
func Open(packed []byte, size int, z *zstd.Decoder) (*Messages, error) {
	small, hex, err := split(packed, size, z, true)
	if err != nil {
		return nil, err
	}
	d := decoder{hex: varint.Cursor{B: hex}}
	if uint64(len(small)+len(hex)) > math.MaxUint32 || !d.columns(small) {
		return nil, ErrPacked
	}
	m := &Messages{hex: hex, shapes: d.shapes, tails: d.tails, size: len(small) + len(hex)}
	for i := range d.cols {
		m.cols[i] = d.cols[i].B
	}
	for since := markEvery; len(d.cols[colForm].B) > 0; m.count++ {
		if since >= markEvery {
			m.marks = append(m.marks, m.markAt(&d))
			since = 0
		}
		events := len(d.cols[colShape].B)
		if !d.skip() {
			return nil, ErrPacked
		}
		since += 1 + events - len(d.cols[colShape].B)
	}
	if !d.used() {
		return nil, ErrPacked
	}
	m.size += cap(m.marks)*int(unsafe.Sizeof(mark{})) + len(m.shapes)*int(unsafe.Sizeof(shape{})) + int(unsafe.Sizeof(Messages{}))
	return m, nil
}

// Size is about how many bytes of memory it takes.
func (m *Messages) Size() int { return m.size }

func (m *Messages) markAt(d *decoder) mark {
	k := mark{message: uint32(m.count), hex: uint32(len(m.hex) - len(d.hex.B)), time: d.time, id: d.id}
	for i := range m.cols {
		k.cols[i] = uint32(len(m.cols[i]) - len(d.cols[i].B))
	}
	return k
}

// Append appends message number i, 0 the first, to dst; it must have length bytes. scratch is memory that the caller keeps for the next call.
func (m *Messages) Append(dst []byte, i, length int, scratch *[]byte) ([]byte, error) {
	if i >= m.count {
		return dst, ErrPacked
	}
	n, found := slices.BinarySearchFunc(m.marks, uint32(i), func(k mark, i uint32) int { return int(k.message) - int(i) })
	if !found {
		n-- // the first stands at message 0
	}
	k := &m.marks[n]
	d := decoder{shapes: m.shapes, tails: m.tails, time: k.time, id: k.id, hex: varint.Cursor{B: m.hex[k.hex:]}}
	for c := range m.cols {
		d.cols[c].B = m.cols[c][k.cols[c]:]
	}
	d.key = *scratch
	for range i - int(k.message) {
		if !d.skip() {
			return dst, ErrPacked
		}
	}
	d.limit = len(dst) + length
	dst, ok := d.message(slices.Grow(dst, length))
	*scratch = d.key
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
