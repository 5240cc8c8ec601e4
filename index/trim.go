package index

import (
	"bytes"
)

// objectTrim chooses the rows of one object that stay: they come medium by medium, the newest first, and are held until the object ends.
type objectTrim struct {
	prefix []byte // of its keys, up to the medium
	rows   []trimRow
	arena  []byte // of rows
	medium mediumTrim
	begun  bool // there is a medium
	// needed: something keeps the object, whatever else is known of it.
	needed bool
	// spilled: rows were added already, because there are so many.
	spilled bool
}

// trimRow is a row that stays for some reason.
type trimRow struct {
	key, value, end int // in arena: its key is [key:value], its value [value:end]
	position        Position
	hasGroup        bool
	why             trimWhy
	closes          int // of a row that stays for because only: the row that it closes
}

type trimWhy uint8

const (
	becauseBehind  trimWhy = 1 << iota // the cut
	becauseNewest                      // of its medium
	becauseBegin                       // of the stay that the newest belongs to
	becauseGroup                       // the newest with a group, of its medium
	becauseTouched                     // it lies in a reading's (h, e]
	becauseCloses                      // it is the first `removed` behind a row that stays
)

// mediumTrim is one medium of the object.
type mediumTrim struct {
	key     []byte // its part of the keys
	seen    int    // rows up to the cut
	grouped bool
	touched uint32 // readings, by their places in the list
	// inStay: the row visited last belongs to the stay that the newest does; oldest is that row.
	inStay bool
	oldest heldRow
	// removed is the `removed` visited last, where any is.
	removed    heldRow
	hasRemoved bool
}

// heldRow is a row that may have to stay: where it is in rows, -1: not there.
type heldRow struct {
	at         int
	key, value []byte
	position   Position
	hasGroup   bool
}

func (h *heldRow) hold(at int, key, value []byte, e *Evidence) {
	h.at, h.position, h.hasGroup = at, e.Position, e.HasGroup
	h.key, h.value = append(h.key[:0], key...), append(h.value[:0], value...)
}

// trimBytes is how much of one object is held: one with more, as of many media, stays as a whole.
const trimBytes = 1 << 20

// history takes the next row of events.
func (t *trimmer) history(key, value []byte) error {
	o := &t.object
	n := split(key)
	if !bytes.Equal(o.prefix, key[:n]) {
		if err := t.objectEnds(); err != nil {
			return err
		}
		if err := t.enter(key[1:], scopeLength(key)-1); err != nil {
			return err
		}
		o.prefix = append(o.prefix[:0], key[:n]...)
	}
	medium, p, err := cutEvent(key[n:])
	if err != nil {
		return err
	}
	if p.Offset > t.c.Offset {
		return nil
	}
	if !o.begun || !bytes.Equal(o.medium.key, medium) {
		o.mediumEnds()
		m := &o.medium
		*m = mediumTrim{key: append(m.key[:0], medium...), oldest: heldRow{key: m.oldest.key, value: m.oldest.value}, removed: heldRow{key: m.removed.key, value: m.removed.value}}
		o.begun = true
	}
	e, rest := cutEvidence(value, p)
	if rest.Bad {
		return errEvidence
	}
	o.visit(&t.scope, key, value, &e, t.forget)
	if len(o.arena) > trimBytes {
		o.spilled = true
		return t.spill()
	}
	return nil
}

