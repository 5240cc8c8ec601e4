package query

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/kvjournal/kvjournal/index"
)

// scopeAt is a scope at a moment: with an object's events, all that judging it takes.
type scopeAt struct {
	index.Scope
	source string
	moment *moment
	clears scopeClears
	// readings are those of the scope that count at the moment.
	readings scopeReadings
}

// newScopeAt reads the newest clears and readings of a scope at a moment of its source.
func newScopeAt(v *index.View, s *index.Scope, source string, m *moment) (*scopeAt, error) {
	out := &scopeAt{Scope: *s, source: source, moment: m}
	o := index.Object{Source: s.Source, Backend: s.Backend, Tenant: s.Tenant}
	var err error
	if out.clears, err = readClears(v, &o, m.at); err == nil {
		out.readings, err = newScopeReadings(v, s, m, &out.clears)
	}
	return out, err
}

// steps is the newest reading that ended by the moment and began at h, where whether an object was touched in (h, e] shows on the way
// through its events; nil: none.
func (s *scopeAt) steps() *index.Reading {
	if len(s.readings.list) > 0 && s.readings.list[0].Through <= s.moment.at.Offset {
		return &s.readings.list[0]
	}
	return nil
}

// standing is what is known of one object at one moment. It is used again for the next object: nothing is allocated.
type standing struct {
	// want is a medium that is judged whether or not the object was seen on it; empty: none.
	want string
	// media are cpu and disk, then every other medium on which the object was seen by the moment, in the order of their names.
	media []mediumStanding
	// seen: there is an event by the moment. Without one, the object was not known then.
	seen bool
	// present and confirmed are the object's own, as Answer.summarize has them.
	present, confirmed bool
	// group is that of the newest event with a group_id, by the moment, if groups were asked for.
	group    []byte
	hasGroup bool
	groupAt  index.Position

	spoken spoken
}

// mediumStanding is one medium of a standing.
type mediumStanding struct {
	name   string
	has    bool
	newest index.Evidence
	decision
}

// reset forgets the object.
func (o *standing) reset() {
	o.media = append(o.media[:0], mediumStanding{name: "cpu"}, mediumStanding{name: "disk"})
	o.seen, o.hasGroup, o.group, o.groupAt = false, false, o.group[:0], index.Position{}
}

// medium returns the place of a medium.
func (o *standing) medium(name string) *mediumStanding {
	switch name {
	case "cpu":
		return &o.media[0]
	case "disk":
		return &o.media[1]
	}
	if last := &o.media[len(o.media)-1]; last.name == name {
		return last
	}
	o.media = append(o.media, mediumStanding{name: name})
	return &o.media[len(o.media)-1]
}

// add takes the newest event of a medium by the moment.
func (o *standing) add(r *index.Row) {
	m := o.medium(r.Medium)
	m.has, m.newest, o.seen = true, r.Evidence, true
}

// addGroup takes an event's group if it is newer than what is known. It reports whether older events of the medium have none to give.
func (o *standing) addGroup(r *index.Row, key []byte) (enough bool, err error) {
	if o.hasGroup && !o.groupAt.Before(r.Position) {
		return true, nil
	}
	if !r.HasGroup {
		return false, nil
	}
	o.hasGroup, o.groupAt = true, r.Position
	o.group, err = r.AppendGroup(o.group[:0], key)
	return true, err
}

// read reads the object that the walk has come to, at a moment, and judges it.
func (o *standing) read(w *index.Walk, s *scopeAt, groups bool) error {
	o.reset()
	at := s.moment.at
	newest, touched := s.steps(), false
	for w.NextRowAt(at) {
		r := w.Row()
		o.add(r)
		more := true // Row is one of the medium's
		for groups {
			enough, err := o.addGroup(r, w.Key())
			if err != nil {
				return err
			}
			if enough {
				break
			}
			touched = touched || newest.TouchedBy(r.Position)
			if more = w.NextOfMedium(); !more {
				break
			}
		}
		if newest != nil && !touched && more {
			through := index.Behind(newest.Through)
			touched = newest.TouchedBy(r.Position) || through.Before(r.Position) && w.NextOfMediumAt(through) && newest.TouchedBy(w.Row().Position)
		}
		w.SkipMedium()
	}
	if !o.seen && o.want == "" {
		return nil // it was not known yet
	}
	o.speak(s, w.Key())
	o.spoken.stepped, o.spoken.touched = newest != nil, touched
	return o.judge(s)
}

