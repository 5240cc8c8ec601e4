package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// lived is a simulation with an admin API, recorded and reconciled.
type lived struct {
	*simulation
	dir      string
	endpoint string
	master   string // its admin URL
	rec      *process
}

// liveWithMaster records a simulation beside its master's admin API.
func liveWithMaster(t *testing.T, change func(*mooncaketest.SimOptions), more ...string) *lived {
	t.Helper()
	s := newSimulation(t, change)
	l := &lived{simulation: s, dir: filepath.Join(t.TempDir(), "data"), endpoint: s.Endpoint(), master: s.withAdmin(t)}
	l.rec = record(t, l.dir, l.endpoint, append([]string{"--master", l.master}, more...)...)
	connected(t, l.dir, true)
	return l
}

// runFor is how long a test with a master runs; KVJOURNAL_RECONCILE=10m makes it long.
func runFor(t *testing.T, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("KVJOURNAL_RECONCILE")
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KVJOURNAL_RECONCILE: %v", err)
	}
	return d
}

// readings are the reconciliations that ended, as `log` tells them.
func readings(t *testing.T, dir string) int {
	t.Helper()
	return len(kvjournal(t, "log", "--dir", dir, "--type", "reconciliation_ended", "--output", "json").answered(t))
}

// Losses in the queue and restarts, with a master beside: nothing confirmed is ever wrong, and the doubts of the tenant that the master
// shows are resolved.
func TestReconcileUnderLosses(t *testing.T) {
	t.Parallel()
	duration := runFor(t, 14*time.Second)
	restart := min(20*time.Second, duration/3)
	l := liveWithMaster(t, func(o *mooncaketest.SimOptions) {
		o.Duration, o.RestartEvery = duration, restart
		o.Publisher.QueueCapacity, o.Burst, o.BurstEvery = 256, 4000, restart/4
		o.Publisher.OnTaken = func(int) { time.Sleep(200 * time.Microsecond) }
		o.QuietEvery, o.QuietFor = 2*time.Second, 400*time.Millisecond
		o.Store.RacyClears = false
	})
	l.run(t)
	l.waitFor(t, duration+patience)
	quiet(t, l.dir)
	l.rec.stop(t)

	truth := readTruth(t, &l.truth)
	got := readJournal(t, l.dir)
	objects := universe(got.objects, truth)
	var shown []object
	for _, o := range objects {
		if o.tenant == "default" {
			shown = append(shown, o)
		}
	}
	all := gaps(t, l.dir)
	n := readings(t, l.dir)
	t.Logf("%d objects, %d readings, %d checkpoints, gaps %v", len(objects), n, len(truth), count(all))
	resolvedIn(t, l.dir, all)
	if n == 0 || len(all) == 0 {
		t.Fatal("nothing was lost, or nothing was reconciled")
	}
	truth = some(truth, 6)
	judgeAll(t, l.dir, truth, objects)
	// Long after the last loss everything of the tenant default is sure again; the other tenants' doubts stay.
	var sum tally
	for _, n := range judgeAll(t, l.dir, truth, shown) {
		sum.add(n)
	}
	t.Logf("tenant default: %d of %d confirmed", sum.confirmed, sum.evident)
	if float64(sum.confirmed) < 0.6*float64(sum.evident) {
		t.Errorf("of the tenant default only %d of %d answers with evidence are confirmed", sum.confirmed, sum.evident)
	}
	before := lookupLines(t, l.dir, "", objects)
	if r := kvjournal(t, "rebuild", "--dir", l.dir); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for i, line := range lookupLines(t, l.dir, "", objects) {
		if withoutAge(t, line) != withoutAge(t, before[i]) {
			t.Fatalf("with the master gone a rebuild answers otherwise:\n%s\n%s", before[i], line)
		}
	}
}

// some are at most n checkpoints, spread over all: a long run makes more than can be judged soon.
func some(truth []checkpoint, n int) []checkpoint {
	var out []checkpoint
	for i := range truth {
		if len(truth) <= n || i*n/len(truth) != (i-1)*n/len(truth) || i == 0 {
			out = append(out, truth[i])
		}
	}
	return out
}

