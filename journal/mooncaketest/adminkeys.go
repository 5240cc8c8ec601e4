package mooncaketest

import (
	"strings"
	"unicode/utf8"
)

// askedKeys reads the keys of a query string as masters do (spec/master-admin.md, "Odd keys"): the value of the first
// "keys" is decoded and then cut at every comma, so that no key with a comma can be asked for. false means that there is
// none, or an empty one.
func askedKeys(query string) ([]string, bool) {
	for field := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(field, "="); name == "keys" {
			return strings.Split(unescape(value), ","), value != ""
		}
	}
	return nil, false
}

// unescape decodes a value: + is a space, and at a malformed %x it ends with a ?.
func unescape(value string) string {
	if !strings.ContainsAny(value, "%+") {
		return value
	}
	b := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '+':
			b = append(b, ' ')
		case '%':
			if i+2 >= len(value) || hexDigit(value[i+1]) < 0 || hexDigit(value[i+2]) < 0 {
				return string(append(b, '?'))
			}
			b = append(b, byte(hexDigit(value[i+1])<<4|hexDigit(value[i+2])))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// hexDigit is the value of a hexadecimal digit, -1 of any other byte.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// appendString appends a JSON string with everything beyond ASCII as \uXXXX, by surrogates where two are needed. false
// means that s is no valid UTF-8.
func appendString(dst []byte, s string) ([]byte, bool) {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return dst, false
		}
		if i += n; r < 0x10000 {
			dst = appendUnit(dst, uint16(r))
		} else {
			dst = appendUnit(dst, uint16(0xd800+(r-0x10000)>>10))
			dst = appendUnit(dst, uint16(0xdc00+(r-0x10000)&0x3ff))
		}
	}
	return append(dst, '"'), true
}

func appendASCII(dst []byte, c byte) []byte {
	if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
		return append(dst, '\\', `"\bfnrt`[short])
	}
	if c < ' ' {
		return appendUnit(dst, uint16(c))
	}
	return append(dst, c)
}

// appendUnit appends a UTF-16 code unit as \uXXXX. The case of its digits: guess.
func appendUnit(dst []byte, u uint16) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}
