package oracle

import (
	"cmp"
	"slices"
)

// AtOffset answers for the position behind the record at offset. Beyond the last record it answers for the last one.
func (o *Oracle) AtOffset(offset uint64, obj Object, medium string) State {
	offset = min(offset, uint64(len(o.facts)-1))
	at := o.facts[offset]
	p := placement{obj, medium}
	present, _ := o.look(offset, p)
	cut := at.cut != nil && *at.cut == obj
	if cut { // a correction shows that no more came of the change
		own, _ := newest(o.events[placement{obj, at.cutOn}], offset)
		cut = !own.read
	}
	return State{Present: present, Confirmed: !cut && !at.unproven && o.sure(offset, p)}
}

// look finds the state behind offset and the offset of its evidence, 0 for none.
func (o *Oracle) look(offset uint64, p placement) (present bool, evidence uint64) {
	own, found := newest(o.events[p], offset)
	present = found && own.stored
	if found {
		evidence = own.offset
	}
	for _, c := range o.clears[p.object.scope()] {
		switch {
		case c.offset > offset || found && c.before(own):
		case found && own.stored:
			return false, 0 // it may have survived (R7)
		case c.proof:
			evidence = max(evidence, c.offset)
		}
	}
	return present, evidence
}

// newest returns the last of list, which is in order, at or before offset.
func newest(list []happening, offset uint64) (happening, bool) {
	i, _ := slices.BinarySearchFunc(list, offset+1, func(h happening, o uint64) int { return cmp.Compare(h.offset, o) })
	if i == 0 {
		return happening{}, false
	}
	return list[i-1], true
}

// AtTime answers for publisher time ms.
func (o *Oracle) AtTime(ms int64, obj Object, medium string) State {
	offset, proven := o.moment(ms)
	s := o.AtOffset(o.before(offset, ms), obj, medium)
	s.Confirmed = s.Confirmed && proven
	if s.Confirmed && o.repairs.Undated {
		s.Confirmed = o.sameSinceDated(offset, s, obj, medium)
	}
	return s
}

// sameSinceDated says whether the answer was the same all the way back to the last message with a time of its own.
func (o *Oracle) sameSinceDated(offset uint64, s State, obj Object, medium string) bool {
	for i := len(o.arrivals) - 1; i >= 0; i-- {
		switch a := o.arrivals[i]; {
		case a.offset > offset:
		case o.AtOffset(a.offset, obj, medium) != s:
			return false
		case a.timed:
			return true
		}
	}
	return false // nothing was announced before the first message
}

// moment returns the position of a publisher time (R8) and whether it is proven.
func (o *Oracle) moment(ms int64) (offset uint64, proven bool) {
	exceeds := slices.IndexFunc(o.arrivals, func(a arrival) bool { return a.timed && a.time > ms })
	if exceeds < 0 {
		return o.facts[len(o.facts)-1].message, false
	}
	for i := len(o.arrivals) - 1; i > exceeds; i-- {
		if o.arrivals[i].dated && o.arrivals[i].time <= ms {
			return o.arrivals[i].offset, false // passed twice
		}
	}
	if exceeds == 0 {
		return 0, false
	}
	return o.arrivals[exceeds-1].offset, o.arrivals[exceeds].follows
}

// before is the last record before the message behind a publisher time, of which offset is the position: what the journal says of its own
// between the two counts. Where that message is not known, it is offset.
func (o *Oracle) before(offset uint64, ms int64) uint64 {
	i := slices.IndexFunc(o.arrivals, func(a arrival) bool { return a.timed && a.time > ms })
	if i < 0 || o.arrivals[i].offset < offset {
		return offset // the last of all, or passed twice
	}
	return o.arrivals[i].offset - 1
}

// Latest answers without a moment: behind the newest batch, mark or end of a reading, or, while a window of R5 is open, behind the last
// message, or end of a reading, before it.
func (o *Oracle) Latest(obj Object, medium string) State {
	return o.AtOffset(o.latest(), obj, medium)
}

func (o *Oracle) latest() uint64 {
	if o.window.open {
		rest := o.window.resting
		for _, r := range o.readings { // none ends while it is open
			rest = max(rest, r.Ended)
		}
		return rest
	}
	return uint64(len(o.facts) - 1)
}

// Objects returns every object that an event was about, in byte order.
func (o *Oracle) Objects() []Object {
	var all []Object
	for obj := range o.media {
		all = append(all, obj)
	}
	slices.SortFunc(all, compareObjects)
	return all
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Key, b.Key))
}

// Media returns cpu, disk and every other medium that obj was seen on, in order.
func (o *Oracle) Media(obj Object) []string {
	all := []string{"cpu", "disk"}
	for m := range o.media[obj] {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	slices.Sort(all)
	return all
}

// Times returns the interesting publisher times: that of each batch, and one ms to either side, ascending.
func (o *Oracle) Times() []int64 {
	var all []int64
	for _, a := range o.arrivals {
		if a.timed {
			all = append(all, a.time-1, a.time, a.time+1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
