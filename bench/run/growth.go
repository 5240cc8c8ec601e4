package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"time"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/measure"
	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/bench/report"
)

const (
	// growthChunk is how many events are held at once: made, then appended, then indexed.
	growthChunk = 65_536
	// growthRecent is how many of the newest events the cost of appending is taken over.
	growthRecent = 1_000_000
)

// growth is one directory of a contender that grows through a mixed day.
type growth struct {
	o       Options
	kind    contender.Kind
	samples report.Samples
	feed    *rpc.Client
	dir     string
	events  int
	chunks  []chunk
}

// chunk is what some events cost. index is nothing where appending indexes too.
type chunk struct {
	events        int
	append, index measure.Cost
}

// Growing is the contender that grows: the one that is asked for, kvjournal if none is. Memory is measured, that of one process, so it is
// one alone.
func (o *Options) Growing() (contender.Kind, error) {
	name := report.Base
	switch {
	case len(o.Contenders) > 1:
		return contender.Kind{}, errors.New("one contender grows at a time")
	case len(o.Contenders) == 1:
		name = o.Contenders[0]
	}
	for _, k := range contender.All() {
		if k.Name == name && k.OpenPlaces != nil {
			return k, nil
		}
	}
	return contender.Kind{}, fmt.Errorf("%s does not know where objects are: a growth asks for that", name)
}

// Growth fills one directory to each of the sizes, which rise, and measures what it costs there.
func Growth(ctx context.Context, o Options, sizes []int) ([]report.Result, error) {
	kind, err := o.Growing()
	if err != nil {
		return nil, err
	}
	if o.Feed == nil {
		o.Feed = func() (io.ReadWriteCloser, error) { return local(&o) }
	}
	conn, err := o.Feed()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "kvjournal-growth-")
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer os.RemoveAll(dir)
	g := &growth{o: o, kind: kind, feed: rpc.NewClient(conn), dir: filepath.Join(dir, "data")}
	defer g.feed.Close()
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return nil, err
	}
	for _, size := range sizes {
		if err := g.to(ctx, size); err != nil {
			return g.samples.Results(), fmt.Errorf("at %d events: %w", g.events, err)
		}
	}
	return g.samples.Results(), nil
}

// to grows to a size and measures there.
func (g *growth) to(ctx context.Context, size int) error {
	g.o.say("growing from %d to %d events", g.events, size)
	p, err := g.kind.OpenPlaces(g.dir)
	if err != nil {
		return err
	}
	for g.events < size && err == nil {
		if err = ctx.Err(); err == nil {
			err = g.grow(p, min(growthChunk, size-g.events))
		}
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	w := fmt.Sprintf("growth/%d", g.events)
	g.cost(w)
	g.add(w, "memory_growing", "MiB", measure.PeakMiB())
	var q Questions
	if err = g.feed.Call("Feed.Questions", g.o.Lookups, &q); err == nil {
		err = g.open(w, &q.Hits[0])
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	settled, err := measure.Of(p.Settle)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	g.add(w, "settle", "s", settled.Wall.Seconds())
	if s, ok := p.(contender.Sized); ok {
		g.add(w, "disk_needed", "B/event", float64(s.Needed())/float64(g.events))
	}
	err = g.ask(p, w, &q)
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	n, err := measure.DataBytes(g.dir)
	g.add(w, "disk", "B/event", float64(n)/float64(g.events))
	return err
}

func (g *growth) add(workload, metric, unit string, v float64) {
	g.samples.Add(g.kind.Name, g.kind.Durability, workload, metric, unit, v)
}

// grow appends some events, then indexes them.
func (g *growth) grow(p contender.Places, events int) error {
	var groups [][]message.Message
	if err := g.feed.Call("Feed.Groups", events, &groups); err != nil {
		return err
	}
	c := chunk{}
	for _, group := range groups {
		for i := range group {
			c.events += group[i].Events
		}
	}
	add := func() error {
		if err := appendGroups(p, groups); err != nil {
			return err
		}
		return p.CaughtUp()
	}
	t, apart := p.(contender.Tracked)
	if apart {
		add = func() error { return t.AppendOnly(groups) }
	}
	var err error
	if c.append, err = measure.Of(add); err != nil {
		return err
	}
	if apart {
		if c.index, err = measure.Of(p.CaughtUp); err != nil {
			return err
		}
	}
	g.events += c.events
	g.chunks = append(g.chunks, c)
	return nil
}

// cost is that of the newest events.
func (g *growth) cost(w string) {
	var sum chunk
	for i := len(g.chunks) - 1; i >= 0 && sum.events < growthRecent; i-- {
		c := &g.chunks[i]
		sum.events += c.events
		sum.append.Wall += c.append.Wall
		sum.index.Wall += c.index.Wall
	}
	n := float64(sum.events)
	g.add(w, "append", "us/event", sum.append.Wall.Seconds()*1e6/n)
	if sum.index.Wall > 0 {
		g.add(w, "index", "us/event", sum.index.Wall.Seconds()*1e6/n)
	}
}

// open opens a copy as a crash would leave it, until a first answer.
func (g *growth) open(w string, q *Question) error {
	to := filepath.Join(filepath.Dir(g.dir), "crashed")
	if err := measure.CopyCrashed(g.dir, to); err != nil {
		return err
	}
	defer os.RemoveAll(to)
	g.o.quiet()
	begun := time.Now()
	p, err := g.kind.OpenPlaces(to)
	if err != nil {
		return err
	}
	if err = p.CaughtUp(); err == nil {
		err = isWhere(p, q)
	}
	g.add(w, "open_after_crash", "ms", time.Since(begun).Seconds()*1e3)
	return errors.Join(err, p.Close())
}

// ask measures questions.
func (g *growth) ask(p contender.Places, w string, q *Questions) error {
	at := func(q []Question) func(int) error {
		return func(i int) error {
			_, err := p.At(q[i].Object, q[i].MS)
			return err
		}
	}
	for _, k := range []struct {
		name   string
		before int // questions that are asked before
		ask    func(i int) error
	}{
		{"now_hit", len(q.Hits), func(i int) error { return isWhere(p, &q.Hits[i]) }}, // objects that are asked for again and again
		{"now_miss", len(q.Hits) / 10, func(i int) error { return isWhere(p, &q.Misses[i]) }},
		{"at_hot", len(q.Hits) / 10, at(q.Hot)},
		{"at_uniform", len(q.Hits) / 10, at(q.Uniform)},
	} {
		g.o.quiet()
		for i := range k.before {
			if err := k.ask(i); err != nil {
				return err
			}
		}
		took, err := measure.Each(len(q.Hits), k.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		g.add(w, k.name+"_p50", "us", measure.Percentile(took, 50))
		g.add(w, k.name+"_p99", "us", measure.Percentile(took, 99))
	}
	g.add(w, "memory_asking", "MiB", measure.PeakMiB())
	return nil
}
