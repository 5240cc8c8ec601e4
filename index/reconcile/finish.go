package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// end leaves out what had an event of its own in (h, e], and appends the rest.
func (a *attempt) end(ctx context.Context, e recorder.Standing) (*Report, error) {
	x := a.r.o.Index
	report := &Report{DryRun: a.q.DryRun, Traffic: e.Seq != a.h.Seq}
	sample := a.q.Sample
	if sample == 0 {
		sample = 10
	}
	var all [][]byte
	out := &report.Ended
	*out = reading.Ended{Why: a.q.Why, From: a.from(), Begun: a.h.Offset, Through: e.Offset, Listed: a.listed}
	for _, p := range a.plans {
		cleared, err := x.Cleared(ctx, p.scope, a.h.Offset, e.Offset)
		if err != nil {
			return nil, err
		}
		if cleared {
			return nil, fmt.Errorf("%w: the tenant %.40q was cleared meanwhile", ErrBroken, p.scope.Tenant)
		}
		p.list, p.at = nil, cursor{} // the largest thing by far
		touched, err := p.untouched(ctx, x, a.h.Offset, e.Offset, report.Traffic)
		if err != nil {
			return nil, err
		}
		parts := p.parts
		for i := range p.found.real.Len() {
			out.Contradictions += int(p.found.real.note(i))
		}
		p.Contradict = p.found.list.Len()
		report.Touched += touched
		report.First = parts.sample(report.First, sample)
		report.counts.add(&p.counts)
		out.Scopes = append(out.Scopes, p.scope)
		out.Asked, out.Agreed = out.Asked+p.asked, out.Agreed+p.agreed
		out.Corrections, out.Exceptions = out.Corrections+parts.corrections, out.Exceptions+parts.exceptions
		all = append(all, parts.done...)
	}
	out.TookMs, out.MasterMs = a.clock.Now().Sub(a.began).Milliseconds(), a.master.Milliseconds()
	a.progress(StepWriting, 0, len(all))
	if a.q.DryRun {
		now, err := a.r.o.Log.Stand(ctx)
		if err == nil {
			err = mayGoOn(&a.h, &now, a.backend)
		}
		if err != nil {
			return nil, err
		}
		return report, nil
	}
	var err error
	if report.Offset, err = a.r.o.Log.End(ctx, a.h, all, out); err != nil {
		return nil, err
	}
	a.progress(StepWriting, len(all), len(all))
	a.r.remember(a, e)
	return report, nil
}

// untouched leaves out what is said of objects with an event in (h, e]. Without traffic there are none.
func (p *plan) untouched(ctx context.Context, x Index, h, e uint64, traffic bool) (dropped int, err error) {
	p.parts.close()
	if traffic {
		if p.parts, dropped, err = p.parts.untouched(ctx, x, h, e); err != nil {
			return 0, err
		}
	}
	for _, l := range []*Listing{p.found.list, p.found.real} {
		l.Sort()
		if traffic {
			if err := l.untouched(ctx, x, p.scope, h, e); err != nil {
				return 0, err
			}
		}
	}
	return dropped, nil
}

func (c *counts) add(d *counts) {
	c.Objects += d.Objects
	c.Doubts += d.Doubts
	c.Unsaid += d.Unsaid
	c.Unaskable += d.Unaskable
	c.Contradict += d.Contradict
}

// waiting is what a reading contradicted, until another one agrees or an event of the object settles it.
type waiting struct {
	h      recorder.Standing // of that reading
	at     time.Time         // when it ended
	scopes []waitingScope
}

type waitingScope struct {
	scope reading.Scope
	list  *Listing
}

// remember keeps the contradictions of a reading that held.
func (r *Runner) remember(a *attempt, e recorder.Standing) {
	w := &waiting{h: a.h, at: a.clock.Now()}
	for _, p := range a.plans {
		if p.found.list.Len() > 0 {
			w.scopes = append(w.scopes, waitingScope{p.scope, p.found.list})
		}
	}
	if before := r.waiting; before != nil && a.began.Sub(before.at) < r.o.Timing.Apart && before.h.Unbroken(&e) {
		return // too early to decide: the older ones go on waiting
	}
	r.waiting = w
	if len(w.scopes) == 0 {
		r.waiting = nil
	}
}

// candidates returns what an earlier reading contradicted in a scope, if that was long enough ago, without the objects that had an
// event between that reading's h and this one's.
func (r *Runner) candidates(ctx context.Context, a *attempt, scope reading.Scope) (*Listing, error) {
	w := r.waiting
	if w == nil {
		return nil, nil
	}
	if !w.h.Unbroken(&a.h) {
		r.waiting = nil // a loss, a clear or another process may explain it
		return nil, nil
	}
	if a.began.Sub(w.at) < r.o.Timing.Apart {
		return nil, nil
	}
	for _, s := range w.scopes {
		if string(s.scope.Backend) == string(scope.Backend) && string(s.scope.Tenant) == string(scope.Tenant) {
			return s.list, s.list.untouched(ctx, r.o.Index, scope, w.h.Offset, a.h.Offset)
		}
	}
	return nil, nil
}
