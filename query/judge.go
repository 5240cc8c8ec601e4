package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// moment is a place in a source's stream, and what can be claimed there.
type moment struct {
	source uint32
	// at: events at or before it count.
	at index.Position
	// unproven is not nil where nothing at all can be confirmed.
	unproven *Doubt
	// last is the newest message at or before the moment; its offset is 0 where there is none.
	last index.Place
	// mark is the newest mark at or before the moment.
	mark    index.Mark
	hasMark bool
	asOf    AsOf
}

// fullBatch is how many events make a batch that may be cut in the middle of a change (R8).
const fullBatch = 64

// cuts reports whether the moment lies behind a full batch whose last event is e.
func (m *moment) cuts(e *index.Evidence) bool {
	return m.last.Events >= fullBatch && e.Position == index.Position{Offset: m.last.Offset, Event: m.last.Events}
}

// scopeClears are the newest clears of an object's scope at a moment.
type scopeClears struct {
	newest, proof       index.Evidence
	hasNewest, hasProof bool
}

// judge says what may be claimed of one medium (R1, R2, R7, R8). It is pure: all it needs is in its arguments. cut tells
// that the object's change may go on in the next batch.
func judge(m *moment, medium *index.Medium, clears *scopeClears, cut bool) MediumOut {
	var evidence *index.Evidence
	cause := "event"
	out := MediumOut{State: Absent, Certainty: Uncertain}
	switch {
	case medium.Has && medium.Newest.Stored:
		if clears.hasNewest && medium.Newest.Position.Before(clears.newest.Position) {
			// What was stored and then cleared may have been stored while the clear ran, and live on.
			out.Evidence = evidenceOut(&clears.newest, "cleared")
			out.Doubt = doubtAt(DoubtCleared, clears.newest.Position.Offset, clears.newest.HasTime, clears.newest.Time)
			return out
		}
		out.State = Present
		evidence = &medium.Newest
	default:
		if medium.Has {
			evidence = &medium.Newest
		}
		if clears.hasProof && (evidence == nil || evidence.Position.Before(clears.proof.Position)) {
			evidence, cause = &clears.proof, "cleared"
		}
	}
	if evidence != nil {
		out.Evidence = evidenceOut(evidence, cause)
	}
	switch {
	case m.unproven != nil:
		d := *m.unproven
		out.Doubt = &d
	case m.hasMark && (evidence == nil || !m.mark.End.Before(evidence.Position)):
		out.Doubt = markDoubt(m)
	case evidence == nil:
		out.Doubt = &Doubt{Cause: DoubtNoEvidence}
	case cut:
		out.Doubt = doubtAt(DoubtFullBatch, m.last.Offset, m.last.HasTime, m.last.Time)
	default:
		out.Certainty = Confirmed
	}
	return out
}

func markDoubt(m *moment) *Doubt {
	offset := m.mark.End.Offset
	if offset > m.at.Offset {
		offset = m.mark.From // it was extended behind the moment
	}
	return doubtAt(m.mark.Cause.String(), offset, m.mark.HasTime && offset == m.mark.End.Offset, m.mark.Time)
}

func doubtAt(cause string, offset uint64, hasTime bool, ms int64) *Doubt {
	d := &Doubt{Cause: cause, Offset: offset}
	if hasTime {
		d.Time = msTime(ms)
	}
	return d
}

func evidenceOut(e *index.Evidence, cause string) *EvidenceOut {
	out := &EvidenceOut{Offset: e.Position.Offset, Epoch: e.Epoch, Seq: e.Seq, Received: msTime(e.Received), Cause: cause}
	if e.HasID {
		id := e.ID
		out.EventID = &id
	}
	if e.HasTime {
		out.Time = msTime(e.Time)
	}
	return out
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
	out := &Answer{Source: answers[0].Source, Backend: answers[0].Backend, Tenant: answers[0].Tenant, Key: answers[0].Key,
		Media: map[string]MediumOut{}, AsOf: answers[0].AsOf}
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
