package pack

import (
	"bytes"
	"encoding/binary"
	"slices"

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
	holeStart  hole = 6 // group_id: a prefix and the first bytes of the key, how many is the shape's
)

// shape is an event without its variable values: literals[0] holes[0] literals[1] … literals[len(holes)].
type shape struct {
	literals [][]byte
	holes    []hole
	prefix   []byte // of holeSuffix and holeStart
	start    int    // of holeStart: how many bytes of the key
}

// values are the variable values of one event.
type values struct {
	id, stamp uint64
	key, text []byte
}

const (
	// maxPrefix bounds the prefix of a group_id that a shape remembers.
	maxPrefix = 64
	// minStart and maxStart bound how many bytes a group_id has of the start of its key.
	minStart = 16
	maxStart = 1024
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
		case holeSuffix, holeStart:
			group, p = readString(b, p)
		case holeText:
			v.text, p = readString(b, p)
		}
		if p == 0 {
			return 0
		}
	}
	if group != nil && !s.isGroup(group, v.key) {
		return 0
	}
	return p
}

// isGroup reports whether a group_id is what the shape makes of the key.
func (s *shape) isGroup(group, key []byte) bool {
	if s.start > 0 {
		if len(key) < s.start {
			return false
		}
		key = key[:s.start]
	}
	n := len(s.prefix)
	return len(group) == n+len(key) && bytes.Equal(group[n:], key) && bytes.Equal(group[:n], s.prefix)
}

// groupOf says how a group_id comes from the key: a prefix of so many bytes, and the key, or its first start bytes. The hole is holeText where
// it does not.
func groupOf(group, key []byte) (h hole, prefix, start int) {
	if n := len(group) - len(key); n >= 0 && n <= maxPrefix && bytes.Equal(group[n:], key) {
		return holeSuffix, n, 0
	}
	if len(key) < minStart {
		return holeText, 0, 0
	}
	n := bytes.Index(group, key[:minStart])
	if start = len(group) - n; n < 0 || n > maxPrefix || start > min(len(key), maxStart) || !bytes.Equal(group[n:], key[:start]) {
		return holeText, 0, 0
	}
	return holeStart, n, start
}

// loose reports whether the event that was matched has a shape that says more of it.
func (s *shape) loose(v *values) bool {
	for _, h := range s.holes {
		if h == holeText && v.key != nil {
			better, _, _ := groupOf(v.text, v.key)
			return better != holeText
		}
	}
	return false
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
	for _, f := range fields {
		if f.hole == holeText && key != nil {
			n := 0
			f.hole, n, s.start = groupOf(group, key)
			s.prefix = bytes.Clone(group[:n])
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
// byte; then the prefix with its length, and, where there is a holeStart, how many bytes of the key follow it.
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
	dst = append(dst, s.prefix...)
	if s.start > 0 {
		dst = binary.AppendUvarint(dst, uint64(s.start))
	}
	return dst
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
	if slices.Contains(s.holes, holeStart) {
		start := c.Uvarint()
		c.Bad = c.Bad || start == 0 || start > maxStart
		s.start = int(start)
	}
	return s
}

// write appends the event of this shape with these values; the key has s.start bytes at least.
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
		case holeStart:
			dst = appendStringHead(dst, len(s.prefix)+s.start)
			dst = append(append(dst, s.prefix...), v.key[:s.start]...)
		case holeText:
			dst = append(appendStringHead(dst, len(v.text)), v.text...)
		}
	}
	return dst
}
