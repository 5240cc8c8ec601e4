package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTrim: which rows of an object stay, and why. A row is medium, offset, + or -, and g for a group; the newest of a medium come first, the
// cut is 100.
func TestTrim(t *testing.T) {
	reading := func(h, e uint64) Reading { return Reading{Evidence: Evidence{Position: readingAt(h)}, Through: e} }
	for _, c := range []struct {
		name, rows, want string
		clear, proof     uint64
		readings         []Reading
		forget           bool
	}{
		{name: "the newest", rows: "cpu90- cpu80+ cpu70- disk60-", want: "cpu90 disk60"},
		{name: "behind the cut all stay", rows: "cpu130- cpu120+ cpu110- cpu90-", want: "cpu130 cpu120 cpu110 cpu90"},
		{name: "a stay's first", rows: "cpu90+ cpu80+ cpu70+ cpu60- cpu50+", want: "cpu90 cpu70"},
		{name: "a stay's first is the object's", rows: "cpu90+ cpu80+ cpu70+", want: "cpu90 cpu70"},
		{name: "a stay begins behind a clear", rows: "cpu90+ cpu80+ cpu70+", clear: 75, want: "cpu90 cpu80"},
		{name: "it may have survived", rows: "cpu90+ cpu80+", clear: 95, want: "cpu90"},
		{name: "a group", rows: "cpu90- cpu80+g cpu70+g", want: "cpu90 cpu80"},
		{name: "a group of an older stay, and its end", rows: "cpu90+ cpu80- cpu70- cpu60+g", want: "cpu90 cpu70 cpu60"},
		{name: "another medium has a newer group", rows: "cpu90+ cpu80- cpu70+g disk75+g", want: "cpu90 disk75"},
		{name: "another medium has an older group", rows: "cpu90+ cpu80- cpu70+g disk65+g", want: "cpu90 cpu80 cpu70 disk65"},
		{name: "touched", rows: "cpu90- cpu80+ cpu70- cpu60+", readings: []Reading{reading(75, 85), reading(65, 72)}, want: "cpu90 cpu80 cpu70"},
		{name: "touched, and the end of that stay", rows: "cpu90+ cpu80- cpu70+", readings: []Reading{reading(65, 72)}, want: "cpu90 cpu80 cpu70"},
		{name: "at h is not touched", rows: "cpu90- cpu80+", readings: []Reading{reading(80, 85)}, want: "cpu90"},
		{name: "proven gone", rows: "cpu90- disk80- disk70+", proof: 95, want: ""},
		{name: "not proven gone on one", rows: "cpu90- disk80-", proof: 85, want: "cpu90 disk80"},
		{name: "proven gone, but touched", rows: "cpu90- disk80-", proof: 95, readings: []Reading{reading(75, 85)}, want: "cpu90 disk80"},
		{name: "proven gone, but listed", rows: "cpu90- tape80-", proof: 95, want: "cpu90 tape80"},
		{name: "proven gone, but stored", rows: "cpu90- disk80+", proof: 95, clear: 95, want: "cpu90 disk80"},
		{name: "forgotten", rows: "cpu90- cpu80+ disk70- tape60-", forget: true, want: ""},
		{name: "not forgotten: touched", rows: "cpu90- disk70-", forget: true, readings: []Reading{reading(85, 95)}, want: "cpu90 disk70"},
		{name: "not forgotten: stored", rows: "cpu90- disk70+", forget: true, want: "cpu90 disk70"},
		{name: "not forgotten: behind the cut", rows: "cpu110- cpu90-", forget: true, want: "cpu110 cpu90"},
	} {
		var got []string
		tr := trimmer{c: &Checkpoint{Offset: 200}, forget: c.forget, add: func(key, _ []byte) error {
			n := split(key)
			medium, rest, _ := cutMedium(key[n:])
			p, _ := cutPosition(rest)
			got = append(got, fmt.Sprint(medium, p.Offset))
			return nil
		}}
		scope := appendScope(nil, 1, []byte("b"), []byte("t"))
		tr.scopeKey = scope // entered
		tr.scope = scopeTrim{cut: Behind(100), clear: Position{Offset: c.clear}, proof: Position{Offset: c.proof}, readings: c.readings}
		last := ""
		for _, text := range strings.Fields(c.rows) {
			i := strings.IndexAny(text, "0123456789")
			j := i + strings.IndexAny(text[i:], "+-")
			e := Evidence{Stored: text[j] == '+', HasGroup: strings.HasSuffix(text, "g")}
			fmt.Sscan(text[i:j], &e.Position.Offset)
			e.Position.Event = 1
			key := appendMedium(appendObject(append([]byte{keyHistory}, scope...), []byte("k")), []byte(text[:i]))
			key = appendPosition(key, e.Position)
			if string(key) <= last {
				t.Fatalf("%s: the case's rows are out of order", c.name)
			}
			last = string(key)
			value := appendEvidence(nil, &e)
			if e.HasGroup {
				value = appendGroup(value, []byte("g"), []byte("k"))
			}
			if err := tr.history(key, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := tr.objectEnds(); err != nil {
			t.Fatal(err)
		}
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %s: stays %q, want %q", c.name, c.rows, got, want)
		}
	}
}

// TestTrimMuch: an object of which more is to stay than is held stays as a whole, each row once and in order.
func TestTrimMuch(t *testing.T) {
	var got []string
	tr := trimmer{c: &Checkpoint{Offset: 1 << 20}, forget: true, add: func(key, _ []byte) error {
		got = append(got, string(key))
		return nil
	}}
	scope := appendScope(nil, 1, []byte("b"), []byte("t"))
	tr.scopeKey, tr.scope = scope, scopeTrim{cut: Behind(100)}
	object := make([]byte, 10_000)
	n := 0
	for m := range 150 {
		for _, p := range []uint64{120, 90, 80, 70} {
			e := Evidence{Position: Position{p, 1}, Stored: true}
			key := appendMedium(appendObject(append([]byte{keyHistory}, scope...), object), fmt.Appendf(nil, "m%03d", m))
			if err := tr.history(appendPosition(key, e.Position), appendEvidence(nil, &e)); err != nil {
				t.Fatal(err)
			}
		}
		n += 3 // behind the cut, the newest, and the stay's first
	}
	if err := tr.objectEnds(); err != nil {
		t.Fatal(err)
	}
	if len(got) != n || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != n {
		t.Errorf("%d rows stay (in order: %v), want %d", len(got), slices.IsSorted(got), n)
	}
}
