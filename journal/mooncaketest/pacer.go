package mooncaketest

import "time"

// pacer is a token bucket: it says how many events a rate allows by now. It has no clock of its own.
type pacer struct {
	rate   float64 // events per second, above 0
	credit float64 // events; negative after an atomic change that needed more than was due
	last   time.Time
}

// catchUp bounds how much is made good after the process was held up: further events are left out, rather than sent as
// a burst.
const catchUp = 250 * time.Millisecond

// tick is the shortest wait between two looks at the pacer: events are spread this finely.
const tick = time.Millisecond

// due adds what has come due since the last call and returns how many whole events that makes, 0 or less for none.
func (p *pacer) due(now time.Time) int {
	p.credit += p.rate * min(now.Sub(p.last), catchUp).Seconds()
	p.last = now
	return int(p.credit)
}

// spend takes n events away.
func (p *pacer) spend(n int) { p.credit -= float64(n) }

// wait is the time until at least one event is due.
func (p *pacer) wait() time.Duration {
	return max(tick, time.Duration((1-p.credit)/p.rate*float64(time.Second)))
}

// skip forgets the time until now, during which nothing was to happen.
func (p *pacer) skip(now time.Time) { p.last = now }
