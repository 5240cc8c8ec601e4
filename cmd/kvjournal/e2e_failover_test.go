package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// withAdmin serves the admin API of a simulation and returns its URL.
func (s *simulation) withAdmin(t *testing.T) string {
	t.Helper()
	_, url := s.withAdminView(t, 0)
	return url
}

// withAdminView is withAdmin of a group's master, which says under what view it leads.
func (s *simulation) withAdminView(t *testing.T, view uint64) (*mooncaketest.Admin, string) {
	t.Helper()
	admin := mooncaketest.NewAdmin(s.Sim, mooncaketest.AdminOptions{View: view})
	served, err := admin.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { served.Close() })
	return admin, served.URL()
}

// Two masters of one group: the leader dies, the standby takes over with an empty store. Its first batch begins an epoch, the
// standby's silence before it and the dead one's after are no doubt of their own, and the doubts are resolved with the new leader.
func TestFailover(t *testing.T) {
	t.Parallel()
	change := func(o *mooncaketest.SimOptions) {
		o.Duration, o.Rate, o.Store.RacyClears = 5*patience, 1000, false
	}
	leader, standby := newSimulation(t, change), newSimulation(t, change)
	standby.SetStandby(true)
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, leader.Endpoint(), "--endpoint", standby.Endpoint(), "--master", leader.withAdmin(t), "--master", standby.withAdmin(t))
	connected(t, dir, true)
	leader.run(t)
	standby.run(t)
	events := func() uint64 { return stats(t, dir).Events }
	eventually(t, "the leader's events", func() bool { return events() > 2000 })
	if all := count(gaps(t, dir)); all["publisher_restart"]+all["disconnected"]+all["reconnect"]+all["transport"] > 0 {
		t.Errorf("a standby's silence is a doubt: %v", all)
	}
	leader.Kill()
	leader.wait(t)
	before := events()
	standby.SetStandby(false)
	eventually(t, "the new leader's events", func() bool { return events() > before+2000 })
	eventually(t, "its doubts are resolved", func() bool {
		st := stats(t, dir)
		return st.Sources[0].Epoch == 2 && st.Sources[0].Readings > 0 && st.Sources[0].Connected
	})
	before = events()
	eventually(t, "events behind that", func() bool { return events() > before+1500 })
	standby.stop()
	standby.wait(t)
	quiet(t, dir)
	rec.stop(t)
	all := gaps(t, dir)
	if n := count(all); n["publisher_restart"] != 1 {
		t.Errorf("gaps behind a failover: %v", n)
	}
	truth := readTruth(t, &standby.truth)
	if len(truth) < 2 {
		t.Fatalf("%d checkpoints of the new leader", len(truth))
	}
	objects := universe(readJournal(t, dir).objects, truth)
	var sum tally
	for _, n := range judgeAll(t, dir, truth[1:], objects) {
		sum.add(n)
	}
	if sum.confirmed == 0 {
		t.Error("nothing is confirmed behind the failover")
	}
}

// A deposed leader leads again: its process lived on, so its numbers go on where they were, and alone prove nothing beside the
// connection to its successor, which stands. Its health does, by a newer view.
func TestLeaderComesBack(t *testing.T) {
	t.Parallel()
	change := func(o *mooncaketest.SimOptions) { o.Duration, o.Rate = 5*patience, 1000 }
	first, second := newSimulation(t, change), newSimulation(t, change)
	second.SetStandby(true)
	admin, master := first.withAdminView(t, 1)
	_, other := second.withAdminView(t, 2)
	hop, endpoint := newProxy(t, first.Endpoint())
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, endpoint, "--endpoint", second.Endpoint(), "--master", master, "--master", other)
	connected(t, dir, true)
	first.run(t)
	second.run(t)
	epochAndMore := func(epoch uint64) {
		t.Helper()
		eventually(t, fmt.Sprintf("events of epoch %d", epoch), func() bool { return stats(t, dir).Sources[0].Epoch == epoch })
		before := stats(t, dir).Events
		eventually(t, "more of them", func() bool { return stats(t, dir).Events > before+1000 })
	}
	epochAndMore(1)
	first.SetStandby(true)
	second.SetStandby(false)
	epochAndMore(2)
	have := hop.connections()
	hop.cut(false)
	eventually(t, "the connection to the deposed leader comes back", func() bool { return hop.connections() > have })
	second.SetStandby(true)
	admin.Set(func(o *mooncaketest.AdminOptions) { o.View = 3 })
	first.SetStandby(false)
	epochAndMore(3)
	first.stop()
	first.wait(t)
	rec.stop(t)
}

// With a master beside, a recorder that was down has its doubts resolved within seconds though nothing is published.
func TestReconcileAtStart(t *testing.T) {
	t.Parallel()
	l := liveWithMaster(t, func(o *mooncaketest.SimOptions) {
		o.Duration, o.QuietEvery, o.QuietFor = 5*patience, 2*time.Second, 1500*time.Millisecond
	})
	l.run(t)
	eventually(t, "events", func() bool { return stats(t, l.dir).Events > 1500 })
	l.rec.kill9(t)
	readBefore := stats(t, l.dir).Sources[0].Readings
	l.rec = record(t, l.dir, l.endpoint, "--master", l.master)
	eventually(t, "a reading behind the start", func() bool { return stats(t, l.dir).Sources[0].Readings > readBefore })
	l.stop()
	l.wait(t)
	quiet(t, l.dir)
	l.rec.stop(t)
	truth := readTruth(t, &l.truth)
	judgeAll(t, l.dir, truth, universe(readJournal(t, l.dir).objects, truth))
}
