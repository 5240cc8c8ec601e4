package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/reading"
)

// A transcript of what is due when.
func TestSchedule(t *testing.T) {
	s := &schedule{t: Timing{}.withDefaults()}
	at := func(sec float64) time.Time { return worldStart.Add(time.Duration(sec * float64(time.Second))) }
	on := func(mark uint64, sec float64) Doubt { return Doubt{Mark: mark, At: at(sec), Connected: true} }
	due := func(now float64, d Doubt, want string) {
		t.Helper()
		why, in, ok := s.due(at(now), d)
		got := "never"
		if ok {
			got = fmt.Sprintf("%s in %v", why, in)
		}
		if got != want {
			t.Errorf("at %v: %s, want %s", now, got, want)
		}
	}
	held := func(began, now float64, mark uint64, r Report) {
		s.ended(at(began), at(now), mark, &r, nil, 0)
	}
	failed := func(began, now float64, err error) { s.ended(at(began), at(now), 0, nil, err, 0) }
	report := func(why string, h uint64) Report {
		r := Report{}
		r.Why, r.Begun = why, h
		return r
	}

	due(0, Doubt{}, "never") // not connected
	due(0, on(0, 0), "start in 0s")
	due(0, on(3, 0), "after_mark in 300ms")
	due(0.2, on(3, 0.1), "after_mark in 200ms") // another mark came: it has to settle again
	due(0.5, on(3, 0.1), "after_mark in 0s")
	failed(0.5, 0.6, ErrBroken)
	due(0.7, on(3, 0.1), "after_mark in 800ms") // at most one a second
	for range 20 {
		failed(2, 2, &AdminError{errDown})
	}
	due(2, on(3, 0.1), "after_mark in 15s") // half of 30 s is jitter
	failed(20, 20, &AdminError{errors.New("once more")})
	held(40, 41, 3, report(reading.AfterMark, 10))
	due(41, on(3, 0.1), "audit in 15m0s")
	due(41, on(11, 41), "after_mark in 300ms")

	// What is left is read again, less and less often.
	r := report(reading.AfterMark, 20)
	r.Traffic, r.Doubts = true, 5
	for i, want := range []string{"1s", "2s", "4s", "8s", "16s"} {
		r.Begun++
		held(50, 50, 11, r)
		due(50, on(11, 41), "after_mark in "+want)
		if i == 0 {
			s.follow = at(50.2)
			due(50.2, on(11, 41), "after_mark in 800ms")
		}
	}
	held(50, 50, 11, r)
	due(50, on(11, 41), "audit in 14m51s")
	r.Begun = 40
	held(60, 60, 30, r) // another mark: from the beginning
	due(60, on(30, 59), "after_mark in 1s")

	// A contradiction is looked at again after 5 s; a reading in between does not count.
	a := report(reading.Audit, 50)
	a.Contradict = 1
	held(100, 100, 30, a)
	due(100, on(30, 59), "audit in 5s")
	held(102, 102, 30, report(reading.AfterMark, 51))
	due(102, on(30, 59), "audit in 3s")
	a.Contradict, a.Contradictions, a.Begun = 0, 1, 52
	held(105, 106, 30, a)
	due(106, on(30, 59), "audit in 0s") // what else is silent
	held(107, 108, 30, report(reading.Audit, 53))
	due(108, on(30, 59), "audit in 15m0s")
}

// Run: a mark, an hour without the master, and its return.
func TestRun(t *testing.T) {
	w, names := doubtful(t)
	finish(w, true)
	w.off = true
	r := w.runner()
	ended := 0
	r.o.Ended = func(_ *Report, err error) {
		if err == nil {
			ended++
		}
	}
	ctx := context.Background()
	until := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); {
			if err := r.step(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := len(w.calls)
	until(time.Hour)
	if n := len(w.calls) - before; n < 100 || n > 300 || ended > 0 {
		t.Errorf("%d calls in an hour without an answer, %d readings", n, ended)
	}
	w.off = false
	finish(w, false)
	until(31 * time.Second)
	if ended == 0 {
		t.Fatal("the doubts are not resolved")
	}
	w.want(t, "cpu", "+-")
	w.mark()
	w.want(t, "cpu", "??")
	until(5 * time.Second)
	w.want(t, "cpu", "+-")
	w.check("at the end", names)
	ended = 0
	finish(w, true)
	until(10 * time.Minute)
	if ended > maxFollow {
		t.Errorf("%d readings in ten minutes of peace", ended)
	}
}
