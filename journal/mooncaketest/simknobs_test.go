package mooncaketest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatal("waited in vain: ", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSimSilentRemovals(t *testing.T) {
	sim := newSim(t, SimOptions{Store: StoreOptions{Seed: 4, Objects: 300}, Rate: 2000, SilentRemovals: 500})
	s, got := subscribe(t, sim.Endpoint(), probe(sim))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	until(t, "silent removals", func() bool { return sim.Silent() >= 20 })
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	got = append(got, s.until(seqIs(sim.Totals().PublishedBatches))...)
	replayed := state{}
	for _, m := range got {
		replayed.apply(m.changes...)
	}
	truth := stateOf(sim.store)
	missing := 0
	for p := range replayed {
		if !truth[p] {
			missing++
		}
	}
	for p := range truth {
		if !replayed[p] {
			t.Errorf("%v is stored and was never announced", p)
		}
	}
	if missing == 0 {
		t.Error("the stream tells of all removals")
	}
}

// Each quiet moment begins with a loss that nothing but the counters shows: seq of the last message received is below
// their sum, the objects of the lost messages are in the truth.
func TestSimTailLoss(t *testing.T) {
	var out truthFile
	sim := newSim(t, SimOptions{
		Store: StoreOptions{Seed: 3, Objects: 300}, Rate: 2000, TailLoss: 1, Truth: NewTruthWriter(&out),
		QuietEvery: 150 * time.Millisecond, QuietFor: 60 * time.Millisecond,
	})
	sub, got := subscribe(t, sim.Endpoint(), probe(sim))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	got = append(got, sub.untilLines(&out, 5, cancel, sim)...)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	truth := readTruth(t, out.Bytes())
	lossy := 0
	for _, line := range truth[:len(truth)-1] { // the last is that of the end, and has no loss
		last, sum := uint64(0), line.PublishedBatches+line.DroppedEvents
		for _, m := range got {
			if m.seq > last && m.seq <= sum {
				last = m.seq
			}
		}
		if last < sum {
			lossy++
		}
	}
	if lossy == 0 || lossy != len(truth)-1 {
		t.Errorf("%d of %d quiet moments began with a loss", lossy, len(truth)-1)
	}
	for i, m := range got[1:] {
		if d, events := m.seq-got[i].seq, m.ids[0]-got[i].ids[len(got[i].ids)-1]; (d > 1) != (events > 1) {
			t.Errorf("seq +%d, event_id +%d: not a loss on the wire", d, events)
		}
	}
}

func TestSimTailLossWithoutTruth(t *testing.T) {
	sim := newSim(t, SimOptions{Rate: 2000, TailLoss: 1, QuietEvery: 150 * time.Millisecond, QuietFor: 10 * time.Millisecond})
	s, got := subscribe(t, sim.Endpoint(), probe(sim))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	last := got[0].seq
	s.until(func(m message) bool {
		lost := m.seq > last+1
		last = m.seq
		return lost
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// A standby changes nothing, until it is the leader.
func TestSimStandby(t *testing.T) {
	c := newClock()
	var changed atomic.Bool
	sim := newSim(t, SimOptions{
		Publisher: Options{Now: c.now, OnTaken: func(int) { changed.Store(true) }},
		Rate:      2000, Standby: time.Minute, RestartEvery: 300 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	until(t, "a restart", func() bool { return sim.Starts() >= 3 })
	if changed.Load() {
		t.Error("a standby changed something")
	}
	until(t, "the leader's changes", func() bool {
		c.add(time.Minute)
		return changed.Load()
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

func TestSimSegmentLoss(t *testing.T) {
	sim := newSim(t, SimOptions{Store: StoreOptions{Segments: 3}, Rate: 5000, SegmentLossEvery: 20 * time.Millisecond})
	ids := func() (out []string) {
		sim.View(func(s *Store, _ *Publisher) {
			for _, segment := range s.Segments() {
				out = append(out, segment.ID)
			}
		})
		return out
	}
	before := ids()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	until(t, "all segments to be others", func() bool {
		now := ids()
		return len(now) == 3 && !slices.ContainsFunc(now, func(id string) bool { return slices.Contains(before, id) })
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if sim.store.Silent() == 0 {
		t.Error("nothing was lost")
	}
}

// Everything at once, with an admin API that is asked all the time: what the listing and a query say at the end is what the
// store holds, and no reply on the way is malformed.
func TestSimAdminUnderLoad(t *testing.T) {
	m := newMaster(t, SimOptions{
		Publisher: Options{QueueCapacity: 200, QueueDelay: 5 * time.Millisecond, StatusLag: 2 * time.Millisecond},
		Store:     StoreOptions{Seed: 11, Tenants: 3, Objects: 500, ClearEvery: 2000, PendingPuts: 8, RacyClears: true},
		Rate:      20_000, Burst: 2000, BurstEvery: 150 * time.Millisecond, SilentRemovals: 100, TailLoss: 0.5,
		SegmentLossEvery: 170 * time.Millisecond, QuietEvery: 200 * time.Millisecond, QuietFor: 20 * time.Millisecond,
		RestartEvery: 400 * time.Millisecond, DrainTimeout: patience,
	}, AdminOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, m.Sim)
	seen := map[string]int{}
	until(t, "two restarts, and every verdict", func() bool {
		a, err := m.try("/get_all_keys")
		if err != nil { // the process was killed
			return false
		}
		keys := bytes.Split([]byte(a.body), []byte("\n"))
		query := "keys="
		for _, key := range keys[:min(len(keys), 300)] {
			query += string(key) + ","
		}
		if _, err := m.try("/kv_events/status"); err != nil || len(keys) < 2 {
			return false
		}
		if a, err = m.try("/batch_query_keys?" + query); err != nil {
			return false
		}
		if a.code != http.StatusOK {
			t.Fatalf("%+v", a)
		}
		for _, word := range []string{`"values":[{`, `"local_disk_values":[{`, "REPLICA_IS_NOT_READY", "OBJECT_NOT_FOUND"} {
			seen[word] += bytes.Count([]byte(a.body), []byte(word))
		}
		return m.Starts() >= 3 && len(seen) == 4 && seen["REPLICA_IS_NOT_READY"] > 0 && m.Totals().DroppedEvents > 0
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	truth, listed := map[string]string{}, map[string]string{}
	for o := range m.store.Objects() {
		if o.Tenant == "default" {
			truth[o.Key] = o.media()
		}
	}
	for _, key := range m.listing() {
		for k, verdict := range m.verdicts("keys=" + key) {
			if verdict != "REPLICA_IS_NOT_READY" {
				listed[k] = verdict
			}
		}
	}
	t.Logf("%d objects at the end, verdicts on the way: %v", len(truth), seen) // none right behind a restart
	if !maps.Equal(truth, listed) {
		t.Errorf("the store holds %d objects, the admin API tells of %d, others or otherwise", len(truth), len(listed))
	}
	checkDirectory(t, m.store)
}

// A restart by hand while Run goes on, and while it writes the truth.
func TestSimRestartByHand(t *testing.T) {
	var out bytes.Buffer
	sim := newSim(t, SimOptions{
		Rate: 5000, Truth: NewTruthWriter(&out), QuietEvery: 80 * time.Millisecond, QuietFor: 5 * time.Millisecond,
		Publisher: Options{QueueDelay: 3 * time.Millisecond},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	for range 10 {
		if err := sim.Restart(); err != nil {
			t.Fatal(err)
		}
		until(t, "events", func() bool { return sim.Publisher().Stats().PublishedEvents > 0 })
	}
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	truth := readTruth(t, out.Bytes())
	last := truth[len(truth)-1].places(t)
	if !maps.Equal(last, stateOf(sim.store)) || sim.Starts() != 11 {
		t.Errorf("%d rows in the last line, %d in the store, %d starts", len(last), len(stateOf(sim.store)), sim.Starts())
	}
}

func TestSimRefusesKnobs(t *testing.T) {
	for _, o := range []SimOptions{
		{TailLoss: -0.1}, {TailLoss: 1.1}, {TailLoss: math.NaN()}, {SilentRemovals: -1}, {SegmentLossEvery: -1}, {Standby: -1},
		{TailLoss: 1, QuietEvery: 1, QuietFor: 1}, {Publisher: Options{QueueDelay: -1}}, {Publisher: Options{StatusLag: -1}},
	} {
		if s, err := NewSim(o); err == nil {
			s.Publisher().Kill()
			t.Errorf("%s was accepted", fmt.Sprint(o.TailLoss, o.SilentRemovals))
		}
	}
}
