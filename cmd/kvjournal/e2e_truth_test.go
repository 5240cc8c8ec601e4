package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
)

// simulation is a publisher in this process, with the truth about it.
type simulation struct {
	*mooncaketest.Sim
	truth bytes.Buffer
	lines atomic.Int64 // of truth
	lasts time.Duration
	ended chan error
	stop  context.CancelFunc // ends it early, in good order
}

// leastCheckpoints is how many a simulation makes, however long that takes on a busy machine.
const leastCheckpoints = 4

// Write takes a line of truth.
func (s *simulation) Write(b []byte) (int, error) {
	defer s.lines.Add(int64(bytes.Count(b, []byte{'\n'})))
	return s.truth.Write(b)
}

// newSimulation binds a publisher. Nothing is sent before run.
func newSimulation(t *testing.T, change func(*mooncaketest.SimOptions)) *simulation {
	t.Helper()
	s := &simulation{ended: make(chan error, 1)}
	seed := rand.Uint64N(1 << 20)
	t.Logf("seed %d", seed)
	o := mooncaketest.SimOptions{
		Publisher: mooncaketest.Options{Bind: mooncaketest.Reserved(t), Linger: patience, TellsSubscribed: true},
		Store:     mooncaketest.StoreOptions{Seed: seed, Tenants: 3, Objects: 800, ClearEvery: 3000, RacyClears: seed%2 == 0},
		Rate:      2000, Duration: 5 * time.Second, Truth: mooncaketest.NewTruthWriter(s),
		QuietEvery: 700 * time.Millisecond, QuietFor: 100 * time.Millisecond, DrainTimeout: patience,
	}
	change(&o)
	if o.Truth != nil {
		s.lasts, o.Duration = o.Duration, 0 // run ends it
	}
	var err error
	if s.Sim, err = mooncaketest.NewSim(o); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *simulation) run(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- s.Run(ctx) }()
	if s.lasts > 0 {
		go func() {
			defer stop()
			for wait := s.lasts; pause.For(ctx, wait) == nil && s.lines.Load() < leastCheckpoints; {
				wait = 10 * time.Millisecond
			}
		}()
	}
}

// heard waits until a recorder that is connected misses nothing of what is sent.
func (s *simulation) heard(t *testing.T) {
	t.Helper()
	eventually(t, "the subscription arrives", func() bool { return s.Publisher().Subscribed() })
}

func (s *simulation) wait(t *testing.T) {
	t.Helper()
	s.waitFor(t, patience)
}

func (s *simulation) waitFor(t *testing.T, most time.Duration) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(most):
		t.Fatal("the publisher does not end")
	}
}

// outcome is what a truth run left behind.
type outcome struct {
	recorded recorded
	stats    *query.StatsOut
	gaps     []query.GapOut
	tallies  []tally // by checkpoint, where a later batch was received
	latest   tally   // without --at
	sent     mooncaketest.Stats
}

