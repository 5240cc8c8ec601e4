package query

import (
	"bytes"
	"context"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// Question asks for one object. An empty Source and a nil Backend stand for whichever fits, an empty Tenant for "default".
type Question struct{ Name }

const defaultTenant = "default"

// Lookup answers each question, in order, all as of the same moment.
func (e *Engine) Lookup(ctx context.Context, questions []Question, w When) ([]*Answer, error) {
	a, err := e.ask(ctx, questions, w)
	if err != nil {
		return nil, err
	}
	defer a.view.Close()
	out := make([]*Answer, 0, len(questions))
	for i := range questions {
		if i%256 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			a.room = make([]Answer, min(256, len(questions)-i))
		}
		answer, err := a.answer(&questions[i])
		if err != nil {
			return nil, err
		}
		out = append(out, answer)
	}
	return out, nil
}

// asked are the sources that some questions are about, at the questions' moment, in one view.
type asked struct {
	named   []namedSources
	moments []moment // of the sources in named, each once
	view    *index.View

	media     []index.Medium
	decisions []decision
	room      []Answer // for the next answers

	// scope and readings are of the object asked for last.
	scope    []byte
	readings scopeReadings
	spoken   spoken
}

// namedSources are the sources of a name that was asked for; "": all.
type namedSources struct {
	name    string
	sources []journal.Source
}

// of returns the sources of a name, nil where it was not asked for.
func (a *asked) of(name string) []journal.Source {
	for i := range a.named {
		if a.named[i].name == name {
			return a.named[i].sources
		}
	}
	return nil
}

// moment is a source's.
func (a *asked) moment(source uint32) *moment {
	for i := range a.moments {
		if a.moments[i].source == source {
			return &a.moments[i]
		}
	}
	return nil
}

// newAnswer is an empty one.
func (a *asked) newAnswer() *Answer {
	if len(a.room) == 0 {
		return &Answer{}
	}
	one := &a.room[0]
	a.room = a.room[1:]
	return one
}

// readingsOf returns the readings of the object's scope that count at the moment.
func (a *asked) readingsOf(o *index.Object, m *moment, c *scopeClears) (*scopeReadings, error) {
	s := index.Scope{Source: o.Source, Backend: o.Backend, Tenant: o.Tenant}
	known := len(a.scope)
	a.scope = s.AppendName(a.scope) // behind the name that is known
	same := a.readings.view != nil && bytes.Equal(a.scope[:known], a.scope[known:])
	a.scope = a.scope[:copy(a.scope, a.scope[known:])]
	if same {
		return &a.readings, nil
	}
	var err error
	a.readings, err = newScopeReadings(a.view, &s, m, c)
	return &a.readings, err
}

func (e *Engine) ask(ctx context.Context, questions []Question, w When) (*asked, error) {
	a := &asked{}
	var union []journal.Source
	for i := range questions {
		name := questions[i].Source
		if a.of(name) != nil || i > 0 && name == questions[i-1].Source {
			continue
		}
		some, err := e.sources(name)
		if err != nil {
			return nil, err
		}
		if err := oneSource(some, w); err != nil {
			return nil, err
		}
		a.named = append(a.named, namedSources{name, some})
		for _, s := range some {
			if !slices.ContainsFunc(union, func(u journal.Source) bool { return u.ID == s.ID }) {
				union = append(union, s)
			}
		}
	}
	var err error
	if a.view, a.moments, err = e.moments(ctx, union, w); err != nil {
		return nil, err
	}
	return a, nil
}

// answer answers one question over the sources and backends that fit it.
func (a *asked) answer(q *Question) (*Answer, error) {
	if len(q.Key) == 0 {
		return nil, usagef("an object key must not be empty")
	}
	tenant := q.Tenant
	if len(tenant) == 0 {
		tenant = Bytes(defaultTenant)
	}
	sources := a.of(q.Source)
	if len(sources) == 1 && q.Backend != nil {
		answer, _, err := a.object(&sources[0], q.Backend, tenant, q.Key)
		return answer, err
	}
	type fit struct {
		answer *Answer
		seen   bool
	}
	var fits []fit
	for i := range sources {
		s := &sources[i]
		backends := [][]byte{q.Backend}
		if q.Backend == nil {
			var err error
			if backends, err = a.view.Backends(s.ID, tenant); err != nil {
				return nil, err
			}
			if len(backends) == 0 {
				backends = [][]byte{nil} // a scope never seen
			}
		}
		for _, b := range backends {
			answer, seen, err := a.object(s, b, tenant, q.Key)
			if err != nil {
				return nil, err
			}
			fits = append(fits, fit{answer, seen})
		}
	}
	switch len(fits) {
	case 0:
		return unknownObject(tenant, q), nil
	case 1:
		return fits[0].answer, nil
	}
	var all, seen []*Answer
	for _, f := range fits {
		all = append(all, f.answer)
		if f.seen {
			seen = append(seen, f.answer)
		}
	}
	if len(seen) == 1 {
		return seen[0], nil
	}
	return merge(all), nil
}

// unknownObject is the answer of a journal without any source.
func unknownObject(tenant Bytes, q *Question) *Answer {
	m := MediumOut{State: Absent, Certainty: Uncertain, Doubt: &Doubt{Cause: DoubtNoEvidence}}
	a := &Answer{Name: Name{q.Source, q.Backend, tenant, q.Key}, Media: map[string]MediumOut{"cpu": m, "disk": m}}
	a.summarize()
	return a
}

// object answers for one object at one moment; seen tells whether any event was ever about it.
func (a *asked) object(s *journal.Source, backend, tenant, key Bytes) (answer *Answer, seen bool, err error) {
	m := a.moment(s.ID)
	o := index.Object{Source: s.ID, Backend: backend, Tenant: tenant, Key: key}
	if a.media, err = a.view.Media(a.media[:0], &o, m.at); err != nil {
		return nil, false, err
	}
	c, err := readClears(a.view, &o, m.at)
	if err != nil {
		return nil, false, err
	}
	if a.decisions, err = a.judge(a.decisions[:0], &o, m, a.media, &c); err != nil {
		return nil, false, err
	}
	answer = a.newAnswer()
	answer.Name, answer.Media = Name{s.Name, backend, tenant, key}, make(map[string]MediumOut, len(a.media))
	answer.AsOf, answer.Silent = m.asOf, m.silent(m.epoch)
	for i := range a.media {
		seen = seen || a.media[i].Has
		answer.Media[a.media[i].Name] = a.decisions[i].out(m)
	}
	answer.summarize()
	return answer, seen, nil
}

// judge appends what is decided for each medium of an object, given what is known of it at the moment. The decisions point into media and c.
func (a *asked) judge(out []decision, o *index.Object, m *moment, media []index.Medium, c *scopeClears) ([]decision, error) {
	readings, err := a.readingsOf(o, m, c)
	if err != nil {
		return nil, err
	}
	a.spoken.about(readings, *o, m.at)
	cut := false
	for i := range media {
		if media[i].Has {
			cut = cut || m.cuts(&media[i].Newest)
			a.spoken.event(media[i].Newest.Position)
		}
	}
	for i := range media {
		var newest *index.Evidence
		if media[i].Has {
			newest = &media[i].Newest
		}
		d, err := judgeMedium(m, newest, c, cut, &a.spoken)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}
