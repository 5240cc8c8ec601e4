package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// master is a simulated one that is driven by hand, recorded and asked.
type master struct {
	*mooncaketest.Sim
	dir  string
	rec  *process
	late []query.GapOut // of what was sent before the recorder listened
}

// newMaster has told of a few objects. looked is called when its segments were looked at.
func newMaster(t *testing.T, looked func()) *master {
	t.Helper()
	sim, err := mooncaketest.NewSim(mooncaketest.SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Publisher().Kill() })
	admin, err := mooncaketest.NewAdmin(sim, mooncaketest.AdminOptions{OnStep: func(s mooncaketest.Step) {
		if s.Path == "/get_segments_detail" && s.Stage == mooncaketest.Ready {
			looked()
		}
	}}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	m := &master{Sim: sim, dir: dataDir(t)}
	m.rec = record(t, m.dir, sim.Endpoint(), "--master", admin.URL(), "--poll-every", "200ms")
	n := 0
	m.late = announce(t, m.dir, sim.Publisher(), func() {
		m.put(t, n)
		n++
	})
	return m
}

// put announces three objects in one message.
func (m *master) put(t *testing.T, n int) {
	t.Helper()
	var changes []mooncaketest.Change
	for i := range 3 {
		changes = append(changes, mooncaketest.Change{Type: event.Stored, Tenant: "default", Medium: mooncaketest.CPU, Key: fmt.Sprintf("%d-%d", n, i)})
	}
	if err := m.Do(changes...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Publisher().WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

// The last messages never arrive, and nothing comes behind them: only the counters tell.
func causeTailLoss(t *testing.T) (string, []query.GapOut) {
	m := newMaster(t, func() {})
	before := m.Publisher().Stats()
	m.Publisher().Lose(true)
	m.put(t, 1000)
	m.put(t, 1001)
	m.Publisher().Lose(false)
	after := m.Publisher().Stats()
	var told *query.GapOut
	eventually(t, "the lost tail is listed", func() bool {
		all := gaps(t, m.dir)
		if count(all)["tail_loss"] == 0 {
			return false
		}
		told = &all[len(all)-1]
		return true
	})
	m.put(t, 1002)
	recordedSeq(t, m.dir, after.PublishedBatches+1)
	m.rec.stop(t)
	g := missingSeqs(continuity.TailLoss, 1, before.PublishedBatches+1, after.PublishedBatches)
	lost := after.PublishedEvents - before.PublishedEvents
	if len(m.late) == 0 || told.LostEvents != nil {
		g.LostEvents = &lost // the ids are known to have begun at 1, so the counters tell exactly
	} else if g.LostEventsMin, g.LostEventsMax = told.LostEventsMin, told.LostEventsMax; *g.LostEventsMin > lost || *g.LostEventsMax < lost {
		t.Errorf("%d events were lost, told as %d to %d", lost, *g.LostEventsMin, *g.LostEventsMax)
	}
	return m.dir, append(m.late, g)
}

// A segment vanishes with its objects, and no event tells.
func causeSilent(t *testing.T) (string, []query.GapOut) {
	var looks atomic.Int64
	m := newMaster(t, func() { looks.Add(1) })
	before := looks.Load()
	// With the second look from now, the one before has been judged.
	eventually(t, "the segments are looked at", func() bool { return looks.Load() >= before+2 })
	var segment string
	m.View(func(s *mooncaketest.Store, _ *mooncaketest.Publisher) { segment = s.Segments()[0].ID })
	if lost, err := m.UnmountSegment(segment); err != nil || lost == 0 {
		t.Fatalf("%d objects vanished, %v", lost, err)
	}
	eventually(t, "the loss is listed", func() bool { return count(gaps(t, m.dir))["silent"] > 0 })
	m.put(t, 1000)
	recordedSeq(t, m.dir, m.Publisher().Stats().PublishedBatches)
	m.rec.stop(t)
	return m.dir, append(m.late, query.GapOut{Cause: "silent", Epoch: 1})
}