// truthRun records a simulation, and compares every answer with the truth. during, if any, does the harm.
func truthRun(t *testing.T, change func(*mooncaketest.SimOptions), viaProxy bool, during func(*process, *simulation, *proxy, string)) outcome {
	t.Helper()
	s := newSimulation(t, change)
	dir, endpoint := filepath.Join(t.TempDir(), "data"), s.Endpoint()
	var p *proxy
	if viaProxy {
		p, endpoint = newProxy(t, endpoint)
	}
	rec := record(t, dir, endpoint)
	connected(t, dir, true)
	s.heard(t)
	s.run(t)
	if during != nil {
		during(rec, s, p, dir)
	}
	s.wait(t)
	var out outcome
	out.stats, out.sent = quiet(t, dir), s.Totals()
	rec.stop(t)
	out.recorded, out.gaps = readJournal(t, dir), gaps(t, dir)
	// The publisher's end overtakes its last messages, where the recorder is behind: they stand in R5's window.
	if last := len(out.gaps) - 1; last >= 0 && out.gaps[last].Cause == "reconnect" && !viaProxy {
		t.Logf("messages behind the publisher's end: %+v", out.gaps[last])
		out.gaps = out.gaps[:last]
	}
	if out.recorded.events != out.stats.Events || out.recorded.messages != out.stats.Messages {
		t.Errorf("the journal holds %d events in %d messages, stats said %d in %d", out.recorded.events, out.recorded.messages, out.stats.Events, out.stats.Messages)
	}
	truth := readTruth(t, &s.truth)
	if len(truth) < leastCheckpoints {
		t.Fatalf("only %d checkpoints", len(truth))
	}
	objects := universe(out.recorded.objects, truth)
	t.Logf("%d objects, %d events received of %d, gaps %v", len(objects), out.recorded.events, out.sent.PublishedEvents, count(out.gaps))
	end := out.stats.Sources[0].LastTime.UnixMilli()
	for i, n := range judgeAll(t, dir, truth, objects) {
		if truth[i].UnixMS < end {
			out.tallies = append(out.tallies, n)
		} else if n.confirmed > 0 {
			t.Errorf("%d answers are confirmed behind the last batch", n.confirmed)
		}
	}
	// Without --at an answer speaks of the last batch that was received, and proven to be of its connection: that is the end
	// of the truth only if none was sent later, or came when the publisher's end was known already (R5's window).
	latest := lookup(t, dir, "", objects)
	var sent uint64
	s.View(func(_ *mooncaketest.Store, p *mooncaketest.Publisher) {
		sent = p.Stats().PublishedBatches + p.Stats().DroppedEvents
	})
	if seq, asOf := out.stats.Sources[0].Seq, latest[0].AsOf.Offset; seq == sent && asOf == out.recorded.message {
		out.latest = truth[len(truth)-1].judge(t, "latest", objects, latest)
	} else {
		t.Logf("latest: seq %d of %d was received, as of offset %d of %d", seq, sent, asOf, out.recorded.message)
	}
	for _, a := range lookup(t, dir, "now", objects[:min(50, len(objects))]) {
		if a.Certainty == query.Confirmed {
			t.Errorf("now is confirmed for %q, though no master was asked", a.Key)
		}
	}
	return out
}

func count(all []query.GapOut) map[string]int {
	n := map[string]int{}
	for i := range all {
		n[all[i].Cause]++
	}
	return n
}

// nearlyAllConfirmed: what has evidence is confirmed, but for objects cut by a full batch and those a clear may have spared.
func (o *outcome) nearlyAllConfirmed(t *testing.T) {
	t.Helper()
	sum := o.latest
	for _, n := range o.tallies {
		sum.add(n)
	}
	if sum.evident == 0 || float64(sum.confirmed) < 0.98*float64(sum.evident) {
		t.Errorf("%d of %d answers with evidence are confirmed", sum.confirmed, sum.evident)
	}
}

func unchanged(*mooncaketest.SimOptions) {}

func TestTruthClean(t *testing.T) {
	t.Parallel()
	out := truthRun(t, unchanged, false, nil)
	onlyCauses(t, out.gaps)
	out.nearlyAllConfirmed(t)
	if out.recorded.events != out.sent.PublishedEvents || out.recorded.messages != out.sent.PublishedBatches {
		t.Errorf("%d events in %d messages were recorded, %d in %d sent", out.recorded.events, out.recorded.messages, out.sent.PublishedEvents, out.sent.PublishedBatches)
	}
}

func TestTruthWithoutLegacyFields(t *testing.T) {
	t.Parallel()
	out := truthRun(t, func(o *mooncaketest.SimOptions) { o.Publisher.NoLegacy, o.Duration = true, 3*time.Second }, false, nil)
	onlyCauses(t, out.gaps)
	out.nearlyAllConfirmed(t)
}

// A publisher that sends only clears proves nothing about any object.
func TestTruthWithoutObjectKeys(t *testing.T) {
	t.Parallel()
	out := truthRun(t, func(o *mooncaketest.SimOptions) {
		o.Publisher.NoObjectKey, o.Duration, o.Store.ClearEvery = true, 3*time.Second, 500
	}, false, nil)
	onlyCauses(t, out.gaps)
	if out.recorded.events == 0 || len(out.recorded.objects) > 0 {
		t.Errorf("%d events about %d objects were recorded, want clears only", out.recorded.events, len(out.recorded.objects))
	}
	for i, n := range append(out.tallies, out.latest) {
		if n.confirmed > 0 {
			t.Errorf("checkpoint %d: %d answers are confirmed by clears alone", i, n.confirmed)
		}
	}
}

