package query

import (
	"context"
	"errors"
	"sync"

	"github.com/kvjournal/kvjournal/index"
)

// lookTask is some objects of one scope whose states at both moments are looked up by one goroutine.
type lookTask struct {
	pair *scopePair
	keys touchedKeys
	// part: all its objects; nil: those of keys.
	part *index.Part
	out  chan *changes
}

// keysInTask is how many objects one task has.
const keysInTask = 512

func giveKeys(p *scopePair, k touchedKeys, give func(*lookTask) error) error {
	for len(k.entries) > 0 {
		n := min(keysInTask, len(k.entries))
		if err := give(&lookTask{pair: p, keys: touchedKeys{k.t, k.entries[:n]}}); err != nil {
			return err
		}
		k.entries = k.entries[n:]
	}
	return nil
}

// giveScope gives all objects of a scope.
func (d *differ) giveScope(p *scopePair, give func(*lookTask) error) error {
	parts, err := d.view.Split(&p.Scope, d.q.Prefix, scanParts)
	if err != nil {
		return err
	}
	for i := range parts {
		if err := give(&lookTask{pair: p, part: &parts[i]}); err != nil {
			return err
		}
	}
	return nil
}

// inOrder has tasks done on several goroutines and takes their changes in the order of the tasks. tasks gives them on a goroutine of
// its own, which alone uses the view meanwhile.
func (d *differ) inOrder(ctx context.Context, tasks func(give func(*lookTask) error) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	todo, order := make(chan *lookTask, 2*scanners()), make(chan *lookTask, 2*scanners())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(todo)
		defer close(order)
		err := tasks(func(t *lookTask) error {
			t.out = make(chan *changes, 1)
			for _, to := range []chan *lookTask{todo, order} {
				select {
				case to <- t:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
		if err != nil {
			stop(err)
		}
	})
	for range scanners() {
		wg.Go(func() {
			l := looker{d: d, a: standing{want: d.q.Medium}, b: standing{want: d.q.Medium}}
			defer l.close(stop)
			for t := range todo {
				if ctx.Err() == nil {
					if err := l.task(ctx, t); err != nil {
						stop(err)
					}
				}
				close(t.out)
			}
		})
	}
	line := ChangeLine{}
	for t := range order {
		if ctx.Err() != nil {
			continue
		}
		for open := true; open; {
			var batch *changes
			select {
			case batch, open = <-t.out:
			case <-ctx.Done():
				open = false
			}
			if batch == nil {
				continue
			}
			line.pair, line.batch = t.pair, batch
			for i := range batch.list {
				line.change = &batch.list[i]
				if err := d.takeChange(&line); err != nil {
					stop(err)
					break
				}
			}
			batch.free()
			if ctx.Err() != nil {
				break
			}
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// looker looks up objects at both moments, on one goroutine.
type looker struct {
	d    *differ
	w    *index.Walk // for single objects
	a, b standing
	out  *changes
}

func (l *looker) close(stop func(error)) {
	if l.w != nil {
		if err := l.w.Close(); err != nil {
			stop(err)
		}
	}
}

func (l *looker) task(ctx context.Context, t *lookTask) (err error) {
	if l.out == nil {
		l.out = changesPool.Get().(*changes)
	}
	if t.part != nil {
		err = l.part(ctx, t)
	} else {
		err = l.keys(ctx, t)
	}
	if err != nil {
		return err
	}
	return l.send(ctx, t)
}

func (l *looker) send(ctx context.Context, t *lookTask) error {
	if len(l.out.list) == 0 {
		return nil
	}
	select {
	case t.out <- l.out:
		l.out = changesPool.Get().(*changes)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *looker) keys(ctx context.Context, t *lookTask) (err error) {
	if l.w == nil {
		if l.w, err = l.d.view.Picks(); err != nil {
			return err
		}
	}
	o := index.Object{Source: t.pair.Source, Backend: t.pair.Backend, Tenant: t.pair.Tenant}
	for i := range t.keys.entries {
		o.Key = t.keys.t.key(&t.keys.entries[i])
		l.w.Pick(&o)
		if err := l.object(ctx, t, l.w, l.d.looked); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) part(ctx context.Context, t *lookTask) error {
	w, err := t.part.Walk()
	if err != nil {
		return err
	}
	for n := 1; w.Next() && err == nil; n++ {
		if err = l.object(ctx, t, w, index.Position{}); err == nil && n%lookEvery == 0 {
			err = ctx.Err()
		}
	}
	return errors.Join(err, w.Close())
}

// object looks at one object. One that was touched at or before looked was looked at then.
func (l *looker) object(ctx context.Context, t *lookTask, w *index.Walk, looked index.Position) error {
	earlier, err := l.read(w, t.pair, looked)
	if earlier || err != nil {
		return err
	}
	for _, end := range []struct {
		o *standing
		s *scopeAt
	}{{&l.a, t.pair.a}, {&l.b, t.pair.b}} {
		end.o.speak(end.s, w.Key())
		if err := end.o.judge(end.s); err != nil {
			return err
		}
	}
	if g := l.d.q.Group; g != nil && (!l.b.hasGroup || string(l.b.group) != string(g)) {
		return nil
	}
	key := -1
	for i := range l.b.media {
		a, b := &l.a.media[i], &l.b.media[i]
		if a.present == b.present || l.d.q.Medium != "" && b.name != l.d.q.Medium {
			continue
		}
		if key < 0 {
			key = l.out.object(w.Key(), &l.b)
		}
		l.out.add(key, a, b, t.pair.a.moment.at, &t.pair.b.clears)
	}
	if len(l.out.list) >= keysInTask || len(l.out.arena) >= 1<<20 {
		return l.send(ctx, t)
	}
	return nil
}

// read reads an object at both moments in one go. earlier: it has an event between the first moment and looked.
func (l *looker) read(w *index.Walk, p *scopePair, looked index.Position) (earlier bool, err error) {
	from, to := p.a.moment.at, p.b.moment.at
	l.a.reset()
	l.b.reset()
	for w.NextRowAt(to) {
		r := w.Row()
		l.b.add(r)
		l.a.medium(r.Medium) // so that both have the same media
		before, group := false, false
		for more := true; more; {
			between := from.Before(r.Position)
			if between && !looked.Before(r.Position) {
				return true, nil
			}
			if !between && !before {
				l.a.add(r)
				before = true
			}
			if !group {
				if group, err = l.b.addGroup(r, w.Key()); err != nil {
					return false, err
				}
			}
			switch {
			case !group:
				more = w.NextOfMedium()
			case before:
				more = false
			case from.Before(looked) && looked.Before(r.Position):
				more = w.NextOfMediumAt(looked)
			default:
				more = w.NextOfMediumAt(from)
			}
		}
		w.SkipMedium()
	}
	return false, nil
}