// withoutAge is an answer without what time itself changes.
func withoutAge(t *testing.T, line string) string {
	t.Helper()
	var a query.Answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatal(err)
	}
	a.AsOf.AgeMs = nil
	b, err := json.Marshal(&a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A master that removes objects without an event is found by an audit: what it removed is corrected, and presence is not
// confirmed by events any more (R11).
func TestReconcileSilentMaster(t *testing.T) {
	t.Parallel()
	l := liveWithMaster(t, func(o *mooncaketest.SimOptions) {
		o.Duration, o.Rate, o.SilentRemovals = 5*patience, 300, 20
		o.Store.Objects, o.Store.ClearEvery = 300, 0
	}, "--audit-every", "1s")
	l.run(t)
	eventually(t, "the audit finds contradictions", func() bool { return strings.Contains(l.rec.talk.String(), "flagged silent") })
	l.stop()
	l.wait(t)
	quiet(t, l.dir)
	l.rec.stop(t)
	truth := readTruth(t, &l.truth)
	for _, a := range lookup(t, l.dir, "", universe(readJournal(t, l.dir).objects, truth)) {
		if !a.Silent {
			t.Fatalf("an answer about a silent master does not say so: %+v", a)
		}
		for name, m := range a.Media {
			if m.State == query.Present && m.Certainty == query.Confirmed && m.Evidence.Cause != "reconciliation" {
				t.Fatalf("%s on %s is confirmed present by %+v", a.Key, name, m.Evidence)
			}
		}
	}
}

// What never came is found by the counters: a lost tail, with no message behind it.
func TestReconcileLostTail(t *testing.T) {
	t.Parallel()
	l := liveWithMaster(t, func(o *mooncaketest.SimOptions) {
		o.Duration, o.TailLoss = 5*patience, 1
		o.QuietEvery, o.QuietFor = 5*time.Second, 4*time.Second
	})
	l.run(t)
	eventually(t, "the lost tail is listed", func() bool { return count(gaps(t, l.dir))["tail_loss"] > 0 })
	l.stop()
	l.wait(t)
	l.rec.stop(t)
	for _, g := range gaps(t, l.dir) {
		if g.Cause == "tail_loss" && (g.FirstMissingSeq == nil || *g.FirstMissingSeq > *g.LastMissingSeq) {
			t.Errorf("a lost tail without numbers: %+v", g)
		}
	}
}

// At rest of the publisher, `now` is proven by the counters.
func TestNowIsProven(t *testing.T) {
	t.Parallel()
	l := liveWithMaster(t, func(o *mooncaketest.SimOptions) {
		o.Duration, o.QuietEvery, o.QuietFor = 5*patience, 6*time.Second, 5*time.Second
	})
	l.run(t)
	eventually(t, "something is confirmed now", func() bool {
		n := 0
		for _, a := range lookup(t, l.dir, "now", []object{{"default", "never-seen"}, {"tenant-1", "never-seen"}}) {
			if a.Media["cpu"].Doubt != nil && a.Media["cpu"].Doubt.Cause == query.DoubtNow {
				return false
			}
			n++
		}
		return n > 0
	})
	l.stop()
	l.wait(t)
	l.rec.stop(t)
}

// resolvedIn logs how long it took from each loss to the end of the first reading that began behind it.
func resolvedIn(t *testing.T, dir string, all []query.GapOut) {
	t.Helper()
	type line struct {
		Offset   uint64     `json:"offset"`
		Type     string     `json:"type"`
		Received query.Time `json:"received"`
	}
	type read struct {
		begun uint64
		ended query.Time
	}
	var reads []read
	var begun uint64
	for _, text := range kvjournal(t, "log", "--dir", dir, "--type", "reconciliation_begun,reconciliation_ended", "--output", "json").answered(t) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == "reconciliation_begun" {
			begun = l.Offset
		} else {
			reads = append(reads, read{begun, l.Received})
		}
	}
	var took []time.Duration
	open := 0
	for _, g := range all {
		i := slices.IndexFunc(reads, func(r read) bool { return r.begun > g.FirstOffsetAfter })
		if i < 0 {
			open++
			continue
		}
		took = append(took, reads[i].ended.Sub(g.Received.Time))
	}
	if slices.Sort(took); len(took) > 0 {
		t.Logf("from a loss to the end of the first reading behind it: median %v, 90 %% %v, at most %v; %d losses have none", took[len(took)/2], took[len(took)*9/10], took[len(took)-1], open)
	}
}
