package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// scopeClears are the newest clears of an object's scope at a moment.
type scopeClears struct {
	newest, proof       index.Evidence
	hasNewest, hasProof bool
}

// readClears reads the newest clears of an object's scope at a position.
func readClears(v *index.View, o *index.Object, at index.Position) (c scopeClears, err error) {
	if c.newest, c.hasNewest, err = v.Cleared(o, at); err == nil && c.hasNewest {
		c.proof, c.hasProof, err = v.Proof(o, at)
	}
	return c, err
}

// why says what casts doubt on a decision.
type why uint8

const (
	sure why = iota
	// survived: stored, then cleared. It may have been stored while the clear ran, and live on (R7).
	survived
	// unproven: nothing can be confirmed at the moment.
	unproven
	// marked: a mark is newer than the evidence (R2).
	marked
	noEvidence
	// forgot: what was known of it may have been forgotten when the journal was pruned.
	forgot
	// silentMaster: the master changes things without an event (R11).
	silentMaster
	// cutOff: the object's change may go on in the next batch (R8).
	cutOff
)

// decision is what may be claimed of one medium.
type decision struct {
	present bool
	// evidence is nil where there is none; cleared tells that it is a clear's.
	evidence *index.Evidence
	cleared  bool
	doubt    why
}

func (d *decision) confirmed() bool { return d.doubt == sure }

// decide says what may be claimed of one medium whose newest event is newest, nil: none (R1, R2, R7, R8). It is pure: all it needs
// is in its arguments. cut tells that the object's change may go on in the next batch.
func decide(m *moment, newest *index.Evidence, clears *scopeClears, cut bool) (d decision) {
	d.evidence = newest
	if newest != nil && newest.Stored {
		if clears.hasNewest && newest.Position.Before(clears.newest.Position) {
			return decision{evidence: &clears.newest, cleared: true, doubt: survived}
		}
		d.present = true
	} else if clears.hasProof && (newest == nil || newest.Position.Before(clears.proof.Position)) {
		d.evidence, d.cleared = &clears.proof, true
	}
	switch {
	case m.unproven != nil:
		d.doubt = unproven
	case d.evidence == nil && m.forgotten > 0 && !(m.hasMark && m.forgotten < m.mark.End.Offset):
		d.doubt = forgot
	case m.hasMark && (d.evidence == nil || !m.mark.End.Before(d.evidence.Position)):
		d.doubt = marked
	case d.evidence == nil:
		d.doubt = noEvidence
	case cut:
		d.doubt = cutOff
	}
	return d
}

// out is the decision as answers show it.
func (d *decision) out(m *moment) MediumOut { return d.outIn(m, &mediumRoom{}) }

// outIn is out in the caller's memory.
func (d *decision) outIn(m *moment, r *mediumRoom) MediumOut {
	out := d.stateIn(m, r)
	if d.evidence != nil {
		cause := "event"
		switch {
		case d.evidence.Reading:
			cause = "reconciliation"
		case d.cleared:
			cause = "cleared"
		}
		out.Evidence = evidenceIn(d.evidence, cause, r)
	}
	return out
}

// stateIn is outIn without the evidence.
func (d *decision) stateIn(m *moment, r *mediumRoom) MediumOut {
	out := MediumOut{State: stateName(d.present), Certainty: certaintyName(d.confirmed())}
	switch d.doubt {
	case survived:
		e := d.evidence
		out.Doubt = doubtIn(DoubtCleared, e.Position.Offset, e.HasTime, e.Time, r)
	case unproven:
		r.doubt = *m.unproven
		out.Doubt = &r.doubt
	case marked:
		out.Doubt = markDoubt(m, r)
	case noEvidence:
		out.Doubt = doubtIn(DoubtNoEvidence, 0, false, 0, r)
	case forgot:
		out.Doubt = doubtIn(DoubtForgotten, m.forgotten, false, 0, r)
	case silentMaster:
		out.Doubt = doubtIn(DoubtSilent, 0, false, 0, r)
	case cutOff:
		out.Doubt = doubtIn(DoubtFullBatch, m.last.Offset, m.last.HasTime, m.last.Time, r)
	}
	return out
}

