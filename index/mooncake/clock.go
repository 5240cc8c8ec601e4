package mooncake

import "time"

// Clock tells the time and when time has passed. Tests give one that does not wait.
type Clock interface {
	Now() time.Time
	// Timer returns a channel that gets a value after d, and a function that releases it early.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
