package mooncaketest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// truthLine is a checkpoint read back.
type truthLine struct {
	Checkpoint int         `json:"checkpoint"`
	UnixMS     int64       `json:"unix_ms"`
	Backend    string      `json:"backend"`
	State      [][3]string `json:"state"`
	Stats
}

func readTruth(t *testing.T, raw []byte) (all []truthLine) {
	t.Helper()
	for _, l := range lines(raw) {
		var line truthLine
		if err := json.Unmarshal(l, &line); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		all = append(all, line)
	}
	return all
}

func (l truthLine) places(t *testing.T) state {
	out := state{}
	for _, row := range l.State {
		tenant, err1 := base64.StdEncoding.DecodeString(row[0])
		key, err2 := base64.StdEncoding.DecodeString(row[1])
		if err1 != nil || err2 != nil {
			t.Fatal(row)
		}
		for _, m := range strings.Split(row[2], ",") {
			out.stored(string(tenant), string(key), m)
		}
	}
	return out
}

// run starts Run and returns a function that waits for its end.
func run(t *testing.T, ctx context.Context, s *Sim) (wait func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() error {
		t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			t.Fatal("Run does not end")
			return nil
		}
	}
}

// newSim is a Sim on a port of its own, which it finds free again behind a restart.
func newSim(t *testing.T, o SimOptions) *Sim {
	t.Helper()
	if o.Publisher.Bind == "" {
		o.Publisher.Bind = reserved(t)
	}
	setDefault(&o.DrainTimeout, patience/2)
	s, err := NewSim(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// probe makes the sim's publisher send something that changes nothing.
func probe(s *Sim) func() {
	return func() {
		s.View(func(_ *Store, p *Publisher) {
			p.Enqueue(Change{Type: event.Removed, Tenant: event.DefaultTenant, Medium: CPU, Key: "probe"})
		})
	}
}

// truthFile is one that can be looked at while it is written.
type truthFile struct{ testkit.Buffer }

// count is how often the file says what.
func (f *truthFile) count(what string) int { return bytes.Count(f.Bytes(), []byte(what)) }

// untilLines receives until the truth has so many lines, ends the sim, and receives until it has ended.
func (s *subscriber) untilLines(out *truthFile, lines int, end func(), sim *Sim) (all []message) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !sim.hasEnded(); {
		if m, ok := s.try(); ok {
			all = append(all, m)
		}
		if out.count("\n") >= lines {
			end()
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d lines of truth, want %d", out.count("\n"), lines)
		}
	}
	return all
}

// What the stream says at each quiet moment is what the truth file says, with the moment lying between two batches.
func TestSimTruth(t *testing.T) {
	var out truthFile
	sim := newSim(t, SimOptions{
		Store:      StoreOptions{Seed: 5, Tenants: 3, Objects: 400, ClearEvery: 500},
		Rate:       20_000,
		Truth:      NewTruthWriter(&out),
		QuietEvery: 150 * time.Millisecond, QuietFor: 20 * time.Millisecond,
	})
	sub, got := subscribe(t, sim.Endpoint(), probe(sim))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	got = append(got, sub.untilLines(&out, 5, cancel, sim)...)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := sim.Totals().PublishedBatches; got[len(got)-1].seq < n {
		got = append(got, sub.until(seqIs(n))...)
	}
	truth := readTruth(t, out.Bytes())
	replayed, next := state{}, 0
	for i, line := range truth {
		for ; next < len(got) && got[next].time <= line.UnixMS; next++ {
			if next > 0 && got[next].seq != got[next-1].seq+1 {
				t.Fatalf("seq %d behind %d", got[next].seq, got[next-1].seq)
			}
			replayed.apply(got[next].changes...)
		}
		if line.Checkpoint != i || line.Backend != DefaultBackendID || got[next-1].seq != line.PublishedBatches {
			t.Errorf("line %d: checkpoint %d, backend %s, %+v; the last batch before it is %d", i, line.Checkpoint, line.Backend, line.Stats, got[next-1].seq)
		}
		if want := line.places(t); len(want) == 0 || !maps.Equal(want, replayed) {
			t.Errorf("line %d: %d rows, the stream gives %d", i, len(want), len(replayed))
		}
	}
	if next != len(got) {
		t.Errorf("%d batches behind the last line", len(got)-next)
	}
}

func (s *Sim) hasEnded() (ended bool) {
	s.View(func(_ *Store, p *Publisher) { ended = p.hasEnded() })
	return ended
}

func TestSimRate(t *testing.T) {
	// A busy machine may hold it up at will, even for all of the time; it must never be faster.
	until(t, "events", func() bool {
		sim := newSim(t, SimOptions{Rate: 5_000, Duration: 400 * time.Millisecond})
		if err := run(t, t.Context(), sim)(); err != nil {
			t.Fatal(err)
		}
		n := sim.Totals().PublishedEvents
		if n > 2_050 {
			t.Errorf("%d events in 0.4 s at 5,000/s", n)
		}
		return n > 0
	})
}

func TestSimBurstOverflowsASmallQueue(t *testing.T) {
	sim := newSim(t, SimOptions{
		Publisher: Options{QueueCapacity: 16},
		Rate:      100,
		Burst:     20_000, BurstEvery: 50 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	until(t, "a burst, of which some is sent and some is dropped", func() bool {
		s := sim.Totals()
		return s.DroppedEvents > 0 && s.PublishedEvents > 0 && s.PublishedEvents+s.DroppedEvents >= 20_000
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

func TestSimFlatOut(t *testing.T) {
	sim := newSim(t, SimOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := run(t, ctx, sim)
	until(t, "events", func() bool { return sim.Totals().PublishedEvents >= 1_000 })
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// Each restart is a new process: numbers from 1, an empty store, other objects; the sim's totals go on.
func TestSimRestart(t *testing.T) {
	var out truthFile
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sim := newSim(t, SimOptions{
		Rate: 5_000, RestartEvery: 200 * time.Millisecond,
		Truth: NewTruthWriter(&out), QuietEvery: 90 * time.Millisecond, QuietFor: 10 * time.Millisecond,
	})
	endpoint := sim.Endpoint()
	sub, got := subscribe(t, endpoint, probe(sim))
	wait := run(t, ctx, sim)
	epochs := 1
	last := got[0].seq
	sub.until(func(m message) bool {
		if m.seq <= last {
			epochs++
		}
		last = m.seq
		return epochs >= 3 && out.count(`"checkpoint":0,`) >= 3 // a process may end before its first quiet moment
	})
	cancel()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if sim.Starts() < 3 || sim.Endpoint() != endpoint {
		t.Errorf("%d starts on %s", sim.Starts(), sim.Endpoint())
	}
	truth := readTruth(t, out.Bytes())
	seen := map[place]int{}
	epoch := -1
	for _, line := range truth {
		if line.Checkpoint == 0 {
			epoch++
		}
		for p := range line.places(t) {
			if e, ok := seen[p]; ok && e != epoch {
				t.Fatalf("%v lived through a restart", p)
			}
			seen[p] = epoch
		}
	}
	if epoch < 2 {
		t.Errorf("the truth knows %d restarts", epoch)
	}
	if final := truth[len(truth)-1]; sim.Totals().PublishedEvents <= final.PublishedEvents {
		t.Errorf("totals %+v do not include the publishers before the last, %+v", sim.Totals(), final.Stats)
	}
}

// Kill ends Run at once, with events in the queue.
func TestSimKill(t *testing.T) {
	blocked := make(chan struct{}, 1)
	goOn := make(chan struct{})
	sim := newSim(t, SimOptions{Publisher: Options{OnTaken: func(int) {
		select {
		case blocked <- struct{}{}:
		default:
		}
		<-goOn
	}}})
	wait := run(t, t.Context(), sim)
	<-blocked
	sim.Kill()
	close(goOn)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if !sim.hasEnded() {
		t.Error("the publisher runs on")
	}
	sim.Kill()
}

func TestSimRefuses(t *testing.T) {
	for _, o := range []SimOptions{
		{Rate: -1}, {Burst: -1}, {Duration: -1}, {RestartEvery: -1},
		{Truth: NewTruthWriter(&bytes.Buffer{}), QuietEvery: 1, QuietFor: 1},
		{Publisher: Options{Bind: "nonsense"}},
	} {
		if _, err := NewSim(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
