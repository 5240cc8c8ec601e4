package mooncake

import (
	"time"
)

// pacer decides when the next call may begin. It is pure: no clock, no waiting, no source of randomness.
//
// Two things hold a call back. The pause behind the last call, whatever its kind: it is the master's rest, and what keeps the
// client within its budget. And the backoff of its own kind: a listing that fails for an hour must not slow the status polls down,
// nor may their success make the listing hurry.
type pacer struct {
	factor float64 // of what a call took
	rest   time.Time
	kinds  [kindCount]struct {
		failures int // in a row
		until    time.Time
		last     error
	}
}

// Bounds of the backoff.
const (
	backoffMin = 300 * time.Millisecond
	backoffMax = 30 * time.Second
)

// restMost bounds the master's rest behind a call that it did not answer: how long was waited says little of how much it worked. A listing
// that hung for 5 min kept the next reading waiting for another 5.
const restMost = backoffMax

// outcome is what a call means for the next ones.
type outcome uint8

const (
	answered    outcome = iota
	neutral             // the caller gave up, or the master refused a key: says nothing about the master
	standby             // it answers, and may become the leader at any moment: asked again soon
	failed              // no use asking again at once
	unreachable         // failed, and the master did no work that it would have to rest from
)

// Backoff is the time to wait after so many failures in a row, 300 ms to 30 s; random is in [0, 1). After the
// first failure it is 300 to 600 ms, and its bounds double with each further one: half of it is jitter, so that the recorders of
// a fleet do not come back together.
func Backoff(failures int, random float64) time.Duration {
	if failures <= 0 {
		return 0
	}
	top := backoffMax
	if failures < 7 { // 300 ms << 7 is above 30 s
		top = min(backoffMax, backoffMin<<failures)
	}
	return top/2 + time.Duration(random*float64(top/2))
}

// done takes note of a call that ended now.
func (p *pacer) done(kind Kind, now time.Time, took time.Duration, o outcome, err error, random float64) {
	if o == unreachable {
		took = 0
	}
	rest := time.Duration(p.factor * float64(max(took, 0)))
	if o != answered {
		rest = min(rest, restMost)
	}
	p.rest = now.Add(rest)
	k := &p.kinds[kind]
	switch o {
	case answered:
		k.failures, k.until, k.last = 0, time.Time{}, nil
		return
	case neutral:
		return
	case standby:
		k.failures = 1
	default:
		k.failures++
	}
	k.until, k.last = now.Add(Backoff(k.failures, random)), err
}

// pause is how long any call must wait for the master's rest.
func (p *pacer) pause(now time.Time) time.Duration { return max(0, p.rest.Sub(now)) }

// backoff is how long a call of this kind must wait because of those that failed, and the last failure.
func (p *pacer) backoff(kind Kind, now time.Time) (time.Duration, error) {
	k := &p.kinds[kind]
	return max(0, k.until.Sub(now)), k.last
}

// forget makes the next call of each kind the first after no failure.
func (p *pacer) forget() {
	for i := range p.kinds {
		p.kinds[i].failures, p.kinds[i].until, p.kinds[i].last = 0, time.Time{}, nil
	}
}
