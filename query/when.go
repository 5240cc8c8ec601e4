package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// WhenKind says which form a When has.
type WhenKind uint8

const (
	// Latest is the default: as of the source's newest indexed batch or mark.
	Latest WhenKind = iota
	// Now is strict: proven only by the master's counters (R8).
	Now
	// AtTime is a publisher time.
	AtTime
	// AtOffset is a position of the journal.
	AtOffset
	// AtSeq is a batch by epoch and sequence number.
	AtSeq
)

// When is the moment a question is about.
type When struct {
	Kind   WhenKind
	Ms     int64 // AtTime: publisher time, Unix ms
	Offset uint64
	Epoch  uint64
	Seq    uint64
}

// whenForms is what ParseWhen accepts, for messages to people.
const whenForms = "Unix milliseconds (1795985443000), RFC 3339 (2026-11-29T12:03:00Z), a time ago (-5m), offset:N, seq:EPOCH/N, or now"

// UsageError is a question that cannot be understood; the command ends with exit code 2.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// ParseWhen reads a moment. now is the zero of "-5m", on our clock.
func ParseWhen(s string, now time.Time) (When, error) {
	bad := func(why string) (When, error) {
		return When{}, usagef("moment %q: %s; use %s", s, why, whenForms)
	}
	switch {
	case s == "":
		return When{}, nil
	case s == "now":
		return When{Kind: Now}, nil
	case strings.HasPrefix(s, "offset:"):
		n, err := strconv.ParseUint(s[len("offset:"):], 10, 64)
		if err != nil || n == 0 || n >= math.MaxInt64 {
			return bad("an offset is a number from 1 on")
		}
		return When{Kind: AtOffset, Offset: n}, nil
	case strings.HasPrefix(s, "seq:"):
		e, n, ok := strings.Cut(s[len("seq:"):], "/")
		epoch, err1 := strconv.ParseUint(e, 10, 64)
		seq, err2 := strconv.ParseUint(n, 10, 64)
		if !ok || err1 != nil || err2 != nil || epoch == 0 {
			return bad("a sequence number is written seq:EPOCH/N, with epochs from 1 on")
		}
		return When{Kind: AtSeq, Epoch: epoch, Seq: seq}, nil
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return When{Kind: AtTime, Ms: ms}, nil
	}
	if strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return bad("not a duration")
		}
		return When{Kind: AtTime, Ms: now.Add(d).UnixMilli()}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.DateTime, s) // as tables have it, in UTC, with or without a fraction
	}
	if err != nil {
		return bad("not a moment")
	}
	return When{Kind: AtTime, Ms: t.UnixMilli()}, nil
}
