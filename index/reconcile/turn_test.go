package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// Something is lost in the middle of each reading, for ever: who asked for one is told so, again and again, and in the end that none held.
func TestReadEndsWhereNothingHolds(t *testing.T) {
	w, names := doubtful(t)
	finish(w, false)
	w.hook = func(at string) {
		if at == "media" {
			w.mark()
		}
	}
	var again []Progress
	begun, before := w.now, w.at()
	_, err := w.runner().Read(context.Background(), Request{Progress: func(p Progress) {
		if p.Step == StepAgain {
			again = append(again, p)
		}
	}})
	if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "no reading held") || !strings.Contains(err.Error(), "something was lost meanwhile") {
		t.Errorf("it says %v", err)
	}
	if took := w.now.Sub(begun); took < 2*time.Minute || took > 3*time.Minute {
		t.Errorf("it took %v of the world's time", took)
	}
	if len(again) < 10 || !strings.Contains(again[0].Reason, "something was lost meanwhile") {
		t.Errorf("told %d times that it begins again: %+v", len(again), again)
	}
	if w.at() != before {
		t.Error("it was written")
	}
	w.check("at the end", names)
}

// While another reading is under way, who waits for it is told which, and not kept for ever.
func TestReadWaitsItsTurn(t *testing.T) {
	w := newWorld(t)
	release, holds := make(chan struct{}), make(chan struct{}, 2)
	o := w.runner().o
	o.Clock, o.Timing.Patience = realClock{}, 30*time.Millisecond
	o.Choose = func(context.Context) (Master, error) {
		holds <- struct{}{}
		<-release
		return nil, errDown
	}
	r := New(o)
	var first sync.WaitGroup
	first.Go(func() {
		var admin *AdminError
		if _, err := r.once(t.Context(), Request{Why: reading.AfterMark}); !errors.As(err, &admin) {
			t.Errorf("the first: %v", err)
		}
	})
	<-holds
	var told []Progress
	_, err := r.Read(t.Context(), Request{Progress: func(p Progress) { told = append(told, p) }})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), reading.AfterMark) || !strings.Contains(err.Error(), "step begin") {
		t.Errorf("it says %v", err)
	}
	if len(told) == 0 || told[0].Step != StepTurn || !strings.Contains(told[0].Reason, reading.AfterMark) {
		t.Errorf("told %+v", told)
	}
	close(release)
	first.Wait()
	var admin *AdminError
	if _, err := r.Read(t.Context(), Request{}); !errors.As(err, &admin) {
		t.Errorf("behind it: %v", err)
	}
}

// slowBegin is a Log whose index never comes as far as the begin of a reading.
type slowBegin struct{ worldLog }

func (slowBegin) Begin(ctx context.Context, _ *reading.Begun) (recorder.Standing, error) {
	<-ctx.Done()
	return recorder.Standing{}, ctx.Err()
}

func TestReadThatCannotBegin(t *testing.T) {
	w, _ := doubtful(t)
	o := w.runner().o
	o.Log, o.Timing.Patience = slowBegin{worldLog{w}}, 30*time.Millisecond
	if _, err := New(o).Read(t.Context(), Request{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "could not begin within 30ms") {
		t.Errorf("it says %v", err)
	}
}

// A reading that is at one step for long says so each second.
func TestTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Progress
		teller, end := newTeller(func(p Progress) { told = append(told, p) })
		teller.tell(Progress{Step: StepListing, Done: 5})
		time.Sleep(3500 * time.Millisecond)
		teller.tell(Progress{Step: StepAsking})
		end()
		want := []Progress{
			{Step: StepListing, Done: 5}, {Step: StepListing, Done: 5, Seconds: 1}, {Step: StepListing, Done: 5, Seconds: 2},
			{Step: StepListing, Done: 5, Seconds: 3}, {Step: StepAsking},
		}
		if len(told) != len(want) {
			t.Fatalf("told %+v", told)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("told %+v, want %+v", told[i], want[i])
			}
		}
	})
}
