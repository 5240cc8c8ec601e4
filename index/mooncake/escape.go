package mooncake

import (
	"bytes"
	"unicode/utf8"
)

// WhyUnaskable says why a key cannot be asked for by BatchQuery, and "" for one that can.
func WhyUnaskable(key []byte) string {
	switch {
	case len(key) == 0:
		return "the key is empty: keys= cannot name it without a stray comma"
	case bytes.IndexByte(key, ',') >= 0:
		return "the key contains a comma: the master would split it, escaped or not"
	case !utf8.Valid(key):
		return "the key is not valid UTF-8: the master would refuse the whole call"
	}
	return ""
}

// appendEscaped appends a key as the master's URL decoder gives it back. Everything but the unreserved characters of RFC 3986
// is escaped: a + would come out as a space, and what a decoder does with the rest need not be known.
func appendEscaped(dst, key []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, b := range key {
		if unreserved(b) {
			dst = append(dst, b)
		} else {
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		}
	}
	return dst
}

// escapedLen is the length of what appendEscaped appends.
func escapedLen(key []byte) int {
	n := len(key)
	for _, b := range key {
		if !unreserved(b) {
			n += 2
		}
	}
	return n
}

func unreserved(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '-' || b == '.' || b == '_' || b == '~'
}
