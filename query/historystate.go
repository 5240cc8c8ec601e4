package query

import "github.com/kvjournal/kvjournal/index"

// historyState is what is known of an object at a place of its past.
type historyState struct {
	p       *historyOf
	media   []index.Medium // cpu and disk first
	clears  scopeClears
	mark    index.Mark
	hasMark bool
	// readings are those behind the mark, says whether each speaks of the object.
	readings scopeReadings
	says     uint32
	spoken   spoken
	decision decision // of one medium
	room     [2]index.Medium
}

// stateAt is what is known of the object at a position; the mark is the newest at or before the record at offset.
func (p *historyOf) stateAt(at index.Position, offset uint64) (*historyState, error) {
	st := &historyState{p: p}
	var err error
	if st.media, err = p.view.Media(st.room[:0], &p.object, at); err != nil {
		return nil, err
	}
	if st.clears, err = readClears(p.view, &p.object, at); err != nil {
		return nil, err
	}
	if st.mark, st.hasMark, err = p.view.Mark(p.source.ID, offset); err != nil {
		return nil, err
	}
	m := moment{source: p.source.ID, at: at, mark: st.mark, hasMark: st.hasMark}
	if st.readings, err = newScopeReadings(p.view, p.scope(), &m, &st.clears); err != nil {
		return nil, err
	}
	for i := range st.readings.list {
		c, _, err := p.view.Cleared(&p.object, st.readings.list[i].Position)
		if err != nil {
			return nil, err
		}
		st.readings.cleared[i] = c.Position
		says, err := p.view.Says(&st.readings.list[i], &p.object)
		if err != nil {
			return nil, err
		}
		if says {
			st.says |= 1 << i
		}
	}
	return st, nil
}

// apply moves the state behind an historyTouch.
func (st *historyState) apply(o *historyTouch) (err error) {
	for i := range o.silent {
		st.read(&o.silent[i], false)
	}
	switch {
	case o.mark != nil:
		st.mark, st.hasMark = *o.mark, true
		n := 0
		for n < len(st.readings.list) && st.mark.End.Before(st.readings.list[n].Position) {
			n++
		}
		st.readings.list, st.readings.cleared = st.readings.list[:n], st.readings.cleared[:n]
	case o.clear != nil:
		st.clears.newest, st.clears.hasNewest = o.clear.Evidence, true
		if o.clear.Proof {
			st.clears.proof, st.clears.hasProof = o.clear.Evidence, true
		}
	case o.read():
		if o.reading != nil {
			st.read(o.reading, o.says)
		}
		// All that the reading found otherwise counts at once.
		st.media, err = st.p.view.Media(st.media[:0], &st.p.object, o.at)
	default:
		for i := range st.media {
			if m := &st.media[i]; m.Name == o.own.Medium {
				m.Has, m.Newest = true, o.own.Evidence
				return nil
			}
		}
		st.media = append(st.media, index.Medium{Name: o.own.Medium, Has: true, Newest: o.own.Evidence})
	}
	return err
}

// read takes a reading.
func (st *historyState) read(r *index.Reading, says bool) {
	if st.hasMark && !st.mark.End.Before(r.Position) {
		return
	}
	// Decisions point into the lists: they are made anew.
	cleared := index.Position{}
	if st.clears.hasNewest {
		cleared = st.clears.newest.Position
	}
	st.readings.list = append([]index.Reading{*r}, st.readings.list[:min(len(st.readings.list), maxReadings-1)]...)
	st.readings.cleared = append([]index.Position{cleared}, st.readings.cleared[:min(len(st.readings.cleared), maxReadings-1)]...)
	st.says = st.says<<1 | uint32(b2i(says))
}

// judge decides for each medium at a moment of the state, by its place in the list.
func (st *historyState) judge(m *moment, cut bool, f func(medium int, d *decision)) error {
	s := &st.spoken
	s.about(&st.readings, st.p.object, m.at)
	s.asked, s.says = 1<<maxReadings-1, st.says
	for i := range st.media {
		if st.media[i].Has {
			cut = cut || m.cuts(&st.media[i].Newest)
		}
	}
	for i := range st.media {
		var newest *index.Evidence
		if st.media[i].Has {
			newest = &st.media[i].Newest
		}
		var err error
		if st.decision, err = judgeMedium(m, newest, &st.clears, cut, s); err != nil {
			return err
		}
		f(i, &st.decision)
	}
	return nil
}
