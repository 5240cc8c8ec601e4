package pack

import "encoding/binary"

// What of MessagePack is needed to find the values of an event, and to write them again. "Shortest" means the form that takes
// fewest bytes, which is the one that every encoder in the field writes.

// readUint reads an unsigned integer in its shortest form; next is 0 where there is none at p.
func readUint(b []byte, p int) (v uint64, next int) {
	if p >= len(b) {
		return 0, 0
	}
	rest := b[p+1:]
	switch c := b[p]; {
	case c <= 0x7f:
		return uint64(c), p + 1
	case c == 0xcc && len(rest) >= 1 && rest[0] > 0x7f:
		return uint64(rest[0]), p + 2
	case c == 0xcd && len(rest) >= 2:
		if v := binary.BigEndian.Uint16(rest); v > 0xff {
			return uint64(v), p + 3
		}
	case c == 0xce && len(rest) >= 4:
		if v := binary.BigEndian.Uint32(rest); v > 0xffff {
			return uint64(v), p + 5
		}
	case c == 0xcf && len(rest) >= 8:
		if v := binary.BigEndian.Uint64(rest); v > 0xffffffff {
			return v, p + 9
		}
	}
	return 0, 0
}

func appendUint(dst []byte, v uint64) []byte {
	switch {
	case v <= 0x7f:
		return append(dst, byte(v))
	case v <= 0xff:
		return append(dst, 0xcc, byte(v))
	case v <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(v))
	case v <= 0xffffffff:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), v)
}

// readString reads a str in its shortest form; next is 0 where there is none at p.
func readString(b []byte, p int) (s []byte, next int) {
	if p >= len(b) {
		return nil, 0
	}
	n, at := -1, 0
	rest := b[p+1:]
	switch c := b[p]; {
	case c >= 0xa0 && c <= 0xbf:
		n, at = int(c&31), p+1
	case c == 0xd9 && len(rest) >= 1 && rest[0] > 31:
		n, at = int(rest[0]), p+2
	case c == 0xda && len(rest) >= 2:
		if v := int(binary.BigEndian.Uint16(rest)); v > 0xff {
			n, at = v, p+3
		}
	case c == 0xdb && len(rest) >= 4:
		if v := binary.BigEndian.Uint32(rest); v > 0xffff {
			n, at = int(v), p+5
		}
	}
	if n < 0 || n > len(b)-at {
		return nil, 0
	}
	return b[at : at+n], at + n
}

func appendStringHead(dst []byte, n int) []byte {
	switch {
	case n <= 31:
		return append(dst, 0xa0|byte(n))
	case n <= 0xff:
		return append(dst, 0xd9, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
}

// readArray reads the head of an array in its shortest form; next is 0 where there is none at p.
func readArray(b []byte, p int) (n int, next int) {
	if p >= len(b) {
		return 0, 0
	}
	rest := b[p+1:]
	switch c := b[p]; {
	case c >= 0x90 && c <= 0x9f:
		return int(c & 15), p + 1
	case c == 0xdc && len(rest) >= 2:
		if v := int(binary.BigEndian.Uint16(rest)); v > 15 {
			return v, p + 3
		}
	}
	return 0, 0 // more than 65,535 events are kept raw
}

func appendArrayHead(dst []byte, n int) []byte {
	if n <= 15 {
		return append(dst, 0x90|byte(n))
	}
	return binary.BigEndian.AppendUint16(append(dst, 0xdc), uint16(n))
}

// readMap reads the head of a map in any form.
func readMap(b []byte, p int) (pairs int, next int) {
	if p >= len(b) {
		return 0, 0
	}
	rest := b[p+1:]
	switch c := b[p]; {
	case c >= 0x80 && c <= 0x8f:
		return int(c & 15), p + 1
	case c == 0xde && len(rest) >= 2:
		return int(binary.BigEndian.Uint16(rest)), p + 3
	}
	return 0, 0
}

// skip returns the index behind the value at p, 0 where there is no whole one.
func skip(b []byte, p, depth int) int {
	if p >= len(b) || depth > 64 {
		return 0
	}
	c, rest := b[p], b[p+1:]
	size := func(head, n int) int { // a value of n bytes behind head bytes
		if n < 0 || n > len(b)-p-head {
			return 0
		}
		return p + head + n
	}
	length := func(width int) int {
		if len(rest) < width {
			return -1
		}
		switch width {
		case 1:
			return int(rest[0])
		case 2:
			return int(binary.BigEndian.Uint16(rest))
		}
		return int(binary.BigEndian.Uint32(rest))
	}
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return p + 1
	case c <= 0x8f:
		return skipMany(b, p+1, 2*int(c&15), depth)
	case c <= 0x9f:
		return skipMany(b, p+1, int(c&15), depth)
	case c <= 0xbf:
		return size(1, int(c&31))
	case c == 0xc4, c == 0xd9:
		return size(2, length(1))
	case c == 0xc5, c == 0xda:
		return size(3, length(2))
	case c == 0xc6, c == 0xdb:
		return size(5, length(4))
	case c == 0xcc, c == 0xd0:
		return size(1, 1)
	case c == 0xcd, c == 0xd1:
		return size(1, 2)
	case c == 0xca, c == 0xce, c == 0xd2:
		return size(1, 4)
	case c == 0xcb, c == 0xcf, c == 0xd3:
		return size(1, 8)
	case c == 0xdc && length(2) >= 0:
		return skipMany(b, p+3, length(2), depth)
	case c == 0xde && length(2) >= 0:
		return skipMany(b, p+3, 2*length(2), depth)
	}
	return 0 // extensions and giant containers: kept raw
}

func skipMany(b []byte, p, n, depth int) int {
	for range n {
		if p = skip(b, p, depth+1); p == 0 {
			return 0
		}
	}
	return p
}