// speak prepares for what readings say of the object.
func (o *standing) speak(s *scopeAt, key []byte) {
	o.spoken.about(&s.readings, index.Object{Source: s.Source, Backend: s.Backend, Tenant: s.Tenant, Key: key}, s.moment.at)
	for i := range o.media {
		if m := &o.media[i]; m.has {
			o.spoken.event(m.newest.Position)
		}
	}
}

// find returns a medium, nil where the object was not seen on it.
func (o *standing) find(name string) *mediumStanding {
	for i := range o.media {
		if o.media[i].name == name {
			return &o.media[i]
		}
	}
	return nil
}

// judge decides for each medium and for the object, which speak was told of.
func (o *standing) judge(s *scopeAt) (err error) {
	if o.want != "" && o.find(o.want) == nil {
		o.media = append(o.media, mediumStanding{name: o.want})
	}
	cut := false
	for i := range o.media {
		m := &o.media[i]
		cut = cut || m.has && s.moment.cuts(&m.newest)
	}
	present, sure, all := false, false, true
	for i := range o.media {
		m := &o.media[i]
		var newest *index.Evidence
		if m.has {
			newest = &m.newest
		}
		if m.decision, err = judgeMedium(s.moment, newest, &s.clears, cut, &o.spoken); err != nil {
			return err
		}
		confirmed := m.decision.confirmed()
		present = present || m.decision.present
		sure = sure || m.decision.present && confirmed
		all = all && confirmed
	}
	o.present, o.confirmed = present, sure || !present && all
	return nil
}

// scanners is how many goroutines scan.
func scanners() int { return max(2, runtime.GOMAXPROCS(0)) }

// scanParts is about how many parts a scan of much is cut into.
const scanParts = 256

// scan walks the objects of scopes, cut into parts, on several goroutines, in no order. scopes gives the scopes, each with what
// its caller wants to know of it again (T), on one goroutine, which alone may use v meanwhile. visit walks a part; worker tells the
// goroutines apart, from 0 to scanners()-1. done is called once for each scope behind all its visits, by one goroutine at a time;
// nil: never. visit looks at ctx from time to time; the first error ends the scan.
func scan[T any](ctx context.Context, v *index.View, prefix []byte, progress Progress,
	scopes func(give func(*index.Scope, T) error) error, visit func(ctx context.Context, worker int, about T, w *index.Walk) error, done func(T)) error {
	type scope struct {
		about T
		left  atomic.Int64
	}
	type work struct {
		*scope
		index.Part
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	parts := make(chan work, 2*scanners())
	var given, finished atomic.Uint64
	var wg sync.WaitGroup
	var ending sync.Mutex
	for n := range scanners() {
		wg.Go(func() {
			for p := range parts {
				if ctx.Err() != nil {
					continue
				}
				w, err := p.Walk()
				if err == nil {
					err = visit(ctx, n, p.about, w)
					if cerr := w.Close(); err == nil {
						err = cerr
					}
				}
				if err != nil {
					stop(err)
					continue
				}
				last := p.left.Add(-1) == 0
				ending.Lock()
				if last && done != nil {
					done(p.about)
				}
				progress.tell(finished.Add(1), given.Load()+1) // there may be more to come
				ending.Unlock()
			}
		})
	}
	err := scopes(func(s *index.Scope, about T) error {
		cut, err := v.Split(s, prefix, scanParts)
		if err != nil {
			return err
		}
		of := &scope{about: about}
		of.left.Store(int64(len(cut)))
		given.Add(uint64(len(cut)))
		for _, p := range cut {
			select {
			case parts <- work{of, p}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	if err != nil {
		stop(err)
	}
	close(parts)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	progress.tell(given.Load()+1, given.Load()+1)
	return nil
}
