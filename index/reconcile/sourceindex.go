package reconcile

import (
	"bytes"
	"context"
	"math"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Judge begins to judge the objects of a scope as of a position, by the rules of package query: v holds all up to there. What it returns is
// given a walk that has come to an object and appends what can be claimed of each of its media: cpu and disk, then the others on which it
// was seen by then; nothing where it was not known. It must be the judgement that an answer about that position rests on, with readings
// (index.View.Readings, Says) and flags of R11 taken into account: what it calls sure is not asked for.
type Judge func(v *index.View, scope *index.Scope, at index.Position) (func(dst []Medium, w *index.Walk) ([]Medium, error), error)

// SourceIndex is the Index of a source.
type SourceIndex struct {
	Source uint32
	// Index is the open index; an error where there is none.
	Index func() (*index.Index, error)
	Judge Judge
}

// view opens a view in which an offset is indexed.
func (x *SourceIndex) view(ctx context.Context, offset uint64) (*index.View, error) {
	for {
		if err := waitIndexed(ctx, x.Index, offset); err != nil {
			return nil, err
		}
		open, err := x.Index()
		if err != nil {
			return nil, err
		}
		v, err := open.View()
		if err != nil || v.Applied() >= offset {
			return v, err
		}
		v.Close() // it was exchanged for one that is behind
	}
}

func (x *SourceIndex) scope(s *reading.Scope) index.Scope {
	return index.Scope{Source: x.Source, Backend: s.Backend, Tenant: s.Tenant}
}

// Objects implements Index.
func (x *SourceIndex) Objects(ctx context.Context, scope reading.Scope, h uint64, f func(*Object) error) (err error) {
	v, err := x.view(ctx, h)
	if err != nil {
		return err
	}
	defer v.Close()
	v.Scans()
	s := x.scope(&scope)
	judge, err := x.Judge(v, &s, index.Behind(h))
	if err != nil {
		return err
	}
	w, err := v.Objects(&s, nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	var o Object
	for n := 0; w.Next(); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if o.Media, err = judge(o.Media[:0], w); err != nil {
			return err
		}
		if len(o.Media) == 0 {
			continue
		}
		o.Key = w.Key()
		if err := f(&o); err != nil {
			return err
		}
	}
	return nil
}

// stepsPerKey is how many objects on average Touched steps over from one key to the next before it goes to each by a search: that
// costs about as much (BenchmarkTouched).
const stepsPerKey = 16

// Touched implements Index. It is fast where the keys ascend.
func (x *SourceIndex) Touched(ctx context.Context, scope reading.Scope, keys [][]byte, h, e uint64, touched []bool) (err error) {
	if len(keys) == 0 {
		return nil
	}
	v, err := x.view(ctx, e)
	if err != nil {
		return err
	}
	defer v.Close()
	s := x.scope(&scope)
	for first := 0; first < len(keys); {
		last := first + 1
		for last < len(keys) && bytes.Compare(keys[last-1], keys[last]) <= 0 {
			last++
		}
		if err := x.ascending(v, &s, keys[first:last], h, e, touched[first:last]); err != nil {
			return err
		}
		first = last
	}
	return nil
}

func (x *SourceIndex) ascending(v *index.View, s *index.Scope, keys [][]byte, h, e uint64, touched []bool) error {
	if err := x.pick(v, s, keys[:1], h, e, touched); err != nil {
		return err
	}
	done, err := x.pass(v, s, keys, h, e, touched)
	if err != nil {
		return err
	}
	return x.pick(v, s, keys[done:], h, e, touched[done:])
}

// since reports whether the object that the walk has come to had an event in (h, e].
func since(w *index.Walk, h, e uint64) bool {
	for w.NextRowAt(index.Behind(e)) {
		if w.Row().Position.Offset > h {
			return true
		}
		w.SkipMedium()
	}
	return false
}

// pick looks at each object by a search.
func (x *SourceIndex) pick(v *index.View, s *index.Scope, keys [][]byte, h, e uint64, touched []bool) error {
	if len(keys) == 0 {
		return nil
	}
	w, err := v.Picks()
	if err != nil {
		return err
	}
	o := index.Object{Source: x.Source, Backend: s.Backend, Tenant: s.Tenant}
	for i, key := range keys {
		if o.Key = key; i > 0 && bytes.Equal(key, keys[i-1]) {
			touched[i] = touched[i-1]
			continue
		}
		w.Pick(&o)
		touched[i] = since(w, h, e)
	}
	return w.Close()
}

// pass goes over the objects behind the first key, as long as the keys lie close, and returns how many of the keys are done.
func (x *SourceIndex) pass(v *index.View, s *index.Scope, keys [][]byte, h, e uint64, touched []bool) (done int, err error) {
	for done = 1; done < len(keys) && bytes.Equal(keys[done], keys[0]); done++ {
		touched[done] = touched[0]
	}
	if done == len(keys) {
		return done, nil
	}
	w, err := v.ObjectsBehind(s, nil, keys[0])
	if err != nil {
		return done, err
	}
	for steps := 0; done < len(keys) && steps < stepsPerKey*(done+aFew) && w.Next(); steps++ {
		for done < len(keys) && bytes.Compare(w.Key(), keys[done]) > 0 {
			touched[done] = false // not known at all
			done++
		}
		if done == len(keys) || !bytes.Equal(w.Key(), keys[done]) {
			continue
		}
		is := since(w, h, e)
		for key := keys[done]; done < len(keys) && bytes.Equal(keys[done], key); done++ {
			touched[done] = is
		}
	}
	return done, w.Close()
}

// aFew keys are tried before Touched judges how close they lie.
const aFew = 4

// Cleared implements Index.
func (x *SourceIndex) Cleared(ctx context.Context, scope reading.Scope, h, e uint64) (bool, error) {
	v, err := x.view(ctx, e)
	if err != nil {
		return false, err
	}
	defer v.Close()
	s := x.scope(&scope)
	page, err := v.ClearPage(nil, &s, index.Behind(h), index.Behind(e), false, 1)
	return len(page) > 0, err
}

// Doubt implements Index.
func (x *SourceIndex) Doubt(ctx context.Context) (Doubt, error) {
	v, err := x.view(ctx, 0)
	if err != nil {
		return Doubt{}, err
	}
	defer v.Close()
	st := v.Source(x.Source)
	d := Doubt{Connected: st.Connected && !st.Window}
	m, has, err := v.Mark(x.Source, math.MaxUint64-1)
	if err == nil && has {
		d.Mark, d.At = m.End.Offset, time.UnixMilli(m.Received)
	}
	return d, err
}
