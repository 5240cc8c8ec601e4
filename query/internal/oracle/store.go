package oracle

import (
	"cmp"
	"slices"

	"github.com/kvjournal/kvjournal/journal/event"
)

// effect is what a change does to one placement.
type effect struct {
	at   placement
	held bool
}

// note is an event before it is numbered.
type note struct {
	kind   event.Type
	at     placement // of a clear only the scope counts
	change int       // index in store.history
}

// store is the true state of one process life and how it came about.
type store struct {
	held    map[placement]bool
	history [][]effect // one entry a change
	sink    func(note) // where the events go
	keyless bool       // events of objects are not sent

	told      Truth // history[:toldUntil]
	toldUntil int
}

// change applies effects under one lock and sends their events, in order.
func (s *store) change(effects ...effect) {
	n := len(s.history)
	s.history = append(s.history, effects)
	for _, e := range effects {
		kind := event.Removed
		if e.held {
			kind = event.Stored
			s.held[e.at] = true
		} else {
			delete(s.held, e.at)
		}
		if !s.keyless {
			s.sink(note{kind, e.at, n})
		}
	}
}

func (s *store) put(p placement) { s.change(effect{p, true}) }

// upsert replaces the object: two events of one change where it is held.
func (s *store) upsert(p placement) {
	if s.held[p] {
		s.change(effect{p, false}, effect{p, true})
		return
	}
	s.put(p)
}

// move is an offload or a promotion: stored on one medium, removed from the other.
func (s *store) move(obj Object, from, to string) {
	s.change(effect{placement{obj, to}, true}, effect{placement{obj, from}, false})
}

func (s *store) removeObject(obj Object) {
	var effects []effect
	for _, p := range s.placements() {
		if p.object == obj {
			effects = append(effects, effect{p, false})
		}
	}
	if len(effects) > 0 {
		s.change(effects...)
	}
}

// removeAll empties a scope object by object and then sends the cleared. meanwhile is called between any two of them. Objects
// for which skip says so stay, and then nothing is sent.
func (s *store) removeAll(sc scope, meanwhile func(), skip func(Object) bool) {
	skipped := false
	for _, p := range s.placements() {
		switch {
		case p.object.scope() != sc:
		case skip(p.object):
			skipped = true
		default:
			s.removeObject(p.object)
			meanwhile()
		}
	}
	if skipped {
		return
	}
	s.history = append(s.history, nil)
	s.sink(note{event.Cleared, placement{object: Object{Backend: sc.backend, Tenant: sc.tenant}}, len(s.history) - 1})
}

// placements lists what is held, in an order that does not depend on the map.
func (s *store) placements() []placement {
	all := make([]placement, 0, len(s.held))
	for p := range s.held {
		all = append(all, p)
	}
	slices.SortFunc(all, comparePlacements)
	return all
}

// tell moves the truth up to, not including, the change at index until.
func (s *store) tell(until int) Truth {
	var effects []effect
	for _, c := range s.history[s.toldUntil:until] {
		effects = append(effects, c...)
	}
	s.toldUntil = until
	if len(effects) > 0 {
		s.told = s.told.with(effects)
	}
	return s.told
}

func comparePlacements(a, b placement) int {
	return cmp.Or(compareObjects(a.object, b.object), cmp.Compare(a.medium, b.medium))
}
