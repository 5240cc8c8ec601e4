package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "租户-b": 6, "e\u0301": 1, "🦊": 2, "│": 1, "█▒": 2, "α β": 3, "\u200b": 0, "ｆ": 2, "…": 1} {
		if got := columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, text := range []string{"abcdefghij", strings.Repeat("层", 9), strings.Repeat("e\u0301", 20), "a层b层c层d层e层", strings.Repeat("🦊", 7) + "x"} {
		for width := 1; width < 24; width++ {
			got := shorten(text, width)
			head, tail, cut := strings.Cut(got, "…")
			switch {
			case !utf8.ValidString(got), columns(got) > width, !strings.HasPrefix(text, head), cut && !strings.HasSuffix(text, tail):
				t.Errorf("%q in %d columns: %q", text, width, got)
			case cut && columns(text) <= width, !cut && got != text:
				t.Errorf("%q in %d columns: %q", text, width, got)
			case columns(got) < width-2 && cut:
				t.Errorf("%q in %d columns: %q is shorter than it need be", text, width, got)
			}
		}
	}
}

func TestReflow(t *testing.T) {
	text := "one two three\nfour five\n\n  as it  stands, however wide it is\nsix\n\n"
	want := "one two\nthree four\nfive\n\n  as it  stands, however wide it is\nsix\n\n"
	if got := strings.Join(reflow(text, 10), "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got := strings.Join(hanging("  one two three", 9, 4), "|")
	if want := "  one|    two|    three"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The first line is there at once, the others soon, though the buffer is far from full.
func TestPrompt(t *testing.T) {
	var seen testkit.Buffer
	out := newPrinter(&seen)
	p := startPrompt(out)
	show := p.wrap(out.line)
	for _, line := range []string{"first", "second"} {
		if err := show([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.HasPrefix([]byte(seen.String()), []byte("first\n")) {
		t.Errorf("after the first line: %q", seen.String())
	}
	eventually(t, "the second line is there", func() bool { return seen.String() == "first\nsecond\n" })
	p.stop()
}
