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

// asked are the sources that some questions are about, at the questions' moment, in one view.
type asked struct {
	named   []namedSources
	moments []moment // of the sources in named, each once
	view    *index.View

	media     []index.Medium
	decisions []decision
	rooms     rooms

	// What is known of the scope of the object asked for last; entered is false before the first.
	entered  bool
	scope    index.Scope
	clears   scopeClears
	readings scopeReadings
	spoken   spoken
	name     []byte // of a scope

	opened index.View // what view points to
	one    [1]journal.Source
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

// readingsOf returns the readings of the object's scope that count at the moment.
func (a *asked) readingsOf(o *index.Object, m *moment, c *scopeClears) (*scopeReadings, error) {
	if a.isIn(o) {
		return &a.readings, nil
	}
	r, err := newScopeReadings(a.view, &index.Scope{Source: o.Source, Backend: o.Backend, Tenant: o.Tenant}, m, c)
	return &r, err
}

// isIn reports whether an object is of the scope that was entered last.
func (a *asked) isIn(o *index.Object) bool {
	return a.entered && a.scope.Source == o.Source && bytes.Equal(a.scope.Tenant, o.Tenant) && bytes.Equal(a.scope.Backend, o.Backend)
}

// enter reads what is known of the object's scope at the moment of its source. The names in o are kept until the next question.
func (a *asked) enter(o *index.Object, m *moment) (err error) {
	if a.isIn(o) {
		return nil
	}
	a.entered = false
	a.scope = index.Scope{Source: o.Source, Backend: o.Backend, Tenant: o.Tenant}
	if m.from != nil {
		a.name = a.scope.AppendName(a.name[:0])
		if s, ok := m.from.scope(a.name); ok {
			a.clears, a.readings, a.entered = s.clears, s.readings, true
			a.readings.view = a.view
			return nil
		}
	}
	if a.clears, err = readClears(a.view, o, m.at); err != nil {
		return err
	}
	if a.readings, err = newScopeReadings(a.view, &a.scope, m, &a.clears); err != nil {
		return err
	}
	a.entered = true
	if m.from != nil {
		m.from.keep(a.name, settledScope{a.clears, a.readings})
	}
	return nil
}

func (e *Engine) ask(ctx context.Context, questions []Question, w When) (*asked, error) {
	a := &asked{}
	return a, e.askIn(ctx, a, questions, w)
}

// askIn is ask in memory that was used before.
func (e *Engine) askIn(ctx context.Context, a *asked, questions []Question, w When) error {
	a.named, a.entered, a.spoken = a.named[:0], false, spoken{}
	a.rooms.again(len(questions))
	var union []journal.Source
	for i := range questions {
		name := questions[i].Source
		if i > 0 && (name == questions[i-1].Source || a.of(name) != nil) {
			continue
		}
		some, err := e.namedSource(name, &a.one, i == 0)
		if err != nil {
			return err
		}
		if err := oneSource(some, w); err != nil {
			return err
		}
		a.named = append(a.named, namedSources{name, some})
		if i == 0 {
			union = some // of a name, or all: each is there once
			continue
		}
		for _, s := range some {
			if !slices.ContainsFunc(union, func(u journal.Source) bool { return u.ID == s.ID }) {
				union = append(union[:len(union):len(union)], s)
			}
		}
	}
	if n := len(union); cap(a.moments) < n {
		a.moments = make([]moment, n)
	} else {
		a.moments = a.moments[:n]
	}
	a.view = &a.opened
	return e.momentsIn(ctx, a.view, a.moments, union, w)
}

// namedSource is sources; where it is one, it may be put into one.
func (e *Engine) namedSource(name string, one *[1]journal.Source, may bool) ([]journal.Source, error) {
	if may && name != "" {
		var ok bool
		if one[0], ok = e.Journal.SourceNamed(name); ok {
			return one[:], nil
		}
	}
	return e.sources(name)
}

// answer answers one question over the sources and backends that fit it.
func (a *asked) answer(q *Question) (*Answer, error) {
	if len(q.Key) == 0 {
		return nil, usagef("an object key must not be empty")
	}
	tenant := tenantOf(&q.Name)
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
	return a.conclude(s, &o, m)
}

// kept answers a question that is about one object, if what the index has of it is kept in memory: else the answer is nil, as where
// answer is needed to find the object, or the error.
func (a *asked) kept(q *Question) (*Answer, error) {
	sources := a.of(q.Source)
	if len(sources) != 1 || q.Backend == nil || len(q.Key) == 0 {
		return nil, nil
	}
	s := &sources[0]
	m := a.moment(s.ID)
	o := index.Object{Source: s.ID, Backend: q.Backend, Tenant: tenantOf(&q.Name), Key: q.Key}
	var known bool
	if a.media, known = a.view.KeptMedia(a.media[:0], &o, m.at); !known {
		return nil, nil
	}
	answer, _, err := a.conclude(s, &o, m)
	return answer, err
}

// conclude is the answer that follows from a.media.
func (a *asked) conclude(s *journal.Source, o *index.Object, m *moment) (answer *Answer, seen bool, err error) {
	if err := a.enter(o, m); err != nil {
		return nil, false, err
	}
	if a.decisions, err = a.judgeIn(a.decisions[:0], o, m, a.media, &a.clears, &a.readings); err != nil {
		return nil, false, err
	}
	r := a.rooms.one()
	answer = &r.answer
	*answer = Answer{Name: Name{s.Name, o.Backend, o.Tenant, o.Key}, Media: r.media(len(a.media)), AsOf: m.asOf, Silent: m.silent(m.epoch)}
	for i := range a.media {
		seen = seen || a.media[i].Has
		answer.Media[a.media[i].Name] = a.decisions[i].outIn(m, r.medium(i))
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
	return a.judgeIn(out, o, m, media, c, readings)
}

// judgeIn is judge with the readings of the object's scope.
func (a *asked) judgeIn(out []decision, o *index.Object, m *moment, media []index.Medium, c *scopeClears, readings *scopeReadings) ([]decision, error) {
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
