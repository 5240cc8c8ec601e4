package service_test

import (
	"encoding/json"
	"errors"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/query"
)

// compare asks at random moments, and compares with the whole directory: what is confirmed must be so there. Its error is that of
// the first question that got none.
func (d *damaged) compare(what string, e *query.Engine) error {
	ctx := d.t.Context()
	for _, w := range d.w.moments(d.rng, 6) {
		questions := d.w.questions(d.rng, 24)
		got, err := e.Lookup(ctx, questions, w)
		if usage := (*query.UsageError)(nil); errors.As(err, &usage) || errors.Is(err, journal.ErrNotFound) || errors.As(err, new(*query.PrunedError)) {
			continue // the moment is not recorded any more
		}
		if err != nil {
			return err
		}
		for i, a := range got {
			as := w
			if w.Kind == query.Latest {
				as = query.When{Kind: query.AtOffset, Offset: a.AsOf.Offset}
			}
			if as.Kind == query.AtOffset && (as.Offset == 0 || as.Offset > d.whole.Journal.Durable()) {
				continue // behind the loss that it tells of
			}
			want, err := d.whole.Lookup(ctx, questions[i:i+1], as)
			if err != nil {
				d.t.Errorf("%s: the whole directory at %+v: %v", what, as, err)
				continue
			}
			for medium, m := range a.Media {
				if m.Certainty != query.Confirmed {
					continue
				}
				x := want[0].Media[medium]
				if (x.Certainty != query.Confirmed || x.State != m.State) && !d.allowed(e, &questions[i], as, medium, a, want[0]) {
					have, _ := json.Marshal(a)
					true, _ := json.Marshal(want[0])
					d.t.Errorf("%s, %+v: wrong: %s\n%s\nwhole %s", what, w, medium, have, true)
				}
			}
		}
	}
	return nil
}

// allowed reports whether an answer may differ from the whole directory's because of what was lost, though it is confirmed. There are four cases:
//
//   - A clear confirms absence, and the whole directory knows that the object was stored before, so that it may have survived (R7).
//     Of an object whose `stored` is lost R7 does not know that, on a network as here: oracle.Options.LoseSurvivors.
//   - A reading is lost that ended at the loss or behind it: it speaks of moments before the loss too. Then the answer must be what
//     was answered when the journal ended before the loss.
//   - The publisher's clock passed the moment twice, and what is left shows one time only. Then the answer must be that of this one.
//   - A reading behind a loss that a repair found does not count. Then the answer must be that of all records without the readings, which
//     are made up here: they differ from what the stream says.
func (d *damaged) allowed(e *query.Engine, q *query.Question, w query.When, medium string, answer, right *query.Answer) bool {
	got, whole := answer.Media[medium], right.Media[medium]
	cleared := func(m query.MediumOut) bool {
		return m.State == query.Absent && m.Evidence != nil && m.Evidence.Cause == "cleared"
	}
	if whole.Doubt != nil && whole.Doubt.Cause == query.DoubtCleared && cleared(got) && cleared(whole) && got.Evidence.Offset == whole.Evidence.Offset {
		d.count("(allowed)", "survivors of a clear")
		return true
	}
	if w.Kind == query.AtTime && cameTwice(right) && d.says(&d.whole.Engine, q, query.When{Kind: query.AtOffset, Offset: answer.AsOf.Offset}, medium, got) {
		d.count("(allowed)", "moments that came twice")
		return true
	}
	if whole.Evidence == nil || whole.Evidence.Cause != "reconciliation" {
		return false
	}
	first, repaired := d.firstLoss(e.Journal)
	if d.says(d.until(first), q, w, medium, got) {
		d.count("(allowed)", "readings that ended behind the loss")
		return true
	}
	if repaired && d.says(d.unread(), q, w, medium, got) {
		d.count("(allowed)", "readings behind a loss that a repair found")
		return true
	}
	return false
}

// cameTwice reports whether the publisher's clock passed the moment twice.
func cameTwice(a *query.Answer) bool {
	for _, m := range a.Media {
		if m.Doubt != nil && m.Doubt.Cause == query.DoubtClock {
			return true
		}
	}
	return false
}

// says reports whether that is confirmed.
func (d *damaged) says(e *query.Engine, q *query.Question, w query.When, medium string, want query.MediumOut) bool {
	a, err := e.Lookup(d.t.Context(), []query.Question{*q}, w)
	if err != nil {
		return false
	}
	m := a[0].Media[medium]
	return m.Certainty == query.Confirmed && m.State == want.State
}

// until is what the records of the whole directory up to an offset answer.
func (d *damaged) until(last uint64) *query.Engine {
	if d.early == nil || d.earlyAt != last {
		if d.early != nil {
			d.early.Index.Close()
			d.early.Journal.Close()
		}
		d.early, d.earlyAt = d.w.copied(d.whole.Journal, last, nil), last
	}
	return d.early
}

// unread is what the records of the whole directory answer without the readings: these begin, and never end.
func (d *damaged) unread() *query.Engine {
	if d.bare == nil {
		d.bare = d.w.copied(d.whole.Journal, d.whole.Journal.Durable(), func(h *journal.Header, frames [][]byte) [][]byte {
			switch h.Kind {
			case journal.ReconciliationPart, journal.ReconciliationEnded:
				h.Kind = journal.ReconciliationBegun
				b, err := json.Marshal(&reading.Begun{Why: reading.AfterMark})
				d.must(err)
				return [][]byte{b}
			}
			return frames
		})
	}
	return d.bare
}

// firstLoss is the last offset before the first loss in a journal, and whether a repair found it.
func (d *damaged) firstLoss(j *journal.Journal) (last uint64, repaired bool) {
	var b *journal.Block
	for at := uint64(0); ; at = b.Last() {
		next, err := j.NextBlock(b, at)
		if err != nil {
			return at, false
		}
		if b = next; b.Header(0).Kind != journal.TailLost {
			continue
		}
		frames, err := b.Frames(0, nil, new([8]byte))
		d.must(err)
		l, err := journal.DecodeLost(b.First, frames)
		d.must(err)
		return at, l.Through != 0
	}
}
