package index

import (
	"bytes"
	"slices"
)

// objectPast is all events of one object that has few, as they are in a state. It takes one seek, and a step for each. A History that reads pages opens an
// iterator and seeks several times for each medium. It is kept in the reader for what is asked next about the same object: which event was
// the first, which lie between two positions, what was so at a position.
//
// It never answers with what was: a reader belongs to one state, whose rows never change, and key says whose events they are.
type objectPast struct {
	key  []byte // the object's in the history, up to the medium; empty: nothing was read
	many bool   // there are more than pastRows, and none is here
	rows []Event
	// forward are places in rows, the oldest first, and back the newest first, made when they are asked for. Corrections of one reading share a
	// position: they stay in the order of the media, which is that of rows.
	forward, back []uint16
	users         int // Histories that are not closed: while there are any, nothing here is written over
}

// pastRows is how many events of an object are read at once at most, 136 B each in memory.
const pastRows = 128

// Events is History for a view that one goroutine uses, and for an object that more is asked about: if it has few events they are read once.
func (v *View) Events(o *Object, from, to Position, back bool) (*History, error) {
	p, err := v.pastOf(o)
	if err != nil {
		return nil, err
	}
	if p.many {
		return v.History(o, from, to, back)
	}
	p.users++
	return &History{past: p, left: p.between(from, to, back)}, nil
}

// between are the places of the events behind from, up to to.
func (p *objectPast) between(from, to Position, back bool) []uint16 {
	low := p.upTo(from)
	high := max(low, p.upTo(to))
	if !back {
		return p.forward[low:high]
	}
	if len(p.back) == 0 {
		p.back = append(p.back, p.forward...)
		slices.Sort(p.back) // as they were read
		slices.SortStableFunc(p.back, func(i, j uint16) int { return p.rows[j].Position.Compare(p.rows[i].Position) })
	}
	return p.back[len(p.back)-high : len(p.back)-low]
}

// upTo is how many events lie at or before a position.
func (p *objectPast) upTo(at Position) int {
	n := len(p.forward)
	for n > 0 && at.Before(p.rows[p.forward[n-1]].Position) {
		n--
	}
	return n
}

// next is History.Next.
func (p *objectPast) next(left *[]uint16) *Event {
	if len(*left) == 0 {
		return nil
	}
	e := &p.rows[(*left)[0]]
	*left = (*left)[1:]
	return e
}

// whole appends all events as hot keeps them; ok is false where there are too many.
func (p *objectPast) whole(dst []byte) (_ []byte, ok bool) {
	if p.many || len(p.rows) > wholeRows {
		return dst, false
	}
	for i := range p.rows {
		e := &p.rows[i]
		dst = appendHot(appendMedium(dst, []byte(e.Medium)), &e.Evidence)
	}
	return dst, len(dst) <= wholeBytes
}

// media is View.newestRows.
func (p *objectPast) media(dst []Medium, at Position, present bool) (_ []Medium, all bool) {
	first, last := len(dst)-2, ""
	all = present
	for i := range p.rows { // medium by medium, the newest first
		e := &p.rows[i]
		if at.Before(e.Position) {
			all = false
			continue
		}
		if e.Medium == last {
			continue
		}
		last = e.Medium
		dst = putNamed(dst, first, last, e.Evidence)
	}
	return dst, all
}

// pastOf reads an object's events, or finds them read.
func (v *View) pastOf(o *Object) (*objectPast, error) {
	v.key = appendObject(appendScope(append(v.key[:0], keyHistory), o.Source, o.Backend, o.Tenant), o.Key)
	p := v.reader.past
	if p.isOf(v.key) {
		return p, nil
	}
	if p == nil || p.users > 0 {
		p = &objectPast{}
		v.reader.past = p
	}
	p.key = p.key[:0] // until all is read
	if err := p.read(v, o.Key); err != nil {
		return nil, err
	}
	p.key = append(p.key, v.key...)
	return p, nil
}

// isOf reports whether the object with that key in the history was read.
func (p *objectPast) isOf(key []byte) bool { return p != nil && bytes.Equal(p.key, key) }

// read reads the events of the object with that key, whose key in the history is v.key.
func (p *objectPast) read(v *View, key []byte) error {
	it, err := v.historyRows()
	if err != nil {
		return err
	}
	p.many, p.rows, p.forward, p.back = false, p.rows[:0], p.forward[:0], p.back[:0]
	var groups []byte // of this object alone: those who got one may keep it
	begin := 0        // of the medium's rows
	for ok := it.SeekPrefixGE(v.key); ok; ok = it.Next() {
		medium, at, err := cutEvent(it.Key()[len(v.key):])
		if err != nil {
			return err
		}
		if len(p.rows) == pastRows {
			clear(p.rows)
			p.many, p.rows = true, p.rows[:0]
			return nil
		}
		if len(p.rows) == 0 || !bytes.Equal(medium, v.medium) {
			v.medium = append(v.medium[:0], medium...)
			begin = len(p.rows)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		evidence, group := cutEvidence(value, at)
		if group.Bad || !evidence.HasGroup && len(group.B) != 0 {
			return errEvidence
		}
		e := Event{Evidence: evidence}
		if begin == len(p.rows) {
			e.Medium, _, _ = cutMedium(medium)
		} else {
			e.Medium = p.rows[begin].Medium
		}
		if e.HasGroup {
			n := len(groups)
			if groups, err = appendGroupOf(groups, group, key); err != nil {
				return err
			}
			e.Group = groups[n:len(groups):len(groups)]
		}
		p.rows = append(p.rows, e)
	}
	if err := it.Error(); err != nil {
		return err
	}
	p.order()
	return nil
}

// order makes forward.
func (p *objectPast) order() {
	oneMedium := true
	for i := range p.rows {
		p.forward = append(p.forward, uint16(i))
		oneMedium = oneMedium && p.rows[i].Medium == p.rows[0].Medium
	}
	if oneMedium {
		slices.Reverse(p.forward)
		return
	}
	slices.SortStableFunc(p.forward, func(i, j uint16) int { return p.rows[i].Position.Compare(p.rows[j].Position) })
}
