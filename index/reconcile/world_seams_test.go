package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// Keys, BatchQuery, Status and URL make the world a Master.

var errDown = errors.New("no answer")

func (w *world) master(call string) (process int, err error) {
	w.calls = append(w.calls, call)
	process = w.process
	w.hook(call)
	return process, w.alive(process)
}

func (w *world) alive(process int) error {
	switch {
	case w.standby:
		return &mooncake.StandbyError{URL: w.URL()}
	case w.off || process != w.process:
		return &mooncake.UnreachableError{URL: w.URL(), Err: errDown}
	}
	return nil
}

func (w *world) URL() string { return "http://master:9003" }

// shardsOf is into how many parts a listing is cut.
const shardsOf = 4

func (w *world) Keys(_ context.Context, f func([]byte) error) (l mooncake.Listing, err error) {
	process, err := w.master("keys")
	for shard := 0; shard < shardsOf && err == nil; shard++ {
		var keys []string
		for n := range w.truth {
			if n.tenant == event.DefaultTenant && len(n.key)%shardsOf == shard && !slices.Contains(w.hidden, n.key) {
				keys = append(keys, n.key)
			}
		}
		if shard == 0 {
			keys = append(keys, w.silentKeys...)
		}
		slices.Sort(keys)
		for _, k := range keys {
			for _, line := range lines(k) {
				if err := f([]byte(line)); err != nil {
					return l, err
				}
				l.Keys++
			}
		}
		w.hook(fmt.Sprint("keys/", shard))
		err = w.alive(process)
	}
	return l, err
}

func lines(key string) (out []string) {
	for {
		i := slices.Index([]byte(key), '\n')
		if i < 0 {
			return append(out, key)
		}
		out, key = append(out, key[:i]), key[i+1:]
	}
}

func (w *world) BatchQuery(_ context.Context, keys [][]byte) (mooncake.Answers, error) {
	process, err := w.master("media")
	if err != nil {
		return mooncake.Answers{}, err
	}
	out := make([]mooncake.Answer, len(keys))
	for i, k := range keys {
		w.asked = append(w.asked, string(k))
		m, ok := w.truth[name{event.DefaultTenant, string(k)}]
		switch {
		case mooncake.WhyUnaskable(k) != "":
			out[i].State = mooncake.Unaskable
		case !ok:
			out[i].State = mooncake.NotFound
		case m == 0:
			out[i].State = mooncake.NotReady
		default:
			out[i] = mooncake.Answer{State: mooncake.Readable, CPU: m&onCPU != 0, Disk: m&onDisk != 0}
		}
		w.hook("media/key")
		if err := w.alive(process); err != nil {
			return mooncake.Answers{}, err
		}
	}
	return mooncake.Answers{Of: out}, nil
}

func (w *world) Status(context.Context) (mooncake.Status, error) {
	process, err := w.master("status")
	if err != nil {
		return mooncake.Status{}, err
	}
	s := w.counted
	s.Sent = w.now
	w.hook("status/answered")
	return s, w.alive(process)
}

// Stand and its neighbours make the world a Log.
type worldLog struct{ *world }

func (w worldLog) Stand(context.Context) (recorder.Standing, error) {
	w.hook("stand")
	return w.feed.Standing(), nil
}

func (w worldLog) Begin(_ context.Context, b *reading.Begun) (s recorder.Standing, err error) {
	w.hook("begin")
	err = w.write(func(g *journal.Group) error {
		if now := w.feed.Standing(); !now.Connected {
			return ErrDisconnected
		}
		_, err := w.feed.Fact(g, journal.ReconciliationBegun, w.now.UnixNano(), continuity.Verdict{}, b)
		s = w.feed.Standing()
		return err
	})
	w.calls = append(w.calls, "begin")
	if err == nil {
		w.hook("begun")
	}
	return s, err
}

func (w worldLog) Await(_ context.Context, n uint64, from recorder.Standing, d time.Duration) (recorder.Standing, bool, error) {
	w.hook("await")
	if now := w.feed.Standing(); !from.Unbroken(&now) {
		return now, true, nil
	}
	ends := w.feed.Watch(n, from)
	defer w.feed.Unwatch()
	for until := w.now.Add(d); ; {
		select {
		case s := <-ends:
			return s, true, nil
		default:
		}
		if !w.now.Before(until) {
			return recorder.Standing{}, false, nil
		}
		w.pass(until.Sub(w.now))
	}
}

func (w worldLog) Settled(_ context.Context, since recorder.Standing, poll, before *mooncake.Status) (s recorder.Standing, ok bool, err error) {
	w.hook("settled")
	err = w.write(func(g *journal.Group) error {
		if now := w.feed.Standing(); now.Offset != since.Offset {
			return nil
		}
		ok = true
		err := AppendPoll(w.feed, g, w.URL(), poll, before)
		s = w.feed.Standing()
		return err
	})
	return s, ok, err
}

func (w worldLog) End(_ context.Context, h recorder.Standing, parts [][]byte, e *reading.Ended) (offset uint64, err error) {
	w.hook("end")
	err = w.write(func(g *journal.Group) error {
		now := w.feed.Standing()
		if err := mayGoOn(&h, &now, e.Scopes[0].Backend); err != nil {
			return err
		}
		offset, err = w.feed.End(g, w.now.UnixNano(), parts, e)
		return err
	})
	return offset, err
}

// worldClock is the world's time.
type worldClock struct{ *world }

func (w worldClock) Now() time.Time { return w.now }

func (w worldClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		w.pass(d)
	}
	return ctx.Err()
}

func (w *world) index() *SourceIndex {
	return &SourceIndex{Source: w.source, Index: func() (*index.Index, error) { return w.x, nil }, Judge: judgeFor(w.j)}
}

func (w *world) runner() *Runner {
	return New(Options{
		Choose: func(context.Context) (Master, error) { return w, nil },
		Log:    worldLog{w}, Index: w.index(), Clock: worldClock{w}, Random: rand.New(rand.NewPCG(1, 1)).Float64,
	})
}
