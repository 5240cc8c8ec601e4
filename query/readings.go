package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// maxReadings is how many readings of a scope are looked at for an object that the newest ones say nothing about.
const maxReadings = 16

// scopeReadings are the readings of a scope (R9) that can confirm something at a moment: those newer than its newest mark, the newest
// first. Those before the moment by more than maxReadings are left out.
type scopeReadings struct {
	list []index.Reading
	// cleared are the newest clears of the scope before each; only where a newer one lies behind it, else and where there is none zero.
	cleared []index.Position
	view    *index.View
}

func newScopeReadings(v *index.View, s *index.Scope, m *moment, clears *scopeClears) (scopeReadings, error) {
	r := scopeReadings{view: v}
	from := index.Position{}
	if m.hasMark {
		from = m.mark.End
	}
	err := v.Readings(s, from, m.at, func(one *index.Reading) error {
		if r.list = append(r.list, *one); len(r.list) == maxReadings {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	for i := 0; i < len(r.list) && err == nil; i++ {
		var c index.Evidence
		if clears.hasNewest && r.list[i].Position.Before(clears.newest.Position) {
			o := index.Object{Source: s.Source, Backend: s.Backend, Tenant: s.Tenant}
			c, _, err = v.Cleared(&o, r.list[i].Position)
		}
		r.cleared = append(r.cleared, c.Position)
	}
	return r, err
}

// spoken tells which readings of a scope speak of one object. It asks for each at most once, and not before it must. It is used
// again for the next object: nothing is allocated.
type spoken struct {
	readings *scopeReadings
	object   index.Object
	// at is the moment, newest the object's newest event at or before it, on any medium.
	at, newest index.Position
	// asked and says are sets of readings, by their places in the list.
	asked, says uint32
	// stepped: touched tells whether the object had an event in (h, e] of the newest reading.
	stepped, touched bool

	sayer *index.Sayer
	of    *index.View // sayer's
}

// about begins another object of a scope. o is kept.
func (s *spoken) about(r *scopeReadings, o index.Object, at index.Position) {
	s.readings, s.object, s.at, s.newest = r, o, at, index.Position{}
	s.asked, s.says, s.stepped = 0, 0, false
}

// event tells of an event of the object at or before the moment.
func (s *spoken) event(p index.Position) {
	if s.newest.Before(p) {
		s.newest = p
	}
}

// speaks reports whether a reading, by its place in the list, speaks of the object.
func (s *spoken) speaks(i int) (says bool, err error) {
	if s.asked&(1<<i) == 0 {
		if says, err = s.ask(&s.readings.list[i], i == 0 && s.stepped); err != nil {
			return false, err
		}
		if s.asked |= 1 << i; says {
			s.says |= 1 << i
		}
	}
	return s.says&(1<<i) != 0, nil
}

func (s *spoken) ask(one *index.Reading, stepped bool) (bool, error) {
	touched, known := s.touched, stepped
	if !stepped {
		// Older events than the newest may lie in (h, e], and so may some behind the moment.
		touched = one.TouchedBy(s.newest)
		known = touched || !one.Position.Before(s.newest) && one.Through <= s.at.Offset
	}
	if known && touched {
		return false, nil
	}
	if s.of != s.readings.view {
		s.of, s.sayer = s.readings.view, s.readings.view.Sayer()
	}
	if known {
		return s.sayer.Untouched(one, &s.object)
	}
	return s.sayer.Says(one, &s.object)
}

// wants reports whether a reading may say more than the stream does.
func (d *decision) wants() bool {
	return d.doubt == marked || d.doubt == noEvidence || d.doubt == forgot || d.doubt == survived
}

// judgeMedium says what may be claimed of one medium of an object: by the stream (decide), then by the readings of the scope (R9), then
// by what the master does without an event (R11). cut as of decide.
func judgeMedium(m *moment, newest *index.Evidence, clears *scopeClears, cut bool, s *spoken) (decision, error) {
	d := decide(m, newest, clears, cut)
	if m.unproven == nil && !cut && d.wants() {
		if err := s.adopt(&d, newest); err != nil {
			return d, err
		}
	}
	if d.present && d.confirmed() && m.silent(d.evidence.Epoch) {
		return d, s.doubtSilent(&d)
	}
	return d, nil
}

// adopt has a decision that is in doubt rest on the newest reading that speaks of the object and is newer than all that is known of the
// medium: what was known at the reading's position was so (R9). What it found to be otherwise are events of the object already.
func (s *spoken) adopt(d *decision, newest *index.Evidence) error {
	for i := range s.readings.list {
		one := &s.readings.list[i]
		switch {
		case newest != nil && !newest.Position.Before(one.Position):
			return nil // it, and all that are older, know less
		case d.evidence != nil && !d.evidence.Position.Before(one.Position) && (d.doubt != survived || !newest.Position.Before(s.readings.cleared[i])):
			return nil
			// What a clear had made absent before the reading is absent still: no later clear withdraws that (R7).
		}
		says, err := s.speaks(i)
		if err != nil {
			return err
		}
		if says {
			d.evidence, d.cleared, d.doubt = &one.Evidence, false, sure
			return nil
		}
	}
	return nil
}

// doubtSilent withdraws what a silent master makes unsure: present is confirmed by a reading only, for its own moment, which is from h to
// e (R11).
func (s *spoken) doubtSilent(d *decision) error {
	for i := range s.readings.list {
		one := &s.readings.list[i]
		if one.Through < s.at.Offset {
			break // older ones ended earlier
		}
		if d.evidence.Reading && d.evidence.Position == one.Position {
			return nil
		}
		if !d.evidence.Position.Before(one.Position) {
			break
		}
		says, err := s.speaks(i)
		if err != nil {
			return err
		}
		if says {
			d.evidence, d.cleared = &one.Evidence, false
			return nil
		}
	}
	d.doubt = silentMaster
	return nil
}
