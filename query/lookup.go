package query

import (
	"context"

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
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
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
	sources map[string][]journal.Source // by the name asked for; "": all
	moments map[uint32]*moment
	view    *index.View
	media   []index.Medium

	// scope and readings are of the object asked for last.
	scope    string
	readings scopeReadings
	spoken   spoken
}

// readingsOf returns the readings of the object's scope that count at the moment.
func (a *asked) readingsOf(o *index.Object, m *moment, c *scopeClears) (*scopeReadings, error) {
	s := index.Scope{Source: o.Source, Backend: o.Backend, Tenant: o.Tenant}
	if name := s.Name(); a.readings.view == nil || name != a.scope {
		var err error
		if a.readings, err = newScopeReadings(a.view, &s, m, c); err != nil {
			return nil, err
		}
		a.scope = name
	}
	return &a.readings, nil
}

func (e *Engine) ask(ctx context.Context, questions []Question, w When) (*asked, error) {
	a := &asked{sources: map[string][]journal.Source{}, moments: map[uint32]*moment{}}
	var union []journal.Source
	for i := range questions {
		name := questions[i].Source
		if _, known := a.sources[name]; known {
			continue
		}
		some, err := e.sources(name)
		if err != nil {
			return nil, err
		}
		if err := oneSource(some, w); err != nil {
			return nil, err
		}
		a.sources[name] = some
		for _, s := range some {
			if a.moments[s.ID] == nil {
				a.moments[s.ID] = &moment{}
				union = append(union, s)
			}
		}
	}
	view, moments, err := e.moments(ctx, union, w)
	if err != nil {
		return nil, err
	}
	a.view = view
	for i := range moments {
		a.moments[moments[i].source] = &moments[i]
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
	type fit struct {
		answer *Answer
		seen   bool
	}
	var fits []fit
	for _, s := range a.sources[q.Source] {
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
			o := index.Object{Source: s.ID, Backend: b, Tenant: tenant, Key: q.Key}
			answer, seen, err := a.object(&o, a.moments[s.ID])
			if err != nil {
				return nil, err
			}
			answer.Name = Name{s.Name, b, tenant, q.Key}
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
func (a *asked) object(o *index.Object, m *moment) (answer *Answer, seen bool, err error) {
	if a.media, err = a.view.Media(a.media[:0], o, m.at); err != nil {
		return nil, false, err
	}
	c, err := readClears(a.view, o, m.at)
	if err != nil {
		return nil, false, err
	}
	j, err := a.judge(o, m, a.media, &c)
	if err != nil {
		return nil, false, err
	}
	answer = &Answer{Media: make(map[string]MediumOut, len(a.media)), AsOf: m.asOf, Silent: m.silent(m.epoch)}
	for i := range a.media {
		seen = seen || a.media[i].Has
		answer.Media[a.media[i].Name] = j[i].out(m)
	}
	answer.summarize()
	return answer, seen, nil
}

// judge decides for each medium of an object, given what is known of it at the moment.
func (a *asked) judge(o *index.Object, m *moment, media []index.Medium, c *scopeClears) ([]decision, error) {
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
	out := make([]decision, len(media))
	for i := range media {
		var newest *index.Evidence
		if media[i].Has {
			newest = &media[i].Newest
		}
		if out[i], err = judgeMedium(m, newest, c, cut, &a.spoken); err != nil {
			return nil, err
		}
	}
	return out, nil
}
