package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// What a reading makes of each sort of object, and what it asks.
func TestWhatIsSaid(t *testing.T) {
	w, _ := doubtful(t)
	finish(w, false)
	before := map[string]string{"cpu": "??", "disk": "??", "went": "??", "lost-removal": "??", "lost-store": "??", "sure": "+?", "evicted": "??"}
	for key, media := range before {
		w.want(t, key, media)
	}
	report := w.read(w.runner(), Request{})
	for key, media := range map[string]string{
		"cpu": "+-", "disk": "-+", "both": "++", "went": "--", "lost-removal": "--", "lost-store": "-+", "evicted": "-+", "sure": "+-",
		"never": "--", "putting": "--",
		"a,b": "??", "bad\xff": "??", "x\ny": "??", "x": "??", "y": "??",
	} {
		w.want(t, key, media)
	}
	if report.Corrections != 4 || report.Exceptions != 5 || report.Unsaid != 5 || report.Contradict != 0 {
		t.Errorf("%+v", report)
	}
	if slices.Contains(w.asked, "went") || slices.Contains(w.asked, "lost-removal") {
		t.Errorf("asked for what is not listed: %q", w.asked)
	}
	if len(report.First) != 4 || string(report.First[0].Key) != "lost-removal" {
		t.Errorf("first corrections %+v", report.First)
	}
	// The other tenant stays in doubt, and a second reading asks for what is in doubt only.
	if m := w.answers([]name{{"other", "never"}}); m[name{"other", "never"}][0].Sure {
		t.Error("the reading speaks of another tenant")
	}
	w.asked = nil
	report = w.read(w.runner(), Request{})
	slices.Sort(w.asked)
	if want := []string{"a,b", "bad\xff", "putting", "x", "y"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked for %q, want %q", w.asked, want)
	}
	if report.left() {
		t.Errorf("another reading would find nothing: %+v", report)
	}
	// An audit asks for all that is listed.
	w.asked = nil
	w.read(w.runner(), Request{Audit: true})
	if len(w.asked) != 11 {
		t.Errorf("the audit asked for %q", w.asked)
	}
}

// A recorder that joins late knows nothing: all that is listed is asked for and becomes a correction, all else is absent.
func TestLateJoin(t *testing.T) {
	w := newWorld(t)
	for i := range 2500 {
		w.do(stored(fmt.Sprint("k", i), cpu))
	}
	w.publish()
	w.live()
	finish(w, true)
	report := w.read(w.runner(), Request{Why: reading.AtStart})
	if report.Asked != 2500 || report.Corrections != 2500 || report.Objects != 0 {
		t.Errorf("%+v", report)
	}
	w.want(t, "k0", "+-")
	w.want(t, "k2499", "+-")
	w.want(t, "k2500", "--")
}

// Master empty after a failover: an empty listing is an answer.
func TestEmptyMaster(t *testing.T) {
	w, names := doubtful(t)
	w.restart()
	w.arrive()
	w.connect()
	w.traffic()
	finish(w, true)
	w.read(w.runner(), Request{Why: reading.AfterMark})
	for _, n := range names {
		if n.tenant == event.DefaultTenant && listable([]byte(n.key)) {
			w.want(t, n.key, "--")
		}
	}
}

func TestMasterTrouble(t *testing.T) {
	w, names := doubtful(t)
	finish(w, true)
	r := w.runner()
	for _, call := range []string{"keys", "keys/1", "media", "media/key"} { // "keys/1": the listing is cut in the middle
		w.hook = func(at string) { w.off = w.off || at == call }
		var admin *AdminError
		before := w.at()
		if _, err := r.once(context.Background(), Request{}); !errors.As(err, &admin) || !errors.Is(err, errDown) {
			t.Errorf("%s: %v", call, err)
		}
		if w.at() != before {
			t.Errorf("%s: it was written", call)
		}
		w.check(call, names)
		w.off = false
	}
	w.hook = func(string) {}
	w.standby = true
	begins := len(w.calls)
	var standby *mooncake.StandbyError
	if _, err := r.once(context.Background(), Request{}); !errors.As(err, &standby) || slices.Contains(w.calls[begins:], "begin") {
		t.Errorf("a standby: %v, %q", err, w.calls[begins:])
	}
	w.standby = false
	w.read(r, Request{})
	w.want(t, "cpu", "+-")
}

// A poll that fails while the end is waited for does no harm where messages end it.
func TestEndsWithoutSecondPoll(t *testing.T) {
	w, _ := doubtful(t)
	finish(w, false)
	polls := 0
	w.hook = func(at string) {
		if at == "status" {
			if polls++; polls > 2 {
				w.off = true
			}
		}
	}
	busy := w.pass
	w.pass = func(d time.Duration) {
		if polls > 2 {
			busy(d)
			return
		}
		w.now = w.now.Add(d)
	}
	w.read(w.runner(), Request{})
}

func TestBackends(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.arrive()
	finish(w, true)
	w.broken(w.runner(), Request{}, ErrBackend)
	o := w.runner().o
	o.Backend = func(epoch uint64) ([]byte, bool) { return []byte(backend0), epoch == 1 || epoch == 0 }
	w.read(New(o), Request{})
	w.traffic()
	w.backend = "b1"
	w.do(stored("k", cpu))
	w.publish()
	w.broken(w.runner(), Request{}, ErrBackend)
}

func TestPublisherOff(t *testing.T) {
	w, _ := doubtful(t)
	w.counted.Enabled = false
	w.broken(w.runner(), Request{}, ErrPublisherOff)
}

