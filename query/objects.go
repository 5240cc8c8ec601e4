package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// AnyState selects objects whatever their state.
const AnyState = "any"

// ObjectsQuestion asks for the objects of some scopes at a moment: those about which the publisher had announced anything by then.
type ObjectsQuestion struct {
	Where
	At When
	// Prefix begins the keys; empty: all keys.
	Prefix Bytes
	// Group is the group_id of the newest event that had one; nil: any or none.
	Group Bytes
	// Medium is what State and Certainty are about; empty: the object as a whole, present if it is on any medium.
	Medium string
	// State is Present, Absent or AnyState; empty: Present.
	State string
	// Certainty is Confirmed or Uncertain; empty: either.
	Certainty string
	// After leaves out the objects up to this one. Source, backend and tenant may be left out where one scope is selected.
	After *Name
	// Limit is how many objects are given at most; 0: all.
	Limit uint64
}

// matches reports whether an object is asked for.
func (q *ObjectsQuestion) matches(o *standing) bool {
	if !o.seen || q.Group != nil && (!o.hasGroup || !bytes.Equal(o.group, q.Group)) {
		return false
	}
	present, confirmed := o.present, o.confirmed
	if q.Medium != "" {
		m := o.find(q.Medium)
		present, confirmed = m.present, m.confirmed()
	}
	switch q.State {
	case Absent:
		if present {
			return false
		}
	case AnyState:
	default:
		if !present {
			return false
		}
	}
	return q.Certainty == "" || confirmed == (q.Certainty == Confirmed)
}

// selection are sources in the order of their names, each at its moment, in one view.
type selection struct {
	view    *index.View
	sources []journal.Source
	moments []moment
}

// choose opens a view for a long reading of sources at a moment. Close the view.
func (e *Engine) choose(ctx context.Context, source string, w When) (*selection, error) {
	sources, err := e.sources(source)
	if err != nil {
		return nil, err
	}
	if err := oneSource(sources, w); err != nil {
		return nil, err
	}
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b journal.Source) int { return strings.Compare(a.Name, b.Name) })
	v, moments, err := e.moments(ctx, sources, w)
	if err != nil {
		return nil, err
	}
	v.Scans()
	return &selection{v, sources, moments}, nil
}

// Objects calls f with each object asked for, in the order of source, backend, tenant and key, as Lookup would answer for it. What f
// gets is valid until it returns. The memory it takes does not grow with the number of objects. progress is told objects looked at, of
// at most so many.
func (e *Engine) Objects(ctx context.Context, q ObjectsQuestion, progress Progress, f func(*ObjectLine) error) error {
	s, err := e.choose(ctx, q.Source, q.At)
	if err != nil {
		return err
	}
	defer s.view.Close()
	after, err := s.after(&q)
	if err != nil {
		return err
	}
	l := listing{q: &q, line: ObjectLine{o: standing{want: q.Medium}}, progress: progress, f: f}
	for _, src := range s.sources {
		l.total += s.view.Source(src.ID).Events
	}
	for i, src := range s.sources {
		l.line.asOf = nil
		err := q.scopes(s.view, src.ID, func(scope *index.Scope) error {
			var behind []byte
			if after != nil {
				switch after.place(src.Name, scope) {
				case -1:
					return nil
				case 0:
					behind = after.Key
				}
			}
			at, err := newScopeAt(s.view, scope, src.Name, &s.moments[i])
			if err != nil {
				return err
			}
			return l.scope(ctx, s.view, at, behind)
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return err
		}
	}
	progress.tell(l.total, l.total)
	return nil
}

// after completes the name of the object to go on behind.
func (s *selection) after(q *ObjectsQuestion) (*Name, error) {
	n := q.After
	if n == nil || n.Source != "" && n.Backend != nil && n.Tenant != nil {
		return n, nil
	}
	var out *Name
	for _, src := range s.sources {
		err := q.scopes(s.view, src.ID, func(scope *index.Scope) error {
			if n.Source != "" && n.Source != src.Name || n.Backend != nil && !bytes.Equal(n.Backend, scope.Backend) || n.Tenant != nil && !bytes.Equal(n.Tenant, scope.Tenant) {
				return nil
			}
			if out != nil {
				return usagef("after %q: there are several sources, backends or tenants, and each has its own keys; name the last object as a line of JSON, as in the answer, or select one tenant", []byte(n.Key))
			}
			out = &Name{Source: src.Name, Backend: append(Bytes{}, scope.Backend...), Tenant: append(Bytes{}, scope.Tenant...), Key: n.Key}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if out == nil {
		return &Name{Key: n.Key}, nil // nothing is selected
	}
	return out, nil
}

// place compares a scope with that of the object: -1 where it lies before it.
func (n *Name) place(source string, s *index.Scope) int {
	if c := strings.Compare(source, n.Source); c != 0 {
		return c
	}
	if c := bytes.Compare(s.Backend, n.Backend); c != 0 {
		return c
	}
	return bytes.Compare(s.Tenant, n.Tenant)
}

// listing gives the objects of one scope after the other.
type listing struct {
	q        *ObjectsQuestion
	line     ObjectLine
	given    uint64
	looked   uint64
	total    uint64
	progress Progress
	f        func(*ObjectLine) error
}

// lookEvery is how many objects are looked at between two looks at the context and at the progress.
const lookEvery = 1 << 12

func (l *listing) scope(ctx context.Context, v *index.View, at *scopeAt, behind []byte) (err error) {
	w, err := v.ObjectsBehind(&at.Scope, l.q.Prefix, behind)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); cerr != nil {
			err = cerr
		}
	}()
	l.line.enter(at)
	for w.Next() {
		if l.looked++; l.looked%lookEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.progress.tell(min(l.looked, l.total), l.total)
		}
		if err := l.line.o.read(w, at, true); err != nil {
			return err
		}
		if !l.q.matches(&l.line.o) {
			continue
		}
		l.line.key = w.Key()
		if err := l.f(&l.line); err != nil {
			return err
		}
		if l.given++; l.given == l.q.Limit {
			return errEnough
		}
	}
	return ctx.Err()
}
