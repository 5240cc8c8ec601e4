package reconcile

import (
	"errors"
	"math"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// judgeFor is what package query decides (R2, R7, R8, R9, R11), in short, for tests: query may not be imported from here.
func judgeFor(j *journal.Journal) Judge {
	return func(v *index.View, scope *index.Scope, at index.Position) (func([]Medium, *index.Walk) ([]Medium, error), error) {
		r, err := newRules(j, v, scope, at)
		if err != nil {
			return nil, err
		}
		return func(dst []Medium, w *index.Walk) ([]Medium, error) {
			rows := map[string]*index.Evidence{}
			var names []string
			for w.NextRowAt(at) {
				e := w.Row().Evidence
				rows[w.Row().Medium] = &e
				names = append(names, w.Row().Medium)
				w.SkipMedium()
			}
			if len(names) == 0 {
				return dst, nil
			}
			return r.media(dst, w.Key(), rows, names)
		}, nil
	}
}

// rules are what holds for all objects of a scope at a moment.
type rules struct {
	v                  *index.View
	scope              *index.Scope
	at, mark           index.Position
	hasMark            bool
	last               uint64
	clear, proof       index.Evidence
	hasClear, hasProof bool
	readings           []index.Reading
	flagged            map[uint64]bool
}

func newRules(j *journal.Journal, v *index.View, scope *index.Scope, at index.Position) (*rules, error) {
	r := &rules{v: v, scope: scope, at: at}
	m, has, err := v.Mark(scope.Source, min(at.Offset, math.MaxUint64-1))
	if err != nil {
		return nil, err
	}
	r.mark, r.hasMark = m.End, has
	last, err := j.LastBatch(scope.Source, at.Offset)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return nil, err
	}
	r.last = last.Offset
	o := index.Object{Source: scope.Source, Backend: scope.Backend, Tenant: scope.Tenant}
	if r.clear, r.hasClear, err = v.Cleared(&o, at); err != nil {
		return nil, err
	}
	if r.proof, r.hasProof, err = v.Proof(&o, at); err != nil {
		return nil, err
	}
	from := index.Position{}
	if has {
		from = m.End
	}
	if r.flagged, err = v.Flagged(scope.Source); err != nil {
		return nil, err
	}
	return r, v.Readings(scope, from, at, func(one *index.Reading) error {
		r.readings = append(r.readings, *one)
		return nil
	})
}

func (r *rules) media(dst []Medium, key []byte, rows map[string]*index.Evidence, names []string) ([]Medium, error) {
	cut := false
	for _, e := range rows {
		cut = cut || e.Cut && e.Position.Offset == r.last
	}
	all := []string{cpu, disk}
	for _, n := range names {
		if n != cpu && n != disk {
			all = append(all, n)
		}
	}
	for _, n := range all {
		m, err := r.decide(key, rows[n], cut)
		if err != nil {
			return dst, err
		}
		m.Name = n
		dst = append(dst, m)
	}
	return dst, nil
}

func (r *rules) decide(key []byte, newest *index.Evidence, cut bool) (m Medium, err error) {
	evidence, survived := newest, false
	switch {
	case newest != nil && newest.Stored:
		if survived = r.hasClear && newest.Position.Before(r.clear.Position); survived {
			evidence = &r.clear
		} else {
			m.Present = true
		}
	case r.hasProof && (newest == nil || newest.Position.Before(r.proof.Position)):
		evidence = &r.proof
	}
	m.Sure = !survived && !cut && evidence != nil && (!r.hasMark || r.mark.Before(evidence.Position))
	if !m.Sure && !cut {
		o := index.Object{Source: r.scope.Source, Backend: r.scope.Backend, Tenant: r.scope.Tenant, Key: key}
		for i := range r.readings {
			one := &r.readings[i]
			if evidence != nil && !evidence.Position.Before(one.Position) || newest != nil && !newest.Position.Before(one.Position) {
				break
			}
			says, err := r.v.Says(one, &o)
			if err != nil {
				return m, err
			}
			if says {
				evidence, m.Sure = &one.Evidence, true
				break
			}
		}
	}
	if m.Sure && m.Present && r.flagged[evidence.Epoch] {
		m.Sure = false
		for i := range r.readings {
			one := &r.readings[i]
			m.Sure = m.Sure || evidence.Reading && evidence.Position == one.Position && r.at.Offset <= one.Through
		}
	}
	return m, nil
}