func TestRestartSeenByCounters(t *testing.T) {
	w, _ := doubtful(t)
	w.sent, w.counted = mooncake.Status{Enabled: true}, mooncake.Status{Enabled: true}
	w.broken(w.runner(), Request{}, ErrBroken)
}

// An object that was touched on one medium keeps its doubt on the other, and the next reading resolves it.
func TestTouchedOnOneMedium(t *testing.T) {
	w, names := doubtful(t)
	finish(w, false)
	w.hook = func(at string) {
		if at == "keys" {
			w.do(stored("lost-store", cpu)) // its disk was never announced to us
			w.publish()
		}
	}
	r := w.runner()
	report := w.read(r, Request{})
	w.hook = func(string) {}
	w.want(t, "lost-store", "+?")
	if report.Touched != 2 || !report.left() {
		t.Errorf("%+v", report)
	}
	w.read(r, Request{})
	w.want(t, "lost-store", "++")
	w.check("at the end", names)
}

// A medium that the master's API does not speak of stays as it is, unless the object is gone.
func TestOtherMedia(t *testing.T) {
	w := newWorld(t)
	w.live()
	w.do(stored("k", "nvme"), stored("k", cpu), stored("gone", "nvme"))
	w.publish()
	w.mark()
	delete(w.truth, name{event.DefaultTenant, "gone"})
	finish(w, true)
	w.read(w.runner(), Request{})
	w.want(t, "k", "+-")
	got := w.answers(defaults("k", "gone"))
	if m := got[name{event.DefaultTenant, "k"}]; len(m) != 3 || m[2].Sure {
		t.Errorf("k: %+v", m)
	}
	if m := got[name{event.DefaultTenant, "gone"}]; len(m) != 3 || !m[2].Sure || m[2].Present {
		t.Errorf("gone: %+v", m)
	}
}

func TestDryRun(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		w, _ := doubtful(t)
		finish(w, quiet)
		begun := w.feed.Standing().Offset
		if quiet {
			defer func() {
				if w.feed.Standing().Offset != begun {
					t.Error("it wrote a record")
				}
			}()
		}
		report := w.read(w.runner(), Request{DryRun: true, Sample: 2})
		if report.Corrections != 4 || len(report.First) != 2 || report.Offset != 0 || w.at() != 0 {
			t.Errorf("quiet=%v: %+v", quiet, report)
		}
		w.want(t, "cpu", "??")
	}
}

func TestOneAtATime(t *testing.T) {
	w, _ := doubtful(t)
	finish(w, true)
	r := w.runner()
	w.hook = func(at string) {
		if at == "keys" {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			if _, err := r.Read(ctx, Request{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second one began: %v", err)
			}
		}
	}
	w.read(r, Request{})
}

// Read tries again where it was overtaken, and not where the master does not answer.
func TestReadTriesAgain(t *testing.T) {
	w, _ := doubtful(t)
	finish(w, true)
	marks := 0
	w.hook = func(at string) {
		if at == "keys" && marks < 2 {
			marks++
			w.mark()
		}
	}
	begun := w.now
	if _, err := w.runner().Read(context.Background(), Request{}); err != nil || marks != 2 || w.now.Sub(begun) < 2*time.Second {
		t.Errorf("%v after %d marks and %v", err, marks, w.now.Sub(begun))
	}
	w.off = true
	var admin *AdminError
	if _, err := w.runner().Read(context.Background(), Request{}); !errors.As(err, &admin) {
		t.Error(err)
	}
}

// Without traffic the end is proven by polls, a loss on the wire included that lies before the reading; but not by polls alone where
// something was sent after the reading began and never arrived.
func TestSettled(t *testing.T) {
	w, names := doubtful(t)
	w.do(removed("both", cpu))
	w.take()
	w.send(true)
	w.count()
	finish(w, true)
	w.read(w.runner(), Request{})
	w.want(t, "both", "-+")
	w.hook = func(at string) {
		if at == "keys/3" {
			w.do(removed("both", disk))
			w.take()
			w.send(true)
		}
	}
	w.broken(w.runner(), Request{}, ErrNoEnd)
	w.settleDown()
	w.check("behind the loss", names)
}

func TestSettledRule(t *testing.T) {
	for _, c := range []struct {
		name        string
		base, now   uint64
		first, p, q uint64
		apart       time.Duration
		want        bool
	}{
		{"nothing sent", 5, 5, 5, 5, 5, time.Second, true},
		{"too close", 5, 5, 5, 5, 5, time.Second - 1, false},
		{"counters move", 5, 5, 5, 5, 6, time.Second, false},
		{"a loss before the reading", 5, 5, 9, 9, 9, time.Second, true},
		{"a loss in the reading", 5, 5, 8, 9, 9, time.Second, false},
		{"messages in the reading", 5, 7, 5, 7, 7, time.Second, true},
		{"messages in the reading, and a loss", 5, 7, 5, 8, 8, time.Second, false},
		{"counters behind", 5, 7, 5, 6, 6, time.Second, false},
		{"another connection's number", 7, 7, 5, 7, 7, time.Second, false},
	} {
		w := newWorld(t)
		w.live()
		base, now := w.feed.Standing(), w.feed.Standing()
		base.Seq, now.Seq = c.base, c.now
		poll := func(n uint64, sent time.Time) *mooncake.Status {
			return &mooncake.Status{Enabled: true, PublishedBatches: n, Timing: mooncake.Timing{Sent: sent}}
		}
		if got := settled(&base, &now, poll(c.first, worldStart), poll(c.p, worldStart), poll(c.q, worldStart.Add(c.apart)), time.Second); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