func TestTruthWithQueueDrops(t *testing.T) {
	t.Parallel()
	out := truthRun(t, func(o *mooncaketest.SimOptions) {
		o.Publisher.QueueCapacity, o.Burst, o.BurstEvery = 256, 4000, 900*time.Millisecond
		// The sender takes its time, so that the queue overflows however fast the machine is.
		o.Publisher.OnTaken = func(int) { time.Sleep(200 * time.Microsecond) }
	}, false, nil)
	if n := onlyCauses(t, out.gaps, "publisher_queue"); n["publisher_queue"] == 0 {
		t.Error("nothing was dropped")
	}
	var lost uint64
	for i := range out.gaps {
		if out.gaps[i].LostEvents == nil || out.gaps[i].MissingSeqs == nil || *out.gaps[i].LostEvents != *out.gaps[i].MissingSeqs {
			t.Errorf("a gap of the publisher's queue without exact numbers: %+v", out.gaps[i])
			continue
		}
		lost += *out.gaps[i].LostEvents
	}
	if lost != out.sent.DroppedEvents {
		t.Errorf("gaps tell of %d lost events, the publisher dropped %d", lost, out.sent.DroppedEvents)
	}
	out.someConfirmed(t)
}

// someConfirmed: after a loss, what is announced anew is confirmed again.
func (o *outcome) someConfirmed(t *testing.T) {
	t.Helper()
	sum := o.latest
	for _, n := range o.tallies {
		sum.add(n)
	}
	if sum.confirmed == 0 {
		t.Error("nothing at all is confirmed")
	}
}

func TestTruthWithRestarts(t *testing.T) {
	t.Parallel()
	starts := 0
	out := truthRun(t, func(o *mooncaketest.SimOptions) { o.Duration = 10 * patience }, false,
		func(_ *process, s *simulation, _ *proxy, dir string) {
			// Each process is heard before it ends: of another nobody knows that it was.
			for life := uint64(1); life <= 3; life++ {
				if life > 1 {
					// As a standby it sends nothing before the connection has come back: what it sent would hide that it is another process.
					broken := breaks(t, dir)
					s.SetStandby(true)
					if err := s.Restart(); err != nil {
						t.Fatal(err)
					}
					eventually(t, "connected again", func() bool {
						st := stats(t, dir)
						return st.Recorder.Sockets[0].Connected && st.Recorder.Sockets[0].Disconnects > broken && s.Publisher().Subscribed()
					})
					s.SetStandby(false)
				}
				var heard uint64
				eventually(t, fmt.Sprintf("events of process %d", life), func() bool {
					st := stats(t, dir)
					heard = st.Events
					return st.Sources[0].Epoch == life
				})
				lines := s.lines.Load()
				eventually(t, "more of them, and a checkpoint", func() bool { return stats(t, dir).Events > heard+2000 && s.lines.Load() > lines })
			}
			starts = s.Starts()
			s.stop()
		})
	// Messages that come before the connection is proven to be the new one are followed by a reconnect (R5).
	n := onlyCauses(t, out.gaps, "publisher_restart", "reconnect")
	if n["publisher_restart"] != starts-1 {
		t.Errorf("%d restarts are listed, there were %d", n["publisher_restart"], starts-1)
	}
	epoch := uint64(1)
	for _, g := range out.gaps {
		if g.Cause == "publisher_restart" {
			epoch++
			if g.FirstMissingSeq != nil && *g.FirstMissingSeq != 1 {
				t.Errorf("behind a restart numbers are missing from %d on", *g.FirstMissingSeq)
			}
		}
		if g.Epoch != epoch {
			t.Errorf("a gap of cause %s stands in epoch %d, want %d", g.Cause, g.Epoch, epoch)
		}
	}
	if out.stats.Sources[0].Epoch != uint64(starts) {
		t.Errorf("epoch %d after %d starts", out.stats.Sources[0].Epoch, starts)
	}
	out.someConfirmed(t)
}

func TestTruthWithCutConnections(t *testing.T) {
	t.Parallel()
	const cuts = 8
	seed := rand.Uint64()
	t.Logf("cuts seed %d", seed)
	out := truthRun(t, func(o *mooncaketest.SimOptions) { o.Duration = 10 * patience }, true,
		func(_ *process, s *simulation, p *proxy, dir string) {
			events := func() uint64 { return stats(t, dir).Events }
			p.cutAtRandom(t, rand.New(rand.NewPCG(seed, 0)), cuts, events)
			before := events()
			eventually(t, "events behind the last cut, and a checkpoint", func() bool { return events() > before+3000 })
			s.stop()
		})
	n := onlyCauses(t, out.gaps, "disconnected", "reconnect")
	if got := n["disconnected"] + n["reconnect"]; got == 0 || got > 2*cuts {
		t.Errorf("%d gaps of broken connections behind %d cuts", got, cuts)
	}
	if out.stats.Sources[0].Epoch != 1 {
		t.Errorf("epoch %d, but the publisher never restarted", out.stats.Sources[0].Epoch)
	}
	out.someConfirmed(t)
}

