package reconcile

import (
	"errors"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Timing says when readings are made. Zero values mean the defaults.
type Timing struct {
	// Settle is how long no new mark must have come. Default 300 ms. Less begins readings that the next mark voids.
	Settle time.Duration
	// Every is the least time from the beginning of one reading to that of the next. Default 1 s.
	Every time.Duration
	// AuditEvery is the time from the end of one audit to the next. Default 15 min; negative: no audits.
	AuditEvery time.Duration
	// Apart is the least time between two readings that must agree against the stream. Default, and never less than, 5 s (R9).
	Apart time.Duration
	// PollApart is the least time between two polls that prove the end of the stream. Default, and never less than, 1 s (R8).
	PollApart time.Duration
	// EndWait is how long the end of a reading is waited for at most. Default 30 s.
	EndWait time.Duration
	// Patience is how long a reading on demand waits for another one, for its begin, and for one that holds. Default 2 min.
	Patience time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.Settle, 300*time.Millisecond)
	set(&t.Every, time.Second)
	set(&t.AuditEvery, 15*time.Minute)
	set(&t.EndWait, 30*time.Second)
	set(&t.Patience, 2*time.Minute)
	t.Apart = max(t.Apart, 5*time.Second)
	t.PollApart = max(t.PollApart, time.Second)
	return t
}

// maxFollow is how many readings follow one that left doubts: they come 1, 2, 4, 8 and 16 s after it.
const maxFollow = 5

// schedule decides when the next reading is made, and why. It is pure: no clock, no waiting, no randomness of its own.
type schedule struct {
	t Timing

	began    time.Time // the last attempt
	retry    time.Time // not before, after errors of the master
	failures int       // such errors in a row

	h       uint64 // where the last reading that held began
	read    bool   // one held since the start
	audit   time.Time
	verify  time.Time // zero: nothing waits to be contradicted again
	follow  time.Time // zero: nothing was left
	follows int
}

// due returns why a reading should be made, and how long from now; ok is false where none is wanted before something changes.
func (s *schedule) due(now time.Time, d Doubt) (why string, in time.Duration, ok bool) {
	if !d.Connected {
		return "", 0, false
	}
	floor := s.began.Add(s.t.Every)
	if s.retry.After(floor) {
		floor = s.retry
	}
	at := func(why string, t time.Time) (string, time.Duration, bool) {
		if t.Before(floor) {
			t = floor
		}
		return why, max(0, t.Sub(now)), true
	}
	switch {
	case d.Mark > s.h:
		return at(reading.AfterMark, d.At.Add(s.t.Settle))
	case !s.read:
		return at(reading.AtStart, now)
	}
	next := time.Time{}
	for _, c := range []struct {
		why string
		at  time.Time
	}{{reading.Audit, s.verify}, {reading.AfterMark, s.follow}, {reading.Audit, s.audit}} {
		if !c.at.IsZero() && (next.IsZero() || c.at.Before(next)) {
			why, next = c.why, c.at
		}
	}
	if next.IsZero() {
		return "", 0, false
	}
	return at(why, next)
}

// ended takes note of an attempt that began and ended at these times, with the newest mark before it; random is in [0, 1). Of a dry run
// or of a snapshot it is not told.
func (s *schedule) ended(began, now time.Time, mark uint64, r *Report, err error, random float64) {
	s.began = began
	var admin *AdminError
	switch {
	case errors.As(err, &admin):
		s.failures++
		s.retry = now.Add(mooncake.Backoff(s.failures, random))
		return
	case err != nil:
		return
	}
	s.failures, s.retry = 0, time.Time{}
	if !s.read || mark > s.h {
		s.follows = 0
	}
	s.h, s.read = r.Begun, true
	if s.audit.IsZero() || r.Why == reading.Audit {
		s.audit = time.Time{}
		if s.t.AuditEvery > 0 {
			s.audit = now.Add(s.t.AuditEvery)
		}
	}
	switch {
	case r.Contradictions > 0:
		s.verify = now // the epoch is silent now: what else is wrong is found at once
	case !s.verify.IsZero() && began.Before(s.verify): // it came too early to decide
	case r.Contradict > 0:
		s.verify = now.Add(s.t.Apart)
	default:
		s.verify = time.Time{}
	}
	s.follow = time.Time{}
	if r.left() && s.follows < maxFollow {
		s.follow = now.Add(time.Second << s.follows)
		s.follows++
	}
}