// visit takes a row of the current medium.
func (o *objectTrim) visit(s *scopeTrim, key, value []byte, e *Evidence, forget bool) {
	p, m := e.Position, &o.medium
	if s.cut.Before(p) {
		o.needed = true
		o.keep(key, value, e, becauseBehind)
		return
	}
	why := trimWhy(0)
	if m.seen++; m.seen == 1 {
		why |= becauseNewest
		m.inStay = e.Stored && s.clear.Before(p)
		other := m.key[0] != mediumCPU && m.key[0] != mediumDisk // an answer lists it
		o.needed = o.needed || e.Stored || !forget && (other || !p.Before(s.proof))
	} else if m.inStay && !(e.Stored && s.clear.Before(p)) {
		o.stayBegan()
	}
	if e.HasGroup && !m.grouped {
		m.grouped = true
		why |= becauseGroup
	}
	for i := range s.readings {
		if m.touched&(1<<i) == 0 && s.readings[i].TouchedBy(p) {
			m.touched |= 1 << i
			why |= becauseTouched
			o.needed = true
		}
	}
	at := -1
	if why != 0 {
		if r := &m.removed; e.Stored && m.hasRemoved && r.at < 0 {
			r.at = o.keep(r.key, r.value, &Evidence{Position: r.position, HasGroup: r.hasGroup}, becauseCloses)
			o.rows[r.at].closes = r.at + 1
		}
		at = o.keep(key, value, e, why)
	}
	if m.inStay {
		m.oldest.hold(at, key, value, e)
	}
	if !e.Stored {
		m.hasRemoved = true
		m.removed.hold(at, key, value, e)
	}
}

// stayBegan keeps the row with which the newest stay began.
func (o *objectTrim) stayBegan() {
	m := &o.medium
	m.inStay = false
	if r := &m.oldest; r.at >= 0 {
		o.rows[r.at].why |= becauseBegin
	} else {
		o.keep(r.key, r.value, &Evidence{Position: r.position, HasGroup: r.hasGroup}, becauseBegin)
	}
}

func (o *objectTrim) mediumEnds() {
	if o.begun && o.medium.inStay {
		o.stayBegan()
	}
	o.begun = false
}

// keep takes a row to those that stay and returns its place.
func (o *objectTrim) keep(key, value []byte, e *Evidence, why trimWhy) int {
	r := trimRow{key: len(o.arena), position: e.Position, hasGroup: e.HasGroup, why: why}
	o.arena = append(o.arena, key...)
	r.value = len(o.arena)
	o.arena = append(o.arena, value...)
	r.end = len(o.arena)
	o.rows = append(o.rows, r)
	return len(o.rows) - 1
}

// oneGroup takes back what stays for its group only where another row of the object has a newer one.
func (o *objectTrim) oneGroup() {
	newest := Position{}
	for i := range o.rows {
		if o.rows[i].hasGroup && newest.Before(o.rows[i].position) {
			newest = o.rows[i].position
		}
	}
	for i := range o.rows {
		if r := &o.rows[i]; r.why&becauseGroup != 0 && r.position.Before(newest) {
			r.why &^= becauseGroup
		}
	}
	for i := range o.rows {
		if r := &o.rows[i]; r.why == becauseCloses && o.rows[r.closes].why == 0 {
			r.why = 0
		}
	}
}

// objectEnds adds what stays of the current object.
func (t *trimmer) objectEnds() error {
	o := &t.object
	o.mediumEnds()
	var err error
	if o.needed || o.spilled {
		if !o.spilled {
			o.oneGroup()
		}
		err = t.spill()
	}
	o.prefix, o.rows, o.arena = o.prefix[:0], o.rows[:0], o.arena[:0]
	o.needed, o.spilled = false, false
	return err
}

// spill adds the rows that are held, and forgets them. What may still have to be added lies behind them.
func (t *trimmer) spill() error {
	o := &t.object
	for i := range o.rows {
		r := &o.rows[i]
		if r.why == 0 || r.key == r.value { // the latter stands for what is added
			continue
		}
		if err := t.add(o.arena[r.key:r.value], o.arena[r.value:r.end]); err != nil {
			return err
		}
	}
	if o.spilled {
		// Their places are gone: those held are known to be added, or not to be.
		for _, h := range []*heldRow{&o.medium.oldest, &o.medium.removed} {
			if h.at >= 0 {
				h.at = 0
			}
		}
		o.rows, o.arena = append(o.rows[:0], trimRow{}), o.arena[:0]
	}
	return nil
}