// A recorder that is stopped for long makes the publisher drop at its high-water mark.
func TestTruthWithStoppedReader(t *testing.T) {
	t.Parallel()
	out := truthRun(t, func(o *mooncaketest.SimOptions) {
		// Fat events and a low mark fill the kernel's buffers soon.
		o.Publisher.SendHWM, o.Publisher.Salt = 50, strings.Repeat("s", 8000)
		o.Duration, o.Store.Objects = 10*patience, 500
	}, false, func(rec *process, s *simulation, _ *proxy, dir string) {
		recorded := func(more uint64) {
			before := stats(t, dir).Events
			eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > before+more })
		}
		recorded(1000)
		rec.signal(t, syscall.SIGSTOP)
		// 4 + 32 MiB at most are in the sockets of both ends, 50 messages of 64 events at the mark; an event is 8 KiB.
		before := s.Totals().PublishedEvents
		eventually(t, "the publisher runs over its mark", func() bool { return s.Totals().PublishedEvents > before+9000 })
		rec.signal(t, syscall.SIGCONT)
		eventually(t, "the loss is seen", func() bool { return len(gaps(t, dir)) > 0 })
		recorded(1000)
		s.stop()
	})
	if n := onlyCauses(t, out.gaps, "transport"); n["transport"] == 0 {
		t.Error("nothing was lost in transport")
	}
	var least, most uint64
	for i := range out.gaps {
		g := &out.gaps[i]
		if g.LostEventsMin == nil || g.LostEventsMax == nil || *g.LostEventsMin > *g.LostEventsMax {
			t.Fatalf("a transport gap without bounds: %+v", g)
		}
		least, most = least+*g.LostEventsMin, most+*g.LostEventsMax
	}
	if lost := out.sent.PublishedEvents - out.recorded.events; lost < least || lost > most {
		t.Errorf("%d events were lost, gaps say %d to %d", lost, least, most)
	}
	out.someConfirmed(t)
}

// breaks is how many connections of a recorder's only socket broke.
func breaks(t *testing.T, dir string) uint64 {
	t.Helper()
	return stats(t, dir).Recorder.Sockets[0].Disconnects
}

// A publisher that is killed with SIGKILL and started anew on its port, as mooncakesim, three times.
func TestTruthWithKilledPublisher(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "data")
	var truth []checkpoint
	var rec *process
	bind := mooncaketest.Reserved(t)
	const lives = 3
	for life := range lives {
		file := filepath.Join(tmp, "truth.jsonl")
		seed := string(rune('1' + life))
		args := []string{"--rate", "1500", "--objects", "600", "--seed", seed, "--truth", file}
		if life > 0 { // it sends nothing before the connection has come back: what it sent would hide that it is another process
			args = append(args, "--standby", "3s")
		}
		sim, endpoint := simulateOn(t, bind, args...)
		if rec == nil {
			rec = record(t, dir, endpoint)
		}
		connected(t, dir, true)
		before := stats(t, dir).Events
		lines := func() int {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Count(b, []byte{'\n'})
		}
		eventually(t, "a checkpoint, and events behind it", func() bool { return lines() > 0 })
		eventually(t, "events", func() bool { return stats(t, dir).Events > before+500 })
		now := stats(t, dir).Events
		eventually(t, "more events", func() bool { return stats(t, dir).Events > now+300 })
		sim.kill9(t)
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		truth = append(truth, readTruth(t, f)...)
		f.Close()
		connected(t, dir, false)
	}
	quiet(t, dir)
	rec.stop(t)
	all := gaps(t, dir)
	n := onlyCauses(t, all, "late_join", "publisher_restart", "reconnect") // reconnect: see TestTruthWithRestarts
	if n["publisher_restart"] != lives-1 || n["late_join"] > 1 {
		t.Errorf("gaps %v of %d lives", n, lives)
	}
	if !slices.IsSortedFunc(all, func(a, b query.GapOut) int { return int(a.FirstOffsetAfter) - int(b.FirstOffsetAfter) }) {
		t.Error("gaps are not in the order of their offsets")
	}
	sum := tally{}
	for _, n := range judgeAll(t, dir, truth, universe(readJournal(t, dir).objects, truth)) {
		sum.add(n)
	}
	if sum.confirmed == 0 {
		t.Error("nothing at all is confirmed")
	}
}
