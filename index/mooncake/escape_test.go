package mooncake

import (
	"net/url"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"abc-._~XYZ019", "abc-._~XYZ019"},
		{"a+b c%20&=#", "a%2Bb%20c%2520%26%3D%23"},
		{"model@sha/0:1?x", "model%40sha%2F0%3A1%3Fx"},
		{"line\nend\r\x00\x7f", "line%0Aend%0D%00%7F"},
		{"é😀", "%C3%A9%F0%9F%98%80"},
		{`"\`, "%22%5C"},
	} {
		got := string(appendEscaped(nil, []byte(c.key)))
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.key, got, c.want)
		}
		if n := escapedLen([]byte(c.key)); n != len(got) {
			t.Errorf("%q: length %d, want %d", c.key, n, len(got))
		}
	}
}

func TestWhyUnaskable(t *testing.T) {
	for _, c := range []struct{ key, why string }{
		{"", "empty"}, {"a,b", "comma"}, {",", "comma"}, {"\xff", "UTF-8"}, {"a\xc3", "UTF-8"}, {"\xed\xa0\x80", "UTF-8"}, {"\xc0\x80", "UTF-8"},
		{"a", ""}, {"%", ""}, {"%2C", ""}, {"\x00", ""}, {"\n", ""}, {" ", ""}, {"\ufffd", ""}, {"\U0010ffff", ""},
	} {
		if why := WhyUnaskable([]byte(c.key)); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%q: %q, want %q", c.key, why, c.why)
		}
	}
}

// FuzzEscape: what is asked for is what the master's decoder makes of it, alone and between others.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"a", "+", "%", "%2", "%2C", "a b", "\x00\n", "é", "?", "&keys=b", "#", "..", "%zz"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		escaped := string(appendEscaped(nil, key))
		if len(escaped) != escapedLen(key) {
			t.Fatalf("%q: length %d, escaped %q", key, escapedLen(key), escaped)
		}
		if strings.ContainsAny(escaped, ",+&=#?/ \n\r") {
			t.Fatalf("%q: %q has a character with a meaning", key, escaped)
		}
		if got, err := url.QueryUnescape(escaped); err != nil || got != string(key) {
			t.Fatalf("%q: %q comes out as %q, %v", key, escaped, got, err)
		}
		if got := masterDecode(escaped); got != string(key) {
			t.Fatalf("%q: %q comes out of the master as %q", key, escaped, got)
		}
		if WhyUnaskable(key) == "" {
			if parts := strings.Split(masterDecode("x,"+escaped+",y"), ","); len(parts) != 3 || parts[1] != string(key) {
				t.Fatalf("%q: the list comes out as %q", key, parts)
			}
		}
	})
}
