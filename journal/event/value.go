package event

import (
	"math"
	"strconv"
)

// Value is one MessagePack value as it was received, still encoded. A nil Value is a value that was absent, which is
// not the same as one that was nil: see Kind. Values alias the message that they come from.
//
// The Values of a Message are complete and no deeper than MaxDepth. Of any other bytes the methods say false, or
// KindAbsent.
type Value []byte

// Field is one entry of a map.
type Field struct {
	Name  []byte // of any bytes
	Value Value
}

// Kind returns the kind of the value, KindAbsent if there is none.
func (v Value) Kind() Kind {
	h, cause := readHeader(v, 0)
	if cause != None {
		return KindAbsent
	}
	return h.kind
}

// Bytes returns the content of a str or bin, not nil even if it is empty.
func (v Value) Bytes() ([]byte, bool) {
	h, cause := readHeader(v, 0)
	if cause != None || !h.kind.isText() {
		return nil, false
	}
	end := h.body + h.size
	return v[h.body:end:end], true
}

// Bool returns a boolean.
func (v Value) Bool() (value, ok bool) {
	return v.Kind() == KindBool && v[0] == 0xc3, v.Kind() == KindBool
}

// Uint64 returns an integer, however it is encoded, that is not negative.
func (v Value) Uint64() (uint64, bool) {
	h, cause := readHeader(v, 0)
	if cause != None {
		return 0, false
	}
	n, ok := readUint(v, 0, h)
	if !ok {
		return 0, false
	}
	return n, true
}

// Int64 returns an integer, however it is encoded, that fits into an int64.
func (v Value) Int64() (int64, bool) {
	if n, ok := v.Uint64(); ok {
		if n > math.MaxInt64 {
			return 0, false
		}
		return int64(n), true
	}
	h, cause := readHeader(v, 0)
	if cause != None || h.kind != KindInt {
		return 0, false
	}
	return readInt(v, 0, h), true
}

// Float64 returns a floating-point number; integers are none.
func (v Value) Float64() (float64, bool) {
	h, cause := readHeader(v, 0)
	if cause != None || h.kind != KindFloat {
		return 0, false
	}
	return readFloat(v, h), true
}

// Array returns the elements of an array.
func (v Value) Array() ([]Value, bool) {
	h, cause := readHeader(v, 0)
	if cause != None || h.kind != KindArray {
		return nil, false
	}
	s := scanner{payload: v}
	elements := make([]Value, 0, h.size)
	i := h.body
	for range h.size {
		next := s.skip(i, 1)
		if next < 0 {
			return nil, false
		}
		elements = append(elements, v[i:next:next])
		i = next
	}
	return elements, true
}

// Map returns the entries of a map in their order, duplicates included.
func (v Value) Map() ([]Field, bool) {
	s := scanner{payload: v}
	h, cause := readHeader(v, 0)
	if cause != None || h.kind != KindMap {
		return nil, false
	}
	fields, end := s.fields(h, 0)
	return fields, end >= 0
}

// fields reads the entries of the map at the given depth, whose header is h, and returns the index behind it. On damage
// it returns -1 and the entries before it.
func (s *scanner) fields(h header, depth int) ([]Field, int) {
	fields := make([]Field, 0, h.size)
	i := h.body
	for range h.size {
		name, at := s.mapKey(i, depth+1)
		if at < 0 {
			return fields, -1
		}
		if i = s.skip(at, depth+1); i < 0 {
			return fields, -1
		}
		fields = append(fields, Field{Name: name, Value: s.payload[at:i:i]})
	}
	return fields, i
}

// String shows the value to people, in the manner of Go literals: text in quotes with other than printable characters
// escaped, bin with a leading b, extensions as ext(type, content). An absent value is "absent".
func (v Value) String() string {
	return string(v.appendTo(nil))
}

func (v Value) appendTo(dst []byte) []byte {
	h, cause := readHeader(v, 0)
	if cause != None {
		return append(dst, "absent"...)
	}
	switch h.kind {
	case KindNil:
		return append(dst, "nil"...)
	case KindBool:
		return strconv.AppendBool(dst, v[0] == 0xc3)
	case KindUint:
		return strconv.AppendUint(dst, readBits(v, 0, h), 10)
	case KindInt:
		return strconv.AppendInt(dst, readInt(v, 0, h), 10)
	case KindFloat:
		return strconv.AppendFloat(dst, readFloat(v, h), 'g', -1, 64)
	case KindString, KindBinary:
		if h.kind == KindBinary {
			dst = append(dst, 'b')
		}
		return strconv.AppendQuote(dst, string(v[h.body:h.body+h.size]))
	case KindExtension:
		dst = append(dst, "ext("...)
		dst = strconv.AppendInt(dst, int64(int8(v[h.body])), 10)
		dst = append(dst, ", "...)
		dst = strconv.AppendQuote(dst, string(v[h.body+1:h.body+h.size]))
		return append(dst, ')')
	case KindArray:
		elements, _ := v.Array()
		dst = append(dst, '[')
		for i, element := range elements {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = element.appendTo(dst)
		}
		return append(dst, ']')
	}
	fields, _ := v.Map()
	dst = append(dst, '{')
	for i, field := range fields {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = strconv.AppendQuote(dst, string(field.Name))
		dst = append(dst, ": "...)
		dst = field.Value.appendTo(dst)
	}
	return append(dst, '}')
}
