package mooncake

import (
	"errors"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const almost = 1 - 1e-12
	for _, c := range []struct {
		failures int
		min, max time.Duration
	}{
		{0, 0, 0}, {-1, 0, 0},
		{1, 300 * time.Millisecond, 600 * time.Millisecond},
		{2, 600 * time.Millisecond, 1200 * time.Millisecond},
		{3, 1200 * time.Millisecond, 2400 * time.Millisecond},
		{6, 9600 * time.Millisecond, 19200 * time.Millisecond},
		{7, 15 * time.Second, 30 * time.Second},
		{64, 15 * time.Second, 30 * time.Second},
		{1 << 40, 15 * time.Second, 30 * time.Second},
	} {
		if got := Backoff(c.failures, 0); got != c.min {
			t.Errorf("%d failures: at least %v, want %v", c.failures, got, c.min)
		}
		if got := Backoff(c.failures, almost); got < c.max-time.Microsecond || got > c.max {
			t.Errorf("%d failures: at most %v, want %v", c.failures, got, c.max)
		}
	}
}

func TestPacer(t *testing.T) {
	start := time.Unix(1000, 0)
	bad := errors.New("bad")
	const ms = time.Millisecond
	type step struct {
		after   time.Duration // since the step before
		kind    Kind
		took    time.Duration
		outcome outcome
	}
	for _, c := range []struct {
		name                  string
		factor                float64
		steps                 []step
		pause, status, listed time.Duration // to wait: any call, more for Status, more for Keys
	}{
		{"nothing yet", 1, nil, 0, 0, 0},
		{"as long as it took", 1, []step{{0, KindBatch, 40 * ms, answered}}, 40 * ms, 0, 0},
		{"three times as long", 3, []step{{0, KindBatch, 40 * ms, answered}}, 120 * ms, 0, 0},
		{"no pause", 0, []step{{0, KindBatch, 40 * ms, answered}}, 0, 0, 0},
		{"a clock that went back", 1, []step{{0, KindBatch, -40 * ms, answered}}, 0, 0, 0},
		{"the last call counts", 1, []step{{0, KindKeys, 9000 * ms, answered}, {9000 * ms, KindStatus, ms, answered}}, ms, 0, 0},
		{"a failure holds back its own kind", 1, []step{{0, KindKeys, 40 * ms, failed}}, 40 * ms, 0, 300 * ms},
		{"and the success of another does not help it", 1, []step{{0, KindKeys, 0, failed}, {0, KindKeys, 0, failed}, {0, KindStatus, 0, answered}}, 0, 0, 600 * ms},
		{"its own does", 1, []step{{0, KindKeys, 0, failed}, {0, KindKeys, 0, failed}, {0, KindKeys, 0, answered}}, 0, 0, 0},
		{"time passes", 1, []step{{0, KindKeys, 0, failed}, {200 * ms, KindStatus, 0, answered}}, 0, 0, 100 * ms},
		{"a timeout: the master may have worked", 1, []step{{0, KindStatus, 5000 * ms, failed}}, 5000 * ms, 300 * ms, 0},
		{"a listing that hung: but not for all that time", 1, []step{{0, KindKeys, 5 * time.Minute, failed}}, 30 * time.Second, 0, 300 * ms},
		{"one that was given up", 1, []step{{0, KindKeys, 5 * time.Minute, neutral}}, 30 * time.Second, 0, 0},
		{"one that came", 1, []step{{0, KindKeys, 5 * time.Minute, answered}}, 5 * time.Minute, 0, 0},
		{"unreachable: it did not", 1, []step{{0, KindStatus, 5000 * ms, unreachable}}, 0, 300 * ms, 0},
		{"a standby is asked again soon, always", 1, []step{{0, KindStatus, ms, failed}, {0, KindStatus, ms, failed}, {0, KindStatus, ms, standby}}, ms, 300 * ms, 0},
		{"the caller's giving up says nothing", 1, []step{{0, KindStatus, ms, failed}, {0, KindStatus, ms, neutral}}, ms, 300 * ms, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, now := pacer{factor: c.factor}, start
			for _, s := range c.steps {
				now = now.Add(s.after)
				p.done(s.kind, now, s.took, s.outcome, bad, 0)
			}
			status, _ := p.backoff(KindStatus, now)
			listed, _ := p.backoff(KindKeys, now)
			if p.pause(now) != c.pause || status != c.status || listed != c.listed {
				t.Errorf("waits %v %v %v, want %v %v %v", p.pause(now), status, listed, c.pause, c.status, c.listed)
			}
			if later := now.Add(time.Hour); p.pause(later) != 0 {
				t.Errorf("an hour later it still rests: %v", p.pause(later))
			}
			p.forget()
			if d, err := p.backoff(KindKeys, now); d != 0 || err != nil {
				t.Errorf("not forgotten: %v %v", d, err)
			}
			if p.pause(now) != c.pause {
				t.Errorf("forgot the master's rest")
			}
		})
	}
}
