package run

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/measure"
)

// manyAtOnce is how many objects a batch asks for.
const manyAtOnce = 1000

// places is a contender's turn as one that knows where objects are.
func (h *heat) places() error {
	dir, err := h.fresh("track")
	if err != nil {
		return err
	}
	p, err := h.kind.OpenPlaces(dir)
	if err != nil {
		return err
	}
	if err := h.appendAll(p, "track", p.CaughtUp); err != nil {
		return errors.Join(fmt.Errorf("track: %w", err), p.Close())
	}
	if err := h.firstAnswer(dir); err != nil {
		return errors.Join(fmt.Errorf("open after a crash: %w", err), p.Close())
	}
	settled, err := measure.Of(p.Settle)
	h.needed("track_disk", p)
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if err := h.disk("track_disk", dir); err != nil {
		return err
	}
	h.add("track_disk", "settle", "s", settled.Wall.Seconds())
	if p, err = h.kind.OpenPlaces(dir); err != nil {
		return err
	}
	a := newAsker(h.o.Seed, h.set.First, h.set.Last)
	return errors.Join(h.now(p, a), h.past(p, a), h.rebuild(p), p.Close())
}

// firstAnswer opens a copy of a directory whose owner has not closed it, and asks one question.
func (h *heat) firstAnswer(dir string) error {
	to, err := h.fresh("crashed")
	if err != nil {
		return err
	}
	if err := measure.CopyCrashed(dir, to); err != nil {
		return err
	}
	q := newAsker(h.o.Seed, h.set.First, h.set.Last).hits(1, h.set.Objects)[0]
	h.o.quiet()
	begun := time.Now()
	p, err := h.kind.OpenPlaces(to)
	if err != nil {
		return err
	}
	err = p.CaughtUp()
	if err == nil {
		err = isWhere(p, &q)
	}
	h.add("track_open", "first_answer", "ms", time.Since(begun).Seconds()*1e3)
	return errors.Join(err, p.Close())
}

// isWhere asks for an object whose place is known.
func isWhere(p contender.Places, q *Question) error {
	got, err := p.Now(q.Object)
	if err == nil && got != q.Want {
		err = fmt.Errorf("object %s of %s is at %b, the master has it at %b", q.Object.Key, q.Object.Tenant, got, q.Want)
	}
	return err
}

// first asks for each object that is there once, in batches; afterwards all of them have been asked for.
func (h *heat) first(p contender.Places) error {
	var objects []contender.Object
	for i := range h.set.Objects {
		o := &h.set.Objects[i]
		objects = append(objects, contender.Object{Tenant: o.Tenant, Key: o.Key})
	}
	chunks := slices.Collect(slices.Chunk(objects, manyAtOnce))
	var got []contender.Media
	h.o.quiet()
	took, err := measure.Each(len(chunks), func(i int) (err error) {
		got, err = p.NowMany(got[:0], chunks[i])
		return err
	})
	if err != nil {
		return err
	}
	h.add("now", "first_batch_of_1000", "ms", measure.Percentile(took, 50)/1e3)
	return nil
}

// now asks for the present, for objects that were asked for before.
func (h *heat) now(p contender.Places, a *asker) error {
	if err := h.first(p); err != nil {
		return err
	}
	for _, k := range []struct {
		name string
		ask  []Question
	}{
		{"hit", a.hits(h.o.Lookups, h.set.Objects)},
		{"miss", a.misses(h.o.Lookups)},
	} {
		ask := func(i int) error { return isWhere(p, &k.ask[i]) }
		if err := h.latency("now", k.name, len(k.ask), ask); err != nil {
			return err
		}
	}
	ask := a.hits(manyAtOnce, h.set.Objects)
	objects := make([]contender.Object, len(ask))
	for i := range ask {
		objects[i] = ask[i].Object
	}
	var got []contender.Media
	many := func(int) (err error) {
		got, err = p.NowMany(got[:0], objects)
		return err
	}
	h.o.quiet()
	took, err := measure.Each(max(h.o.Lookups/manyAtOnce, 3), many)
	if err != nil {
		return err
	}
	for i := range ask {
		if got[i] != ask[i].Want {
			return fmt.Errorf("object %s of a batch is at %b, the master has it at %b", objects[i].Key, got[i], ask[i].Want)
		}
	}
	h.add("now", "batch_of_1000", "ms", measure.Percentile(took, 50)/1e3)
	return nil
}

// latency asks n questions, a tenth of them before to be warm.
func (h *heat) latency(workload, metric string, n int, ask func(i int) error) error {
	h.o.quiet()
	for i := range n / 10 {
		if err := ask(i); err != nil {
			return err
		}
	}
	took, err := measure.Each(n, ask)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", workload, metric, err)
	}
	h.add(workload, metric+"_p50", "us", measure.Percentile(took, 50))
	h.add(workload, metric+"_p99", "us", measure.Percentile(took, 99))
	return nil
}

// past asks for moments and histories; all contenders must answer the same.
func (h *heat) past(p contender.Places, a *asker) error {
	seen := a.seen(h.set, h.o.Lookups)
	for _, k := range []struct {
		name string
		ask  []Question
	}{
		{"hot", a.hot(h.o.Lookups, h.set.Objects)},
		{"uniform", a.uniform(h.o.Lookups, seen)},
	} {
		answers := make([]byte, len(k.ask))
		err := h.latency("at", k.name, len(k.ask), func(i int) error {
			m, err := p.At(k.ask[i].Object, k.ask[i].MS)
			answers[i] = byte(m)
			return err
		})
		if err == nil {
			err = h.agree("at_"+k.name, sumOf(answers))
		}
		if err != nil {
			return err
		}
	}
	lengths := make([]byte, max(h.o.Lookups/4, 1))
	err := h.latency("history", "object", len(lengths), func(i int) error {
		n, err := p.History(seen[i])
		lengths[i] = byte(n)
		return err
	})
	if err != nil {
		return err
	}
	return h.agree("history", sumOf(lengths))
}

func sumOf(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

func (h *heat) rebuild(p contender.Places) error {
	r, ok := p.(contender.Rebuilder)
	if !ok {
		return nil
	}
	h.o.quiet()
	cost, err := measure.Of(r.Rebuild)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	h.add("rebuild", "rate", "events/s", float64(h.set.Events)/cost.Wall.Seconds())
	return nil
}
