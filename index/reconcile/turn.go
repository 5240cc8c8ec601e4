package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// underway is the reading that is being made, for those who wait for it.
type underway struct {
	why   string
	began time.Time
	step  atomic.Pointer[string]
}

func newUnderway(why string, began time.Time) *underway {
	u := &underway{why: why, began: began}
	first := StepBegin
	u.step.Store(&first)
	return u
}

// ErrBusy: another reading was under way for all the time that one was waited for.
var ErrBusy = errors.New("another reading of the master is under way")

// turn waits until no reading is under way, and takes the slot; left, if not nil, tells how long that may take.
func (r *Runner) turn(ctx context.Context, tell func(Progress), left *time.Duration) error {
	select {
	case r.slot <- struct{}{}:
		return nil
	default:
	}
	var late <-chan time.Time
	if left != nil {
		t := time.NewTimer(*left)
		defer t.Stop()
		late = t.C
	}
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		if tell != nil {
			tell(Progress{Step: StepTurn, Reason: r.busy()})
		}
		select {
		case r.slot <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%w: %s. It goes on; ask again when it has ended, and see what the recorder's log says of the master", ErrBusy, r.busy())
		case <-tick.C:
		}
	}
}

// busy says of the reading under way what it is and how far.
func (r *Runner) busy() string {
	u := r.under.Load()
	if u == nil {
		return "it has just ended"
	}
	return fmt.Sprintf("it began %v ago (%s) and is at the step %s", r.o.Clock.Now().Sub(u.began).Round(time.Second), u.why, *u.step.Load())
}

// tellEvery is how often is told again how far a reading is, where nothing new is.
const tellEvery = time.Second

// teller tells how far a reading is, and every tellEvery that it is still there.
type teller struct {
	mu    sync.Mutex
	f     func(Progress)
	last  Progress
	since time.Time // when its step began
}

// newTeller returns a teller and what ends it; behind that f is not called.
func newTeller(f func(Progress)) (*teller, func()) {
	t := &teller{f: f, since: time.Now(), last: Progress{Step: StepBegin}}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				t.again()
			}
		}
	}()
	return t, func() {
		close(stop)
		<-stopped
	}
}

func (t *teller) tell(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Step != t.last.Step {
		t.since = time.Now()
	}
	t.last = p
	t.say()
}

func (t *teller) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say()
}

func (t *teller) say() {
	p := t.last
	p.Seconds = int(time.Since(t.since).Seconds())
	t.f(p)
}
