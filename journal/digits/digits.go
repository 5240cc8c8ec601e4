// Package digits packs the hex digits that keys of hashes are made of, two a byte, eight digits at a time: journal and index keep most of
// a key so, and do it once an event each. Digits are 0 to 9 and a to f; A to F are none, so that the text comes back as it was.
package digits

import "encoding/binary"

// none is what values has for a byte that is no digit.
const none = 0xff

// values maps a byte to its value as a digit.
var values = func() (t [256]byte) {
	for i := range t {
		t[i] = none
	}
	for i, c := range text {
		t[c] = byte(i)
	}
	return t
}()

const text = "0123456789abcdef"

// Value is the value of a digit, 0xff of any other byte.
func Value(c byte) byte { return values[c] }

// Is reports whether c is a digit.
func Is(c byte) bool { return values[c] != none }

// AppendPacked appends the digits that s begins with, two a byte, up to the first pair that is not of digits.
func AppendPacked(dst, s []byte) []byte {
	for len(s) >= 8 {
		four, ok := pack8(binary.LittleEndian.Uint64(s))
		if !ok {
			break
		}
		dst = binary.LittleEndian.AppendUint32(dst, four)
		s = s[8:]
	}
	for ; len(s) >= 2; s = s[2:] {
		high, low := values[s[0]], values[s[1]]
		if (high|low)&0xf0 != 0 {
			break
		}
		dst = append(dst, high<<4|low)
	}
	return dst
}

// AppendText appends the digits that were packed.
func AppendText(dst, packed []byte) []byte {
	for ; len(packed) >= 4; packed = packed[4:] {
		dst = binary.LittleEndian.AppendUint64(dst, unpack4(binary.LittleEndian.Uint32(packed)))
	}
	for _, c := range packed {
		dst = append(dst, text[c>>4], text[c&15])
	}
	return dst
}

// Of eight bytes at once: the same in each of them.
const (
	ones = 0x0101010101010101
	tops = 0x80 * ones
	lows = 0x0f * ones
)

// atLeast sets the top bit of each byte of x, all below 0x80, that is n or more.
func atLeast(x uint64, n uint64) uint64 { return x + (0x80-n)*ones }

// pack8 packs eight characters, the first in the lowest byte, into four bytes, the first in the lowest; ok: all are digits.
func pack8(x uint64) (four uint32, ok bool) {
	letters := atLeast(x, 'a') &^ atLeast(x, 'f'+1) & tops
	numbers := atLeast(x, '0') &^ atLeast(x, '9'+1) & tops
	v := x&lows + letters>>7*9 // each byte is the value of its digit
	v = (v<<4 | v>>8) & (0x00ff * (1<<48 | 1<<32 | 1<<16 | 1))
	v = (v | v>>8) & (0xffff * (1<<32 | 1))
	return uint32(v | v>>16), x&tops == 0 && letters|numbers == tops
}

// unpack4 is the way back.
func unpack4(four uint32) uint64 {
	v := uint64(four)
	v = (v | v<<16) & (0xffff * (1<<32 | 1))
	v = (v | v<<8) & (0x00ff * (1<<48 | 1<<32 | 1<<16 | 1))
	v = (v>>4 | v<<8) & lows
	letters := atLeast(v, 10) & tops >> 7
	return v + '0'*ones + letters*('a'-'0'-10)
}
