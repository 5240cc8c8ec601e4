package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// ending says how a lifetime ended.
type ending uint8

const (
	// stillOpen: it did not.
	stillOpen ending = iota
	// endedCopyLeft: `removed` while another medium held the object, as when memory evicts what is on disk.
	endedCopyLeft
	// endedRemoved: `removed`, and no other medium held the object.
	endedRemoved
	// endedUpsert: the object was replaced.
	endedUpsert
	// endedCleared: the whole scope was cleared.
	endedCleared
	endings
	// endedNow: `removed`, and what follows will tell which of the above.
	endedNow
)

// lifetime is a stay of an object on a medium.
type lifetime struct {
	medium string
	// group is the group_id of the event that it began with, nil: none.
	group []byte
	begin index.Evidence
	// end is the `removed`, or the scope's `cleared`, that ended it, unless how is stillOpen.
	end index.Evidence
	how ending
	// next is the `stored` that the next one on this medium begins with, nil: none.
	next *index.Evidence
}

// tracker finds the lifetimes of one object from its events in the order of their positions. It is pure: what else it needs comes
// from clears and marked. The definitions:
//
//   - A lifetime on a medium begins with a `stored` while the object is not there. A repeated `stored` begins nothing.
//   - It ends with a `removed` of the medium, or with a `cleared` of the scope.
//   - Event b directly follows a where both are of the object, with no event of it, no clear and no mark between; and b has the
//     event_id behind a's, or neither has one and they are neighbours in one batch. What one reading of the master found is one change
//     too.
//   - `removed` events of which each directly follows the one before, on any media, are one change: a removal takes all media of an
//     object at once. If a `stored` on one of their media directly follows the last, all of them are an upsert (an upsert of
//     an object in memory and on disk is seen as removed cpu, removed disk, stored cpu). Otherwise it depends on whether
//     another medium holds the object behind the last of them: copy left, or removed.
//
// An eviction and a new put of the same object that follow one another without any event between look like an upsert.
type tracker struct {
	// clear returns the first `cleared` of the scope behind a position.
	clear func(index.Position) (index.Evidence, bool)
	// marked reports whether a mark lies between two positions.
	marked func(a, b index.Position) bool
	emit   func(*lifetime)

	media  []stay
	byName map[string]int // of media, once there are many
	open   int            // how many of media are
	run    []int          // media of the `removed` events that follow one another up to last
	last   index.Evidence // the newest event; its offset is 0 before the first
}

// stay is one medium of the object: its newest lifetime, which may be open, or ended, or none yet.
type stay struct {
	lifetime
	begun, open, inRun bool
}

// reset begins another object.
func (t *tracker) reset() {
	t.media, t.run, t.open, t.last = t.media[:0], t.run[:0], 0, index.Evidence{}
	clear(t.byName)
}

// event takes the next event.
func (t *tracker) event(medium string, e *index.Evidence, group []byte) {
	cleared, isCleared := t.clear(t.last.Position)
	isCleared = isCleared && cleared.Position.Before(e.Position)
	at := t.medium(medium)
	if len(t.run) > 0 {
		follows := !isCleared && follows(&t.last, e) && !t.marked(t.last.Position, e.Position)
		switch {
		case follows && (!e.Stored || e.Reading): // the change goes on
		case follows && t.media[at].inRun:
			t.settle(endedUpsert)
		default:
			t.settle(t.removal())
		}
	}
	if isCleared {
		t.cleared(&cleared)
	}
	switch m := &t.media[at]; {
	case e.Stored && !m.open:
		if m.begun {
			m.next = e
			t.emit(&m.lifetime)
		}
		m.lifetime = lifetime{medium: m.medium, group: group, begin: *e}
		m.begun, m.open = true, true
		t.open++
	case !e.Stored:
		if m.open {
			m.end, m.how, m.open = *e, endedNow, false
			t.open--
		}
		if !m.inRun {
			m.inRun = true
			t.run = append(t.run, at)
		}
	}
	t.last = *e
}

// finish ends the object where its events end.
func (t *tracker) finish() {
	t.settle(t.removal())
	if t.open > 0 {
		if c, ok := t.clear(t.last.Position); ok {
			t.cleared(&c)
		}
	}
	for i := range t.media {
		if t.media[i].begun {
			t.emit(&t.media[i].lifetime)
		}
	}
}

// removal is how the lifetimes of a run end that is no upsert.
func (t *tracker) removal() ending {
	if t.open > 0 {
		return endedCopyLeft
	}
	return endedRemoved
}

// settle ends the run.
func (t *tracker) settle(how ending) {
	for _, i := range t.run {
		m := &t.media[i]
		m.inRun = false
		if m.how == endedNow {
			m.how = how
		}
	}
	t.run = t.run[:0]
}

func (t *tracker) cleared(c *index.Evidence) {
	for i := 0; i < len(t.media) && t.open > 0; i++ {
		if m := &t.media[i]; m.open {
			m.end, m.how, m.open = *c, endedCleared, false
			t.open--
		}
	}
}

// fewMedia is how many media are looked through one by one.
const fewMedia = 8

// medium returns the place of a medium in media.
func (t *tracker) medium(name string) int {
	if len(t.media) <= fewMedia {
		for i := range t.media {
			if t.media[i].medium == name {
				return i
			}
		}
	} else if i, ok := t.byName[name]; ok {
		return i
	}
	t.media = append(t.media, stay{lifetime: lifetime{medium: name}})
	n := len(t.media) - 1
	if n >= fewMedia {
		if t.byName == nil {
			t.byName = map[string]int{}
		}
		if n == fewMedia {
			for i := range t.media {
				t.byName[t.media[i].medium] = i
			}
		}
		t.byName[name] = n
	}
	return n
}

// follows reports whether the numbers of two events of an object, with no other of it between, say that nothing at all is between.
func follows(a, b *index.Evidence) bool {
	switch {
	case a.Reading || b.Reading:
		return a.Reading && b.Reading && a.Position == b.Position
	case a.HasID && b.HasID:
		return b.ID == a.ID+1 && b.ID != 0
	case a.HasID || b.HasID:
		return false
	}
	return a.Position.Offset == b.Position.Offset && b.Position.Event == a.Position.Event+1
}
