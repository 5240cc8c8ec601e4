package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
)

// MasterConfig says how masters are asked. Zero values mean the defaults.
type MasterConfig struct {
	// PollEvery is how often the counters are asked for.
	PollEvery time.Duration
	// AuditEvery is how often all that is confirmed is compared; negative: never.
	AuditEvery time.Duration
	// Token is sent to the masters as a bearer token; CA are PEM certificates that may sign theirs.
	Token string
	CA    []byte
}

// masters asks the masters of one source: pollers of their counters, and the reconciler.
type masters struct {
	rec     *recorder.Recorder
	source  journal.Source
	pollers []*poller
	readers map[int]*mooncake.Client // by the endpoint's number; a listing would hold the pollers' slot
	runner  *reconcile.Runner

	readings readings
}

// readings counts the readings of this run.
type readings struct {
	held, failed, corrections, contradictions atomic.Uint64
	to                                        atomic.Uint64 // where the newest that held began
	at                                        atomic.Int64  // when it ended, Unix ns
}

// newMasters prepares the masters of a source; nil where it has none.
func (s *Service) newMasters(source journal.Source, c MasterConfig) (*masters, error) {
	if len(source.Masters) == 0 {
		return nil, nil
	}
	urls, err := pairMasters(source.Endpoints, source.Masters)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", source.Name, err)
	}
	m := &masters{rec: s.rec, source: source, readers: map[int]*mooncake.Client{}}
	if c.PollEvery == 0 {
		c.PollEvery = DefaultPollEvery
	}
	begun := s.begun
	now := func() int64 { return begun.UnixNano() + int64(time.Since(begun)) }
	for i, endpoint := range source.Endpoints {
		number := source.Number(endpoint)
		options := mooncake.Options{URL: urls[i], Token: c.Token, CA: c.CA}
		polls, err := mooncake.New(options)
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", source.Name, err)
		}
		if m.readers[number], err = mooncake.New(options); err != nil {
			return nil, fmt.Errorf("source %q: %w", source.Name, err)
		}
		m.pollers = append(m.pollers, &poller{rec: s.rec, log: s.log, source: source, endpoint: number, client: polls, every: c.PollEvery, now: now})
	}
	for _, p := range m.pollers {
		p.group = m.pollers
	}
	open := func() (*index.Index, error) {
		e, err := s.Engine()
		if err != nil {
			return nil, err
		}
		return e.Index, nil
	}
	judge := query.Engine{Journal: s.journal}
	m.runner = reconcile.New(reconcile.Options{
		Choose: m.choose,
		Log:    &reconcile.SourceLog{Recorder: s.rec, Source: source.ID, Index: open, From: m.url},
		Index:  &reconcile.SourceIndex{Source: source.ID, Index: open, Judge: judge.JudgeObjects},
		Timing: reconcile.Timing{AuditEvery: c.AuditEvery},
		Ended:  m.readings.ended,
		Say:    s.log.With("source", source.Name),
	})
	return m, nil
}

// pairMasters gives each endpoint the admin URL of its master: in the order given, or, where that is another, by the host.
func pairMasters(endpoints, masters []string) ([]string, error) {
	if len(endpoints) != len(masters) {
		return nil, fmt.Errorf("%d endpoints and %d masters: each master's counters belong to one endpoint; give one master for each, in the same order", len(endpoints), len(masters))
	}
	host := func(text string) string {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		return u.Hostname()
	}
	byHost := map[string][]string{}
	for _, m := range masters {
		byHost[host(m)] = append(byHost[host(m)], m)
	}
	out := make([]string, len(endpoints))
	for i, e := range endpoints {
		if found := byHost[host(e)]; len(found) == 1 {
			out[i] = found[0]
			continue
		}
		return masters, nil // names tell nothing: in the order given
	}
	return out, nil
}

// choose returns the master of the endpoint that delivers.
func (m *masters) choose(context.Context) (reconcile.Master, error) {
	number := m.rec.Delivers(m.source.ID)
	if c := m.readers[number]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no admin URL is known for the endpoint that delivers the events of source %q", m.source.Name)
}

func (m *masters) url() string {
	if c := m.readers[m.rec.Delivers(m.source.ID)]; c != nil {
		return c.URL()
	}
	return ""
}

// start polls and reconciles until ctx ends.
func (m *masters) start(ctx context.Context, s *Service) {
	for _, p := range m.pollers {
		s.work.Go(func() { p.run(ctx) })
	}
	s.work.Go(func() {
		select {
		case <-s.opened:
		case <-ctx.Done():
			return
		}
		if err := m.runner.Run(ctx); ctx.Err() == nil {
			s.log.Error("doubts are not reconciled with the master any more; recording goes on", "source", m.source.Name, "error", err)
		}
	})
}

// close gives the connections up.
func (m *masters) close() {
	for _, p := range m.pollers {
		p.client.Close()
	}
	for _, c := range m.readers {
		c.Close()
	}
}

// stats are what the masters of the source said last.
func (m *masters) stats() []query.MasterStats {
	var out []query.MasterStats
	for _, p := range m.pollers {
		st := query.MasterStats{Source: m.source.Name, URL: p.client.URL(), Delivers: m.rec.Delivers(m.source.ID) == p.endpoint}
		if c := p.newest.Load(); c != nil {
			st.Answers, st.Enabled = true, c.Enabled
			st.PublishedBatches, st.PublishedEvents, st.DroppedEvents = c.PublishedBatches, c.PublishedEvents, c.DroppedEvents
			st.LastSeq = c.LastSeq()
		}
		out = append(out, st)
	}
	return out
}

// Reconcile implements httpapi.Source.
func (s *Service) Reconcile(ctx context.Context, source string, r reconcile.Request) (*reconcile.Report, error) {
	var with []*masters
	for _, m := range s.masters {
		if source == "" || m.source.Name == source {
			with = append(with, m)
		}
	}
	switch len(with) {
	case 0:
		if names := s.recordedNames(); source != "" && !slices.Contains(names, source) {
			return nil, &query.UsageError{Message: fmt.Sprintf("this recorder records no source %q; there is %s", source, strings.Join(names, ", "))}
		}
		return nil, &query.UsageError{Message: "no master is known to ask; give record --master http://HOST:9003, or name the source that has one with --source"}
	case 1:
		report, err := with[0].runner.Read(ctx, r)
		with[0].readings.ended(report, err)
		return report, err
	}
	return nil, &query.UsageError{Message: "several sources have a master; name one with --source"}
}

// proofFor is how old a proof of the end of the stream may be and still speak of now.
const proofFor = 10 * time.Second

// tail proves the end of a source's stream, for `now` (R8).
func (s *Service) tail(ctx context.Context, source uint32) (since int64, offset uint64, err error) {
	err = s.rec.Do(ctx, source, func(f *recorder.Feed, _ *journal.Group) error {
		p := f.Proof()
		if age := time.Since(s.begun) - time.Duration(p.Since-s.begun.UnixNano()); age <= proofFor {
			since, offset = p.Since, p.Offset
		}
		return nil
	})
	if errors.Is(err, recorder.ErrPaused) {
		err = nil // what comes meanwhile is not heard: nothing is proven
	}
	return since, offset, err
}

// recordedNames are the names of the sources that are recorded.
func (s *Service) recordedNames() []string {
	names := make([]string, len(s.recorded))
	for i := range s.recorded {
		names[i] = s.recorded[i].Name
	}
	return names
}
