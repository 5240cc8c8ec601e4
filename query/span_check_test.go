package query

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReversedSpan(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, to string
		say      string // empty: the span is right
	}{
		{"", "", ""},
		{"-5m", "", ""},
		{"", "-5m", ""},
		{"-10m", "-5m", ""},
		{"-5m", "-5m", ""},
		{"-5m", "now", ""},
		{"now", "", ""},
		{"now", "2026-11-30T12:00:00Z", ""},
		{"now", "-5m", "it is now, and --to is 2026-11-30T11:55:00.000Z"},
		{"-5m", "-10m", "it is 2026-11-30T11:55:00.000Z, and --to is 2026-11-30T11:50:00.000Z"},
		{"offset:7", "offset:7", ""},
		{"offset:8", "offset:7", "it is offset:8, and --to is offset:7"},
		{"seq:1/9", "seq:2/1", ""},
		{"seq:2/1", "seq:1/9", "it is seq:2/1, and --to is seq:1/9"},
		{"seq:1/9", "seq:1/8", "it is seq:1/9, and --to is seq:1/8"},
		{"offset:8", "-5m", ""}, // only the stream tells
	} {
		span := Span{must(ParseWhen(c.from, now)), must(ParseWhen(c.to, now))}
		err := span.Check(now)
		var usage *UsageError
		switch {
		case c.say == "" && err != nil:
			t.Errorf("from %q to %q: %v", c.from, c.to, err)
		case c.say != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "exchange them")):
			t.Errorf("from %q to %q: %v, want %q", c.from, c.to, err, c.say)
		}
	}
}

func must(w When, err error) When {
	if err != nil {
		panic(err)
	}
	return w
}

// A moment may stand as the tables print it.
func TestParseWhenAsPrinted(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 30, 16, 45, 20, 0, time.UTC).UnixMilli()
	for text, ms := range map[string]int64{
		"2026-11-30 16:45:20":       want,
		"2026-11-30 16:45:20.123":   want + 123,
		"2026-11-30T16:45:20Z":      want,
		"2026-11-30T17:45:20+01:00": want,
		"1796057120000":             want,
	} {
		if w, err := ParseWhen(text, time.Time{}); err != nil || w != (When{Kind: AtTime, Ms: ms}) {
			t.Errorf("%q: %+v, %v", text, w, err)
		}
	}
	for _, text := range []string{"2026-11-30", "2026-11-30 16:45", "2026-11-30 16:45:20 CET", "2026-11-31 16:45:20"} {
		if w, err := ParseWhen(text, time.Time{}); err == nil {
			t.Errorf("%q: %+v", text, w)
		}
	}
}
