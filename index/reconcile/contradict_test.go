package reconcile

import (
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// silent is a world in which all is confirmed, and then the master changes things without an event.
func silent(t *testing.T) (*world, *Runner) {
	w, _ := doubtful(t)
	finish(w, true)
	r := w.runner()
	w.read(r, Request{})
	w.silently(removed("cpu", cpu))  // gone
	w.silently(removed("both", cpu)) // its copy on disk stays
	w.silently(stored("went", disk)) // there again
	return w, r
}

func TestContradiction(t *testing.T) {
	w, r := silent(t)
	first := w.read(r, Request{Why: reading.Audit, Audit: true})
	if first.Contradict != 3 || first.Contradictions != 0 || first.Corrections != 0 {
		t.Errorf("%+v", first)
	}
	w.want(t, "cpu", "+-") // not yet
	w.want(t, "both", "++")
	w.want(t, "went", "--")
	// Too early.
	if early := w.read(r, Request{Why: reading.Audit, Audit: true}); early.Contradictions != 0 {
		t.Errorf("too early: %+v", early)
	}
	w.now = w.now.Add(5 * time.Second)
	second := w.read(r, Request{Why: reading.Audit, Audit: true})
	if second.Contradictions != 3 || second.Contradict != 0 {
		t.Errorf("%+v", second)
	}
	v, err := w.x.View()
	if err != nil {
		t.Fatal(err)
	}
	flagged, err := v.Flagged(w.source)
	v.Close()
	if err != nil || !flagged[1] {
		t.Errorf("the epoch is not flagged: %v, %v", flagged, err)
	}
	w.want(t, "cpu", "--")
	w.want(t, "both", "-?") // present is confirmed by a reading only, for its own moment (R11)
	w.want(t, "went", "-?")
	// In the flagged epoch a reading corrects what is present at once.
	w.silently(removed("disk", disk))
	w.read(r, Request{})
	w.want(t, "disk", "--")
}

// An ordinary reading finds what is not listed any more, or should not be.
func TestContradictionWithoutAudit(t *testing.T) {
	w, r := silent(t)
	report := w.read(r, Request{})
	if report.Contradict != 2 { // the lost copy in memory takes an audit
		t.Errorf("%+v", report)
	}
	w.now = w.now.Add(6 * time.Second)
	if report = w.read(r, Request{}); report.Contradictions != 2 {
		t.Errorf("%+v", report)
	}
}

// An event of the object, a loss, or a master that changes its mind: no contradiction.
func TestNoContradiction(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"an event between": func(w *world) {
			for _, c := range []string{"cpu", "both", "went"} {
				w.do(stored(c, disk), removed(c, disk))
			}
			w.publish()
			for _, c := range []string{"cpu", "both", "went"} {
				delete(w.truth, name{event.DefaultTenant, c})
			}
		},
		"a loss between": func(w *world) { w.mark() },
		"it is back again": func(w *world) {
			w.silently(stored("cpu", cpu))
			w.silently(stored("both", cpu))
			w.silently(removed("went", disk))
		},
		"a reconnect": func(w *world) { w.disconnect(0); w.connect(); w.arrive(); w.traffic() },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := silent(t)
			w.read(r, Request{Audit: true})
			meanwhile(w)
			w.now = w.now.Add(10 * time.Second)
			if report := w.read(r, Request{Audit: true}); report.Contradictions != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
	t.Run("an event in the second reading", func(t *testing.T) {
		w, r := silent(t)
		w.read(r, Request{Audit: true})
		w.now = w.now.Add(10 * time.Second)
		w.hook = func(at string) {
			if at == "keys" {
				w.do(removed("cpu", cpu), removed("both", cpu), stored("went", disk)) // late, but told
			}
		}
		if report := w.read(r, Request{Audit: true}); report.Contradictions != 0 {
			t.Errorf("%+v", report)
		}
	})
}
