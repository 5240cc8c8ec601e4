package oracle

import (
	"cmp"
	"slices"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// How lifetimes end.
const (
	Open     = "open"
	CopyLeft = "evicted_copy_left"
	Removed  = "removed"
	Upsert   = "upsert"
	Cleared  = "cleared"
)

// Life is a stay of an object on a medium, from the `stored` that made it present to what made it absent.
type Life struct {
	Object   Object
	Medium   string
	Group    string // of the `stored`
	HasGroup bool
	Begin    uint64 // offset
	End      uint64 // offset; 0: it is open
	How      string
	Took     Duration
	// Next is the offset of the `stored` that made it present again, 0: none.
	Next  uint64
	Again Duration // from End to Next
}

// Duration is the time between two events. Sure: no mark is between, and both lie where moments are proven. Timed: both
// have a publisher time, in order.
type Duration struct {
	Sure, Timed bool
	Ms          int64
}

// told is an event as Lifetimes sees it.
type told struct {
	offset  uint64
	index   int
	kind    event.Type
	at      placement
	hasID   bool
	id      uint64
	group   *string
	arrival arrival
	read    bool // it is no event but what a reading of the master found
}

// Lifetimes returns all lifetimes that began up to the record at offset to, which is one of records, all that were applied.
func (o *Oracle) Lifetimes(records []capture.Record, to uint64) []Life {
	var all []told
	for _, a := range o.arrivals {
		if a.offset > to {
			break
		}
		var b event.Batch
		b.Scan(records[a.offset-1].Frames)
		if b.Damage != event.None {
			continue
		}
		for i := range b.Events {
			e := &b.Events[i]
			t := told{offset: a.offset, index: i, kind: e.Type, at: placement{objectOf(e), string(e.Medium)}, hasID: e.HasID, id: e.ID, arrival: a}
			if e.Group != nil {
				g := string(e.Group)
				t.group = &g
			}
			all = append(all, t)
		}
	}
	all = o.insertFound(all, to)
	var lives []Life
	var begins, ends []*told      // of lives
	newest := map[placement]int{} // index in lives
	end := func(n int, e *told, how string) {
		l := &lives[n]
		l.End, l.How, l.Took, ends[n] = e.offset, how, o.duration(begins[n], e), e
		l.Took.Sure = l.Took.Sure && !o.flagged[o.facts[l.Begin].epoch]
	}
	for i := range all {
		e := &all[i]
		switch e.kind {
		case event.Cleared:
			for p, n := range newest {
				if lives[n].End == 0 && p.object.scope() == e.at.object.scope() {
					end(n, e, Cleared)
					lives[n].Took.Sure = false
				}
			}
		case event.Removed:
			if n, known := newest[e.at]; known && lives[n].End == 0 {
				end(n, e, o.ending(all, i))
			}
		}
		if e.kind != event.Stored {
			continue
		}
		n, known := newest[e.at]
		if known && lives[n].End == 0 {
			continue
		}
		if known {
			l := &lives[n]
			l.Next, l.Again = e.offset, o.duration(ends[n], e)
			l.Again.Sure = l.Again.Sure && l.How != Cleared
		}
		newest[e.at] = len(lives)
		l := Life{Object: e.at.object, Medium: e.at.medium, Begin: e.offset, How: Open}
		if e.group != nil {
			l.Group, l.HasGroup = *e.group, true
		}
		lives, begins, ends = append(lives, l), append(begins, e), append(ends, nil)
	}
	for i := range lives {
		if l := &lives[i]; l.End == 0 {
			l.Took.Sure = o.facts[to].doubt < l.Begin && !o.facts[l.Begin].unproven && !begins[i].read && !o.flagged[o.facts[l.Begin].epoch]
		}
	}
	return lives
}

func (o *Oracle) duration(a, b *told) Duration {
	return Duration{
		Sure:  !a.read && !b.read && o.facts[b.offset].doubt < a.offset && !o.facts[a.offset].unproven && !o.facts[b.offset].unproven,
		Timed: a.arrival.dated && b.arrival.dated && a.arrival.time <= b.arrival.time,
		Ms:    b.arrival.time - a.arrival.time,
	}
}

// ending says how the `removed` all[i] ended a life.
func (o *Oracle) ending(all []told, i int) string {
	object := all[i].at.object
	var own []int // the object's events and the clears of its scope
	at := 0
	for j := range all {
		if all[j].kind != event.Cleared && all[j].at.object == object || all[j].kind == event.Cleared && all[j].at.object.scope() == object.scope() {
			if j == i {
				at = len(own)
			}
			own = append(own, j)
		}
	}
	if all[i].read { // all that a reading found is one change
		for at+1 < len(own) && all[own[at+1]].read && all[own[at+1]].offset == all[i].offset {
			at++
		}
		return copyLeft(all, own[:at+1])
	}
	adjacent := func(n int) bool { // own[n+1] directly follows own[n]
		a, b := &all[own[n]], &all[own[n+1]]
		switch {
		case a.kind == event.Cleared || b.kind == event.Cleared || a.hasID != b.hasID || a.read || b.read:
			return false
		case a.offset != b.offset && o.facts[b.offset].doubt >= a.offset:
			return false
		case a.hasID:
			return b.id-a.id == 1
		}
		return a.offset == b.offset && b.index-a.index == 1
	}
	first, last := at, at
	for first > 0 && all[own[first-1]].kind == event.Removed && adjacent(first-1) {
		first--
	}
	for last+1 < len(own) && all[own[last+1]].kind == event.Removed && adjacent(last) {
		last++
	}
	if last+1 < len(own) && all[own[last+1]].kind == event.Stored && adjacent(last) {
		for _, j := range own[first : last+1] {
			if all[j].at.medium == all[own[last+1]].at.medium {
				return Upsert
			}
		}
	}
	return copyLeft(all, own[:last+1])
}

// copyLeft says whether some medium holds the object behind its events own.
func copyLeft(all []told, own []int) string {
	held := map[string]bool{}
	for _, j := range own {
		switch all[j].kind {
		case event.Stored:
			held[all[j].at.medium] = true
		case event.Removed:
			delete(held, all[j].at.medium)
		default:
			held = map[string]bool{}
		}
	}
	if len(held) > 0 {
		return CopyLeft
	}
	return Removed
}

// insertFound puts the corrections of readings that began up to the record at offset to among events.
func (o *Oracle) insertFound(all []told, to uint64) []told {
	for _, r := range o.readings {
		if r.Begun > to {
			continue
		}
		var last arrival
		for _, a := range o.arrivals {
			if a.offset < r.Begun {
				last = a
			}
		}
		for p, present := range r.Found {
			kind := event.Removed
			if present {
				kind = event.Stored
			}
			all = append(all, told{offset: r.Begun, kind: kind, at: placement{p.Object, p.Medium}, arrival: last, read: true})
		}
	}
	slices.SortStableFunc(all, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.index, b.index), cmp.Compare(a.at.medium, b.at.medium))
	})
	return all
}

// InDoubt says of an object behind a record whether it is present on any medium, as far as is known, and whether its presence on one of
// them is sure. Whether the moment itself is proven does not matter.
func (o *Oracle) InDoubt(offset uint64, obj Object) (present, standing bool) {
	for _, m := range o.Media(obj) {
		is, _ := o.look(offset, placement{obj, m})
		present = present || is
		standing = standing || is && o.sure(offset, placement{obj, m})
	}
	return present, standing
}
