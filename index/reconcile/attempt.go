package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// askAtOnce is how many keys are asked for at once.
const askAtOnce = 1000

// attempt is one reading under way.
type attempt struct {
	r       *Runner
	q       Request
	m       Master
	clock   Clock
	under   *underway
	backend []byte
	base, h recorder.Standing // before the first poll; at h
	first   mooncake.Status
	began   time.Time
	master  time.Duration
	plans   []*plan
	listed  int
}

// run is the steps of doc.go, in order.
func (a *attempt) run(ctx context.Context) (*Report, error) {
	a.began = a.clock.Now()
	if err := a.beginInTime(ctx); err != nil {
		return nil, err
	}
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	if err := a.compare(ctx); err != nil {
		return nil, err
	}
	if err := a.ask(ctx); err != nil {
		return nil, err
	}
	e, err := a.wait(ctx)
	if err != nil {
		return nil, err
	}
	return a.end(ctx, e)
}

func (a *attempt) progress(step string, done, total int) {
	a.under.step.Store(&step)
	if a.q.Progress != nil {
		a.q.Progress(Progress{Step: step, Done: done, Total: total})
	}
}

// beginInTime begins, as long as the one who asked may be kept waiting: the master may rest, and the index be far behind.
func (a *attempt) beginInTime(ctx context.Context) error {
	a.progress(StepBegin, 0, 0)
	left := a.q.left(a.clock.Now())
	if left == nil {
		return a.begin(ctx)
	}
	short, cancel := context.WithTimeout(ctx, *left)
	defer cancel()
	err := a.begin(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the reading could not begin within %v: %w. Nothing was changed; see how far the index is behind (lag in `kvjournal stats`), and whether the master answers (the recorder's log)",
			a.r.o.Timing.Patience, err)
	}
	return err
}

// begin polls once, then appends the begin: a master that does not answer leaves no record.
func (a *attempt) begin(ctx context.Context) error {
	var err error
	if a.base, err = a.r.o.Log.Stand(ctx); err != nil {
		return err
	}
	if !a.base.Connected {
		return ErrDisconnected
	}
	if _, err := a.backendOf(&a.base); err != nil {
		return err
	}
	if a.first, err = a.status(ctx); err != nil {
		return err
	}
	if err := polled(&a.first, a.base.Seq); err != nil {
		return err
	}
	if a.q.DryRun {
		a.h, err = a.r.o.Log.Stand(ctx)
	} else {
		a.h, err = a.r.o.Log.Begin(ctx, &reading.Begun{Why: a.q.Why, From: a.from()})
	}
	if err != nil {
		return err
	}
	if a.backend, err = a.backendOf(&a.h); err != nil {
		return err
	}
	return mayGoOn(&a.h, &a.h, a.backend)
}

func (a *attempt) from() string {
	if a.q.Snapshot != nil {
		return a.q.Snapshot.Name()
	}
	return a.m.URL()
}