func stateName(present bool) string {
	if present {
		return Present
	}
	return Absent
}

func certaintyName(confirmed bool) string {
	if confirmed {
		return Confirmed
	}
	return Uncertain
}

func markDoubt(m *moment, r *mediumRoom) *Doubt {
	offset := m.mark.End.Offset
	if offset > m.at.Offset {
		offset = m.mark.From // it was extended behind the moment
	}
	return doubtIn(m.mark.Cause.String(), offset, m.mark.HasTime && offset == m.mark.End.Offset, m.mark.Time, r)
}

func doubtAt(cause string, offset uint64, hasTime bool, ms int64) *Doubt {
	return doubtIn(cause, offset, hasTime, ms, &mediumRoom{})
}

func doubtIn(cause string, offset uint64, hasTime bool, ms int64, r *mediumRoom) *Doubt {
	r.doubt = Doubt{Cause: cause, Offset: offset}
	if hasTime {
		r.at[2] = *msTime(ms)
		r.doubt.Time = &r.at[2]
	}
	return &r.doubt
}

func evidenceOut(e *index.Evidence, cause string) *EvidenceOut {
	return evidenceIn(e, cause, &mediumRoom{})
}

func evidenceIn(e *index.Evidence, cause string, r *mediumRoom) *EvidenceOut {
	r.evidence = EvidenceOut{Offset: e.Position.Offset, Epoch: e.Epoch, Seq: e.Seq, Cause: cause}
	r.at[1] = *msTime(e.Received)
	r.evidence.Received = &r.at[1]
	if e.HasID {
		r.id = e.ID
		r.evidence.EventID = &r.id
	}
	if e.HasTime {
		r.at[0] = *msTime(e.Time)
		r.evidence.Time = &r.at[0]
	}
	return &r.evidence
}

// summarize sets the object's own state from its media's: present and confirmed if a medium is, absent and confirmed
// only if all are.
func (a *Answer) summarize() {
	a.Present, a.Certainty = false, Confirmed
	sure := false
	for _, m := range a.Media {
		if m.State == Present {
			a.Present = true
			sure = sure || m.Certainty == Confirmed
		}
		if m.Certainty != Confirmed {
			a.Certainty = Uncertain
		}
	}
	if a.Present {
		a.Certainty = Uncertain
		if sure {
			a.Certainty = Confirmed
		}
	}
}

// merge makes one answer out of those of several sources or backends: present if present at any, absent and confirmed
// only if confirmed at every one.
func merge(answers []*Answer) *Answer {
	out := &Answer{Name: answers[0].Name, Media: map[string]MediumOut{}, AsOf: answers[0].AsOf}
	for _, a := range answers {
		if a.Source != out.Source {
			out.Source = ""
		}
		if string(a.Backend) != string(out.Backend) || a.Backend == nil {
			out.Backend = nil
		}
		if older(a.AsOf, out.AsOf) {
			out.AsOf = a.AsOf
		}
		out.AsOf.Live = out.AsOf.Live && a.AsOf.Live
		out.Silent = out.Silent || a.Silent
		for name, m := range a.Media {
			if have, ok := out.Media[name]; !ok || stronger(m, have) {
				out.Media[name] = m
			}
		}
	}
	out.summarize()
	return out
}

// older: an answer over several sources is as old as its oldest part.
func older(a, b AsOf) bool {
	return a.Received == nil || (b.Received != nil && a.Received.Before(b.Received.Time))
}

// stronger reports whether m outweighs have in an answer over several: presence over absence, a sure presence over an
// unsure one, an unsure absence over a sure one.
func stronger(m, have MediumOut) bool {
	rank := func(o MediumOut) int {
		switch {
		case o.State == Present && o.Certainty == Confirmed:
			return 3
		case o.State == Present:
			return 2
		case o.Certainty != Confirmed:
			return 1
		}
		return 0
	}
	return rank(m) > rank(have)
}
