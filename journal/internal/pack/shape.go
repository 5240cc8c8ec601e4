package pack

import (
	"bytes"
	"encoding/binary"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// hole is what stands between two literals of a shape. Part of the format.
type hole byte

const (
	holeID     hole = 1 // event_id
	holeStamp  hole = 2 // timestamp
	holeKey    hole = 3 // object_key
	holeSuffix hole = 4 // group_id: a prefix, which is the shape's, and the key
	holeText   hole = 5 // group_id: any other
)

// shape is an event without its variable values: literals[0] holes[0] literals[1] … literals[len(holes)].
type shape struct {
	literals [][]byte
	holes    []hole
	prefix   []byte // of holeSuffix
}

// values are the variable values of one event.
type values struct {
	id, stamp uint64
	key, text []byte
}

const (
	// maxPrefix bounds the prefix of a group_id that a shape remembers.
	maxPrefix = 64
	// maxLiterals bounds a shape's literals together: real ones take about 300 bytes.
	maxLiterals = 4096
)

// match reads the event at p as one of this shape; next is 0 where it is none.
func (s *shape) match(b []byte, p int, v *values) (next int) {
	var group []byte
	for i, l := range s.literals {
		if len(b)-p < len(l) || !bytes.Equal(b[p:p+len(l)], l) {
			return 0
		}
		p += len(l)
		if i == len(s.holes) {
			break
		}
		switch s.holes[i] {
		case holeID:
			v.id, p = readUint(b, p)
		case holeStamp:
			v.stamp, p = readUint(b, p)
		case holeKey:
			v.key, p = readString(b, p)
		case holeSuffix:
			group, p = readString(b, p)
		case holeText:
			v.text, p = readString(b, p)
		}
		if p == 0 {
			return 0
		}
	}
	if group != nil && (len(group) != len(s.prefix)+len(v.key) || !bytes.HasPrefix(group, s.prefix) || !bytes.HasSuffix(group, v.key)) {
		return 0
	}
	return p
}

// field is a value of an event that may be a hole.
type field struct {
	hole     hole
	from, to int
}

// shapeOf finds the shape of the event at p. ok is false where the event is not a whole map, or has no key to speak of.
func shapeOf(b []byte, p int) (s shape, ok bool) {
	begin := p
	pairs, p := readMap(b, p)
	if p == 0 {
		return s, false
	}
	var fields []field
	var key, group []byte
	seen := map[hole]bool{}
	for range pairs {
		name, at := readString(b, p)
		if at == 0 {
			return s, false
		}
		end := skip(b, at, 3)
		if end == 0 {
			return s, false
		}
		h := hole(0)
		switch string(name) {
		case "event_id":
			h = holeID
		case "timestamp":
			h = holeStamp
		case "object_key":
			h = holeKey
		case "group_id":
			h = holeText
		}
		if h != 0 && !seen[h] && fits(b, at, end, h) {
			seen[h] = true
			fields = append(fields, field{h, at, end})
			switch h {
			case holeKey:
				key, _ = readString(b, at)
			case holeText:
				group, _ = readString(b, at)
			}
		}
		p = end
	}
	suffix := key != nil && group != nil && bytes.HasSuffix(group, key) && len(group)-len(key) <= maxPrefix
	for _, f := range fields {
		if f.hole == holeText && suffix {
			f.hole = holeSuffix
			s.prefix = bytes.Clone(group[:len(group)-len(key)])
		}
		s.literals = append(s.literals, bytes.Clone(b[begin:f.from]))
		s.holes = append(s.holes, f.hole)
		begin = f.to
	}
	s.literals = append(s.literals, bytes.Clone(b[begin:p]))
	total := 0
	for _, l := range s.literals {
		total += len(l)
	}
	return s, total <= maxLiterals
}

// fits reports whether the value at b[from:to] can be written again from what the hole keeps of it.
func fits(b []byte, from, to int, h hole) bool {
	if h == holeID || h == holeStamp {
		_, next := readUint(b, from)
		return next == to
	}
	_, next := readString(b, from)
	return next == to
}

// append writes the definition: number of holes, then each literal with its length, each followed by its hole's
// byte; then the prefix with its length.
func (s *shape) append(dst []byte) []byte {
	dst = append(dst, byte(len(s.holes)))
	for i, l := range s.literals {
		dst = binary.AppendUvarint(dst, uint64(len(l)))
		dst = append(dst, l...)
		if i < len(s.holes) {
			dst = append(dst, byte(s.holes[i]))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.prefix)))
	return append(dst, s.prefix...)
}

func readShape(c *varint.Cursor) shape {
	var s shape
	n := int(c.Byte())
	for i := range n + 1 {
		s.literals = append(s.literals, c.Bytes(c.Uvarint()))
		if i < n {
			s.holes = append(s.holes, hole(c.Byte()))
		}
	}
	s.prefix = c.Bytes(c.Uvarint())
	return s
}

// write appends the event of this shape with these values.
func (s *shape) write(dst []byte, v *values) []byte {
	for i, l := range s.literals {
		dst = append(dst, l...)
		if i == len(s.holes) {
			break
		}
		switch s.holes[i] {
		case holeID:
			dst = appendUint(dst, v.id)
		case holeStamp:
			dst = appendUint(dst, v.stamp)
		case holeKey:
			dst = append(appendStringHead(dst, len(v.key)), v.key...)
		case holeSuffix:
			dst = appendStringHead(dst, len(s.prefix)+len(v.key))
			dst = append(append(dst, s.prefix...), v.key...)
		case holeText:
			dst = append(appendStringHead(dst, len(v.text)), v.text...)
		}
	}
	return dst
}