// backendOf is the backend_id that the master's objects are booked under.
func (a *attempt) backendOf(s *recorder.Standing) ([]byte, error) {
	switch {
	case s.Backends == 1:
		return s.Backend, nil
	case s.Backends > 1:
		return nil, fmt.Errorf("%w: its events have named %d", ErrBackend, s.Backends)
	}
	if a.r.o.Backend != nil {
		if b, ok := a.r.o.Backend(s.Epoch); ok {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: no message has named it since the recorder began", ErrBackend)
}

func (a *attempt) status(ctx context.Context) (mooncake.Status, error) {
	s, err := a.m.Status(ctx)
	a.master += s.Took
	return s, asAdmin(ctx, err)
}

// read reads the listing, or the snapshot.
func (a *attempt) read(ctx context.Context) error {
	if a.q.Snapshot != nil {
		return a.readSnapshot(ctx)
	}
	scope := reading.Scope{Backend: a.backend, Tenant: []byte(event.DefaultTenant)}
	p := a.plan(scope)
	p.lines = true
	l, err := a.m.Keys(ctx, func(key []byte) error {
		if len(key) == 0 {
			return nil // a piece of a key with a newline
		}
		p.list.Add(key, 0)
		if n := p.list.Len(); n%10_000 == 0 {
			a.progress(StepListing, n, 0)
		}
		return nil
	})
	if err != nil {
		return asAdmin(ctx, err)
	}
	a.master += l.Took
	p.list.Sort()
	a.listed = p.list.Len()
	a.progress(StepListing, a.listed, a.listed)
	return nil
}

func (a *attempt) plan(scope reading.Scope) *plan {
	p := &plan{scope: scope, list: &Listing{}, parts: newParts(a.h.Offset, scope), found: newCandidates(), audit: a.q.Audit || a.q.Snapshot != nil}
	a.plans = append(a.plans, p)
	return p
}

// compare goes through the objects that were known at h.
func (a *attempt) compare(ctx context.Context) error {
	for _, p := range a.plans {
		before, err := a.r.candidates(ctx, a, p.scope)
		if err != nil {
			return err
		}
		p.before.l = before
		p.begin()
		err = a.r.o.Index.Objects(ctx, p.scope, a.h.Offset, func(o *Object) error {
			if p.Objects%10_000 == 0 {
				a.progress(StepComparing, p.Objects, 0)
			}
			return p.object(o)
		})
		if err != nil {
			return err
		}
		p.end()
	}
	return nil
}

// ask asks for the media of the listed keys that are to be asked for.
func (a *attempt) ask(ctx context.Context) error {
	for _, p := range a.plans {
		if p.whole {
			continue
		}
		total := 0
		for i := range p.list.Len() {
			if p.list.note(i)&ask != 0 {
				total++
			}
		}
		keys, places := make([][]byte, 0, min(total, askAtOnce)), make([]int, 0, min(total, askAtOnce))
		for i := 0; i <= p.list.Len(); i++ {
			if len(keys) == askAtOnce || i == p.list.Len() && len(keys) > 0 {
				if err := a.askFor(ctx, p, keys, places); err != nil {
					return err
				}
				keys, places = keys[:0], places[:0]
				a.progress(StepAsking, p.asked, total)
			}
			if i < p.list.Len() && p.list.note(i)&ask != 0 {
				keys, places = append(keys, p.list.Key(i)), append(places, i)
			}
		}
	}
	return nil
}

func (a *attempt) askFor(ctx context.Context, p *plan, keys [][]byte, places []int) error {
	answers, err := a.m.BatchQuery(ctx, keys)
	a.master += answers.Took
	if err != nil {
		return asAdmin(ctx, err)
	}
	if len(answers.Of) != len(keys) {
		return &AdminError{fmt.Errorf("%d answers for %d keys", len(answers.Of), len(keys))}
	}
	for n, i := range places {
		p.answer(i, answers.Of[n])
	}
	return nil
}

// wait waits for e.
func (a *attempt) wait(ctx context.Context) (recorder.Standing, error) {
	log, t := a.r.o.Log, &a.r.o.Timing
	none := recorder.Standing{}
	a.progress(StepWaiting, 0, 0)
	stood, err := log.Stand(ctx)
	if err != nil {
		return none, err
	}
	if err := mayGoOn(&a.h, &stood, a.backend); err != nil {
		return none, err
	}
	p, err := a.status(ctx)
	if err != nil {
		return none, err
	}
	if err := polled(&p, stood.Seq); err != nil {
		return none, err
	}
	n := p.LastSeq()
	var trouble error // of the newest poll
	for until := a.clock.Now().Add(t.EndWait); ; {
		e, came, err := log.Await(ctx, n, a.h, t.PollApart)
		if err != nil {
			return none, err
		}
		if came {
			return e, mayGoOn(&a.h, &e, a.backend)
		}
		if a.clock.Now().After(until) {
			if trouble != nil {
				return none, trouble
			}
			return none, fmt.Errorf("%w within %v", ErrNoEnd, t.EndWait)
		}
		now, err := log.Stand(ctx)
		if err != nil {
			return none, err
		}
		if err := mayGoOn(&a.h, &now, a.backend); err != nil {
			return none, err
		}
		q, err := a.poll(ctx)
		if trouble = err; err != nil {
			if ctx.Err() != nil {
				return none, err
			}
			continue // a message may still end it
		}
		if err := polled(&q, now.Seq); err != nil {
			return none, err
		}
		if settled(&a.base, &stood, &a.first, &p, &q, t.PollApart) {
			e, ok, err := a.settle(ctx, stood, &q, &p)
			if err != nil {
				return none, err
			}
			if ok {
				return e, mayGoOn(&a.h, &e, a.backend)
			}
		}
		stood, p = now, q
	}
}

// poll asks for the counters, but not for long: messages are waited for meanwhile.
func (a *attempt) poll(ctx context.Context) (mooncake.Status, error) {
	short, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	s, err := a.m.Status(short)
	a.master += s.Took
	return s, asAdmin(ctx, err)
}

const pollPatience = 5 * time.Second

func (a *attempt) settle(ctx context.Context, since recorder.Standing, poll, before *mooncake.Status) (recorder.Standing, bool, error) {
	if !a.q.DryRun {
		return a.r.o.Log.Settled(ctx, since, poll, before)
	}
	now, err := a.r.o.Log.Stand(ctx)
	return now, now.Offset == since.Offset, err
}
