package mooncaketest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// What a query string asks for: the table of master-admin.md, "Odd keys".
func TestAdminAskedKeys(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string // nil: no keys
	}{
		{"keys=a", []string{"a"}},
		{"keys=a,b", []string{"a", "b"}},
		{"keys=a%2Cb", []string{"a", "b"}}, // decoded, then split
		{"keys=a+b,c%2Bd", []string{"a b", "c+d"}},
		{"keys=%25%20%26%3D%0A%00", []string{"% &=\n\x00"}},
		{"keys=%C3%A9%f0%9f%98%80", []string{"é😀"}},
		{"keys=a%zz,b", []string{"a?"}}, // and b is cut off
		{"keys=a,b%4,c", []string{"a", "b?"}},
		{"keys=a,b%", []string{"a", "b?"}},
		{"keys=a,b%4", []string{"a", "b?"}},
		{"keys=%", []string{"?"}},
		{"keys=a,", []string{"a", ""}},
		{"keys=,", []string{"", ""}},
		{"keys=a&keys=b", []string{"a"}},
		{"keys=&keys=b", nil},
		{"x=1&keys=a&y", []string{"a"}},
		{"keys=a=b", []string{"a=b"}},
		{"keys=", nil}, {"keys", nil}, {"", nil}, {"Keys=a", nil}, {"keysx=a", nil},
	} {
		got, ok := askedKeys(c.query)
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%q asks for %q, %t, want %q", c.query, got, ok, c.want)
		}
	}
}

func TestAdminOddKeys(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	const emoji = "\U0001F600"
	odd := []string{"% &=\n\x00", "c+d", "é" + emoji + "\u20ac", "\"\\/\b\f\n\r\t\x1f\x7f", "?", "a?"}
	for _, key := range odd {
		m.do(put(key))
		m.BeginPut("default", key) // exists: nothing happens
		if got := m.verdicts("keys=" + url.QueryEscape(key)); !maps.Equal(got, map[string]string{key: "cpu"}) {
			t.Errorf("%q: %q", key, got)
		}
	}
	// Escaped: everything beyond ASCII, by surrogates where two are needed.
	body := m.get("/batch_query_keys?keys=" + url.QueryEscape(odd[2])).body
	if !strings.HasPrefix(body, `{"success":true,"data":{"\u00E9\uD83D\uDE00\u20AC":{"ok":true`) {
		t.Error(body)
	}
	body = m.get("/batch_query_keys?keys=" + url.QueryEscape(odd[3])).body
	if !strings.HasPrefix(body, `{"success":true,"data":{"\"\\/\b\f\n\r\t\u001F`+"\x7f") {
		t.Error(body)
	}
	// A malformed escape asks for something else, and for nothing behind it.
	if got := fmt.Sprint(m.verdicts("keys=a%zz,c%2Bd")); got != "map[a?:cpu]" {
		t.Error(got)
	}
	// + is a space.
	if got := fmt.Sprint(m.verdicts("keys=c+d")); got != "map[c d:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
	// The same key twice is one entry, a trailing comma asks for "".
	if got := m.get("/batch_query_keys?keys=x,x,").body; strings.Count(got, `"x":`) != 1 || strings.Count(got, `"":`) != 1 {
		t.Error(got)
	}
	// keys= given twice: the first counts.
	if got := fmt.Sprint(m.verdicts("keys=x&keys=a%3F")); got != "map[x:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
}

// A key with a comma is listed and cannot be asked for.
func TestAdminCommaKey(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a,b"), stored("default", Disk, "a"))
	if keys := m.listing(); !slices.Equal(keys, []string{"a", "a,b"}) {
		t.Errorf("listed %q", keys)
	}
	for _, query := range []string{"keys=a,b", "keys=a%2Cb", "keys=a%2cb"} {
		if got := fmt.Sprint(m.verdicts(query)); got != "map[a:disk b:OBJECT_NOT_FOUND]" {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// A key with a newline is listed like two keys.
func TestAdminNewlineKey(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a\nb"), put("a"))
	if keys := m.listing(); !slices.Equal(keys, []string{"a", "a", "b"}) {
		t.Errorf("listed %q", keys)
	}
	if got := fmt.Sprintf("%q", m.verdicts("keys=a%0Ab,a,b")); got != `map["a":"cpu" "a\nb":"cpu" "b":"OBJECT_NOT_FOUND"]` {
		t.Error(got)
	}
}

// One key that is no valid UTF-8 fails the call, whether it exists or not; the listing shows it as it is.
func TestAdminInvalidUTF8(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("good"), put("bad\xff"))
	if keys := m.listing(); !slices.Equal(keys, []string{"bad\xff", "good"}) {
		t.Errorf("listed %q", keys)
	}
	for _, query := range []string{"keys=bad%ff", "keys=good,bad%ff", "keys=%ff,good", "keys=%ED%A0%80", "keys=%C3", "keys=good,none%80,good"} {
		if a := m.get("/batch_query_keys?" + query); a.code != 503 || a.body != "503 Service Unavailable" || a.contentType != nil {
			t.Errorf("%s: %+v", query, a)
		}
	}
	if got := fmt.Sprint(m.verdicts("keys=good")); got != "map[good:cpu]" {
		t.Error(got)
	}
}

// A store with OddKeys lists and answers for them.
func TestStoreOddKeys(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 2, Objects: 2000, OddKeys: 5})
	steps(s, 10_000)
	d := s.openDirectory()
	var listed []byte
	for i := range d.shards {
		listed = d.appendKeys(listed, i, 0)
	}
	found := map[string]bool{}
	for o := range s.Objects() {
		if d.find(0, o.Key) == nil {
			t.Fatalf("%q is not found", o.Key)
		}
		if !strings.Contains(string(listed), o.Key+"\n") {
			t.Fatalf("%q is not listed", o.Key)
		}
		for _, odd := range oddities {
			found[odd] = found[odd] || len(o.Key) == 64+len(odd) && o.Key[32:32+len(odd)] == odd
		}
	}
	for _, odd := range oddities {
		if !found[odd] {
			t.Errorf("no key with %q", odd)
		}
	}
}

// Strings are JSON that reads back as the same.
func FuzzAdminString(f *testing.F) {
	f.Add("a\x00\"\\é\U0001F600\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out, valid := appendString(nil, s)
		if valid != (strings.ToValidUTF8(s, "") == s) {
			t.Fatalf("%q: valid %t", s, valid)
		}
		var back string
		if valid && (json.Unmarshal(out, &back) != nil || back != s) {
			t.Fatalf("%q became %s", s, out)
		}
	})
}
