package oracle

import (
	"maps"
	"slices"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// Truth is what the store held once everything announced up to some moment had happened. It does not change.
type Truth struct{ held map[placement]bool }

// Present says whether obj was readable on medium.
func (t Truth) Present(obj Object, medium string) bool { return t.held[placement{obj, medium}] }

func (t Truth) with(effects []effect) Truth {
	held := maps.Clone(t.held)
	if held == nil {
		held = map[placement]bool{}
	}
	for _, e := range effects {
		if e.held {
			held[e.at] = true
		} else {
			delete(held, e.at)
		}
	}
	return Truth{held}
}

// Stream is what a recorder heard of one source, and what was true.
type Stream struct {
	Seed    uint64
	Records []capture.Record
	Truth   []Truth // Truth[i] at the position behind Records[i], which is offset i+1

	Objects []Object // everything the store ever thought of holding, and some that it never held
	Media   []string

	announced []announcement
}

// announcement is a batch that was sent, heard or not.
type announcement struct {
	dated bool
	time  int64 // as R8 reads it
	clock int64 // the publisher's clock, whatever the batch says
	truth Truth // behind it
}

// TruthAt returns the truth at publisher time ms, as R8 reads times: a batch whose time is too far ahead was sent at its
// predecessor's. ok is false where the truth is not well defined: the clock passed ms twice, or the publisher might still
// have sent a batch with that time.
func (s *Stream) TruthAt(ms int64) (truth Truth, ok bool) {
	return s.truthAt(ms, func(a announcement) (int64, bool) { return a.time, a.dated })
}

// TruthAtClock is TruthAt where each batch was sent when it was really sent. It differs between a batch with a time too far
// ahead and its predecessor.
func (s *Stream) TruthAtClock(ms int64) (truth Truth, ok bool) {
	return s.truthAt(ms, func(a announcement) (int64, bool) { return a.clock, true })
}

func (s *Stream) truthAt(ms int64, time func(announcement) (ms int64, dated bool)) (Truth, bool) {
	exceeds := slices.IndexFunc(s.announced, func(a announcement) bool {
		t, dated := time(a)
		return dated && t > ms
	})
	if exceeds < 0 {
		return Truth{}, false
	}
	for _, a := range s.announced[exceeds:] {
		if t, dated := time(a); dated && t <= ms {
			return Truth{}, false
		}
	}
	if exceeds == 0 {
		return Truth{}, true
	}
	return s.announced[exceeds-1].truth, true
}
