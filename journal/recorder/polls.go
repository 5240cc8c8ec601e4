package recorder

import (
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Proof says that nothing of a source's stream was missing at a moment (R8), as two polls of its master showed.
type Proof struct {
	// Since is that moment on our clock, Unix ns; 0: there is no proof.
	Since int64
	// Offset is the source's newest record then, and still: what comes ends the proof.
	Offset uint64
}

// Proof returns the newest proof, if no record of the source has come since.
func (f *Feed) Proof() Proof {
	if f.proof.Offset != f.standing.Offset {
		return Proof{}
	}
	return f.proof
}

// Delivers is the number of the endpoint that delivers the source's messages.
func (f *Feed) Delivers() int { return f.pos.State.Endpoint }

// poll returns the judge of an endpoint's polls.
func (f *Feed) poll(endpoint int) *continuity.Polls {
	for len(f.polls) <= endpoint {
		f.polls = append(f.polls, continuity.Polls{Endpoint: len(f.polls)})
	}
	return &f.polls[endpoint]
}

// PollSent tells that the status of an endpoint's master is asked for now, at our clock's ns.
func (f *Feed) PollSent(endpoint int, at int64) { f.poll(endpoint).Sent(&f.pos.State, at) }

// Leads tells that the master behind an endpoint says that it leads, under a newer view than the one that delivers. It returns whether
// that was news (continuity.State.Leads).
func (f *Feed) Leads(endpoint int) bool {
	news := f.pos.State.Leads(endpoint)
	f.moved = f.moved || news
	return news
}

// PollFailed tells that it did not answer, or does not serve.
func (f *Feed) PollFailed(endpoint int) { f.poll(endpoint).Failed() }

// PollAnswered judges an answer, received at our clock's ns, and adds a record if it changes a claim, or if a loss was seen since
// the last answer. before are the counters of the endpoint's last answer, nil: none.
func (f *Feed) PollAnswered(g *journal.Group, endpoint int, at int64, from string, c continuity.Counters, before *reading.Counters) (continuity.Outcome, error) {
	o := f.poll(endpoint).Answered(&f.pos.State, c)
	if o.Ignored {
		return o, nil
	}
	f.moved = true
	st := reading.Status{From: from, Before: before, Counters: &reading.Counters{Batches: c.Batches, Events: c.Events, Dropped: c.Dropped, Polled: at / 1e6}}
	switch o.Gap.Cause {
	case continuity.CauseNone:
	case continuity.TailLoss:
		st.Facts = append(st.Facts, reading.FactTailLoss)
	case continuity.PublisherRestart:
		st.Facts = append(st.Facts, reading.FactRestart)
	default:
		st.Facts = append(st.Facts, o.Gap.Cause.String())
	}
	v := continuity.Verdict{Mark: o.Mark, MarkCause: o.MarkCause, Gap: o.Gap}
	if o.Delivers {
		f.conditions(&o, &st, &v)
		if f.lost {
			st.Facts = append(st.Facts, reading.FactCounters)
		}
		f.lost = false
	}
	if len(st.Facts) > 0 || v.Mark != continuity.NoMark {
		if _, err := f.Fact(g, journal.PublisherStatus, at, v, &st); err != nil {
			return o, err
		}
	}
	if o.Settled {
		f.proof = Proof{o.Since, f.standing.Offset}
	}
	return o, nil
}

// conditions says what an answer tells of the process that delivers: a master that publishes nothing, or not all, may change things
// without an event.
func (f *Feed) conditions(o *continuity.Outcome, st *reading.Status, v *continuity.Verdict) {
	if !o.Changed {
		return
	}
	if o.Conditions&continuity.PublisherOff != 0 {
		st.Facts = append(st.Facts, reading.FactPublisherOff)
	}
	if o.Conditions&continuity.Keyless != 0 {
		st.Facts = append(st.Facts, reading.FactKeyless)
	}
	if o.Conditions&continuity.NoKeylessCounter != 0 {
		st.Facts = append(st.Facts, reading.FactOldStatus)
	}
	if o.Conditions == 0 {
		st.Facts = append(st.Facts, reading.FactPublisherOn)
	}
	st.Silent = o.Conditions != 0
	if o.Conditions&(continuity.PublisherOff|continuity.Keyless) != 0 && v.Mark == continuity.NoMark {
		v.Mark, v.MarkCause = continuity.MarkBehind, continuity.Silent
		v.Gap = continuity.Gap{Cause: continuity.Silent, Epoch: o.Epoch}
	}
}

// SegmentsVanished adds that segments are gone, whose objects may be gone without an event.
func (f *Feed) SegmentsVanished(g *journal.Group, at int64, from string, ids []string) error {
	st := reading.Status{From: from, Facts: []string{reading.FactSegmentVanished}, Segments: ids}
	epoch := max(f.pos.State.Epoch, 1)
	v := continuity.Verdict{Mark: continuity.MarkBehind, MarkCause: continuity.Silent, Gap: continuity.Gap{Cause: continuity.Silent, Epoch: epoch}}
	_, err := f.Fact(g, journal.PublisherStatus, at, v, &st)
	return err
}
