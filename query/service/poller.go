package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// DefaultPollEvery is how often a master's counters are asked for: two answers that are equal, at least a second apart, prove `now`.
const DefaultPollEvery = time.Second

// How many polls lie between two looks at the segments, and, in a group, between two questions who leads it; that is asked too
// when a master begins to answer.
const (
	segmentsEvery = 5
	healthEvery   = 5
)

// poller asks one master for its counters and segments, and has the recorder journal what changes a claim.
type poller struct {
	rec      *recorder.Recorder
	log      *slog.Logger
	source   journal.Source
	endpoint int // its number
	client   *mooncake.Client
	every    time.Duration
	now      func() int64 // our clock, ns; it does not step

	group []*poller     // of all masters of the source
	view  atomic.Uint64 // under which it last said that it leads; 0: it did not, or told none

	last     *reading.Counters
	newest   atomic.Pointer[mooncake.Status]
	segments []string // ids of the last look, in order; nil: none yet
	trouble  string   // said in the log already
}

// run polls until ctx ends.
func (p *poller) run(ctx context.Context) {
	t := time.NewTicker(p.every)
	defer t.Stop()
	for n := 0; ; n++ {
		was := p.trouble
		p.poll(ctx)
		if len(p.group) > 1 && (n%healthEvery == 0 || was != "" && p.trouble == "") {
			p.ask(ctx)
		}
		if n%segmentsEvery == 0 && p.rec.Delivers(p.source.ID) == p.endpoint {
			p.look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// behind reports whether the recorder has messages waiting: a poll would be judged against a stream that is older than it.
func (p *poller) behind() bool {
	bytes, most := p.rec.Buffered()
	return bytes > most/receiverFirst
}

func (p *poller) poll(ctx context.Context) {
	if p.behind() {
		return
	}
	err := p.rec.Do(ctx, p.source.ID, func(f *recorder.Feed, _ *journal.Group) error {
		f.PollSent(p.endpoint, p.now())
		return nil
	})
	if err != nil {
		return // the recorder ends
	}
	st, err := p.client.Status(ctx)
	if ctx.Err() != nil {
		return
	}
	p.say(err)
	if err != nil {
		_ = p.rec.Do(ctx, p.source.ID, func(f *recorder.Feed, _ *journal.Group) error {
			f.PollFailed(p.endpoint)
			return nil
		})
		p.last = nil
		p.newest.Store(nil)
		return
	}
	p.newest.Store(&st)
	c := continuity.Counters{
		Enabled: st.Enabled, Batches: st.PublishedBatches, Events: st.PublishedEvents, Dropped: st.DroppedEvents,
		HasKeyless: st.KeylessKnown, Keyless: st.Keyless,
	}
	var o continuity.Outcome
	err = p.rec.Do(ctx, p.source.ID, func(f *recorder.Feed, g *journal.Group) (err error) {
		o, err = f.PollAnswered(g, p.endpoint, p.now(), p.client.URL(), c, p.last)
		return err
	})
	if err != nil {
		return
	}
	p.last = &reading.Counters{Batches: c.Batches, Events: c.Events, Dropped: c.Dropped, Polled: p.now() / 1e6}
	if o.Gap.Cause != continuity.CauseNone {
		p.log.Warn("the master's counters show a loss", "source", p.source.Name, "cause", o.Gap.Cause.String(), "missing_seqs", o.Gap.Missing(), "master", p.client.URL())
	}
}

// say logs trouble with the master once, and that it is over.
func (p *poller) say(err error) {
	var standby *mooncake.StandbyError
	now := ""
	switch {
	case errors.As(err, &standby):
		now = "it is a standby"
	case err != nil:
		now = err.Error()
	}
	if now == p.trouble {
		return
	}
	if p.trouble = now; now != "" {
		p.log.Warn("the master does not answer; doubts stay until it does", "source", p.source.Name, "master", p.client.URL(), "why", now)
		return
	}
	p.log.Info("the master answers", "source", p.source.Name, "master", p.client.URL())
}

// look compares the segments with those of the last look.
func (p *poller) look(ctx context.Context) {
	list, err := p.client.Segments(ctx)
	if err != nil {
		return // the next poll says so
	}
	ids := make([]string, 0, len(list))
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	var gone []string
	for _, id := range p.segments {
		if _, found := slices.BinarySearch(ids, id); !found {
			gone = append(gone, id)
		}
	}
	p.segments = ids
	if len(gone) == 0 {
		return
	}
	p.log.Warn("segments are gone, as after a restart; their objects may be gone without an event", "source", p.source.Name, "segments", gone)
	_ = p.rec.Do(ctx, p.source.ID, func(f *recorder.Feed, g *journal.Group) error {
		return f.SegmentsVanished(g, p.now(), p.client.URL(), gone)
	})
}
