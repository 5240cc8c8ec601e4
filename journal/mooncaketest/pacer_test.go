package mooncaketest

import (
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	zero := time.Unix(0, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	p := pacer{rate: 1000, last: zero}
	for _, step := range []struct {
		ms, due, spend int
		wait           time.Duration
	}{
		{0, 0, 0, time.Millisecond},
		{1, 1, 1, time.Millisecond},
		{3, 2, 3, 2 * time.Millisecond}, // an atomic change took one more than was due
		{4, 0, 0, time.Millisecond},
		{5, 1, 0, time.Millisecond},
		{1005, 251, 251, time.Millisecond}, // held up for a second: only catchUp is made good
	} {
		if due := p.due(at(step.ms)); due != step.due {
			t.Errorf("at %d ms: %d due, want %d", step.ms, due, step.due)
		}
		p.spend(step.spend)
		if wait := p.wait(); wait != step.wait {
			t.Errorf("at %d ms: wait %v, want %v", step.ms, wait, step.wait)
		}
	}
	slow := pacer{rate: 0.5, last: zero}
	if due, wait := slow.due(at(100)), slow.wait(); due != 0 || wait != 1900*time.Millisecond {
		t.Errorf("at 0.5 events/s: %d due, wait %v", due, wait)
	}
	slow.skip(at(10_000))
	if due := slow.due(at(10_001)); due != 0 {
		t.Errorf("%d due after a skip", due)
	}
}
