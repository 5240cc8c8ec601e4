package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// maxReadings is how many readings of a scope are looked at for an object that the newest ones say nothing about.
const maxReadings = 16

// scopeReadings are the readings of a scope (R9) that can confirm something at a moment: those newer than its newest mark, the newest
// first.
type scopeReadings struct {
	list []index.Reading
	view *index.View
}

func newScopeReadings(v *index.View, s *index.Scope, m *moment) (scopeReadings, error) {
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
	return r, err
}

// wants reports whether a reading may say more than the stream does.
func (d *decision) wants() bool {
	return d.doubt == marked || d.doubt == noEvidence || d.doubt == survived
}

// adopt has a decision that is in doubt rest on the newest reading that speaks of the object and is newer than all that is known of the
// medium: what was known at the reading's position was so (R9). What it found to be otherwise are events of the object already.
func (r *scopeReadings) adopt(d *decision, o *index.Object, newest *index.Evidence) error {
	if !d.wants() {
		return nil
	}
	for i := range r.list {
		one := &r.list[i]
		if newest != nil && !newest.Position.Before(one.Position) || d.evidence != nil && !d.evidence.Position.Before(one.Position) {
			return nil // it, and all that are older, know less
		}
		says, err := r.view.Says(one, o)
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

// doubtSilent withdraws what a silent master makes unsure: present is confirmed by a reading only, for its own moment (R11).
func (r *scopeReadings) doubtSilent(d *decision, m *moment) {
	if !d.present || !d.confirmed() || !m.silent(d.evidence.Epoch) {
		return
	}
	for i := range r.list {
		if one := &r.list[i]; d.evidence.Reading && d.evidence.Position == one.Position && m.at.Offset <= one.Through {
			return
		}
	}
	d.doubt = silentMaster
}
