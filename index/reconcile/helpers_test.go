package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

const worldPause = 2 * time.Second

// finish makes time pass as a reading waits for its end: with traffic, or without; what is in the queue and on the wire moves.
func finish(w *world, quiet bool) {
	w.pass = func(d time.Duration) {
		w.now = w.now.Add(min(d, 500*time.Millisecond))
		w.connect()
		if !quiet {
			w.do(mooncaketest.Change{Type: event.Stored, Tenant: "other", Key: "beat", Medium: cpu})
		}
		w.publish()
	}
}

// settleDown lets everything be told, and shows every loss: behind it nothing is under way.
func (w *world) settleDown() {
	w.t.Helper()
	w.connect()
	w.arrive()
	for range 2 {
		w.do(mooncaketest.Change{Type: event.Stored, Tenant: "other", Key: "beat", Medium: cpu})
		w.publish()
	}
}

// at is where the source's last answer stands.
func (w *world) at() uint64 {
	w.t.Helper()
	v, err := w.x.View()
	if err != nil {
		w.t.Fatal(err)
	}
	defer v.Close()
	return v.Source(w.source).Readings
}

// read makes one reading that must hold.
func (w *world) read(r *Runner, q Request) *Report {
	w.t.Helper()
	report, err := r.once(context.Background(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// broken makes one reading that must be discarded because of want.
func (w *world) broken(r *Runner, q Request, want error) {
	w.t.Helper()
	before := w.at()
	if _, err := r.once(context.Background(), q); !errors.Is(err, want) {
		w.t.Fatalf("got %v, want %v", err, want)
	}
	if w.at() != before {
		w.t.Fatal("it was written all the same")
	}
}

func defaults(keys ...string) (out []name) {
	for _, k := range keys {
		out = append(out, name{event.DefaultTenant, k})
	}
	return out
}

// want fails where the media of a key are not these: "+" confirmed present, "-" confirmed absent, "?" in doubt; cpu, then disk.
func (w *world) want(t *testing.T, key, media string) {
	t.Helper()
	n := name{event.DefaultTenant, key}
	got := ""
	for _, m := range w.answers([]name{n})[n][:2] {
		switch {
		case !m.Sure:
			got += "?"
		case m.Present:
			got += "+"
		default:
			got += "-"
		}
	}
	if got != media {
		t.Errorf("%q is %s, want %s", key, got, media)
	}
}
