package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// TestSoak is `make soak`: hours of load, losses, restarts, readings, questions, backups and pruning, with memory and latencies measured.
// Environment:
//
//	KVJOURNAL_SOAK=1h         how long; without it the test is skipped. A minute works
//	KVJOURNAL_SOAK_RATE=3000  events a second of each of the two sources
//	KVJOURNAL_SOAK_OUT=DIR    where samples.jsonl, soak.svg, soak.json and the heap after a quarter of the time and at the end go (default: soak in
//	                          the package's directory)
func TestSoak(t *testing.T) {
	text := os.Getenv("KVJOURNAL_SOAK")
	if text == "" {
		t.Skip("KVJOURNAL_SOAK is not set: see `make soak`")
	}
	duration, err := time.ParseDuration(text)
	if err != nil || duration < 30*time.Second {
		t.Fatalf("KVJOURNAL_SOAK=%q: give a duration of 30s or more", text)
	}
	s := startSoak(t, duration)
	s.run(t)
	s.finish(t)
}

// soak is a run: two masters, one recorder, and those who ask it.
type soak struct {
	duration time.Duration
	tmp, dir string
	out      string
	// honest announces all that it changes, and tells the truth; sly removes things silently, and loses its tails.
	honest, sly *simulation
	cut         *proxy // of honest's stream
	rec         *process
	begun       time.Time
	over        chan struct{}
	end         func() // of commands that still run when all is over
	ask         *askers
	samples     []soakSample
}

// every is how often something happens that is to happen n times, and at least this often apart.
func (s *soak) every(n int, least time.Duration) time.Duration {
	return max(least, s.duration/time.Duration(n))
}

func startSoak(t *testing.T, duration time.Duration) *soak {
	t.Helper()
	s := &soak{duration: duration, tmp: t.TempDir(), out: os.Getenv("KVJOURNAL_SOAK_OUT"), over: make(chan struct{})}
	if s.out == "" {
		s.out = "soak"
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		t.Fatal(err)
	}
	rate := 3000.0
	if text := os.Getenv("KVJOURNAL_SOAK_RATE"); text != "" {
		var err error
		if rate, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatalf("KVJOURNAL_SOAK_RATE: %v", err)
		}
	}
	s.dir = filepath.Join(s.tmp, "data")
	s.honest = newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Rate, o.Duration, o.Store.Objects, o.Store.ClearEvery = rate, 0, 3000, int(rate)*20
		o.Publisher.QueueCapacity, o.Burst, o.BurstEvery = 512, 6000, s.every(20, 7*time.Second)
		o.Publisher.OnTaken = func(int) { time.Sleep(100 * time.Microsecond) }
		o.RestartEvery = s.every(6, 17*time.Second)
		o.QuietEvery, o.QuietFor = s.every(100, 3*time.Second), 400*time.Millisecond
	})
	s.sly = newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Rate, o.Duration, o.Truth = rate, 0, nil
		o.Store.Objects, o.Store.ClearEvery = 3000, int(rate)*20
		o.SilentRemovals, o.TailLoss = 2, 0.3
		o.QuietEvery, o.QuietFor = s.every(60, 4*time.Second), time.Second
		o.SegmentLossEvery = s.every(5, 20*time.Second)
	})
	var through string
	s.cut, through = newProxy(t, s.honest.Endpoint())
	s.rec = start(t, kvjournalBinary, "record", "--heap-profile", filepath.Join(s.tmp, "heap"), "--dir", s.dir, "--audit-every", s.every(40, 10*time.Second).String(),
		"--source", "name=honest,endpoint="+through+",master="+s.admin(t, s.honest, 0.02),
		"--source", "name=sly,endpoint="+s.sly.Endpoint()+",master="+s.admin(t, s.sly, 0.05))
	s.rec.answers(t, s.dir)
	s.ask = &askers{dir: s.dir, took: map[string][]asked{}}
	s.ask.end, s.end = context.WithCancel(t.Context())
	return s
}

// admin serves the admin API of a simulation that fails at times.
func (s *soak) admin(t *testing.T, sim *simulation, errors float64) string {
	t.Helper()
	a, err := mooncaketest.NewAdmin(sim.Sim, mooncaketest.AdminOptions{Errors: errors, Latency: time.Millisecond}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a.URL()
}

// run lets everything happen until the time is over.
func (s *soak) run(t *testing.T) {
	s.begun = time.Now()
	s.honest.run(t)
	s.sly.run(t)
	done := make(chan struct{})
	var all []func()
	beside := func(f func()) { all = append(all, f) }
	beside(func() { s.ask.questions(t, s.over) })
	beside(func() { s.ask.followers(t, s.over) })
	beside(func() { s.sample(t) })
	beside(func() { s.often(s.every(10, 11*time.Second), func(i int) { s.cut.cut(i%2 == 0) }) })
	beside(func() { s.often(s.every(12, 15*time.Second), func(i int) { s.backup(t, i) }) })
	beside(func() {
		s.often(s.every(60, 10*time.Second), func(i int) {
			s.ask.timed(t, "reconcile", "", "reconcile", "--dir", s.dir, "--source", []string{"honest", "sly"}[i%2])
		})
	})
	beside(func() {
		s.often(s.every(6, 20*time.Second), func(int) {
			s.ask.timed(t, "prune", "", "prune", "--dir", s.dir, "--keep", fmt.Sprintf("%ds", int(s.duration.Seconds()/3)))
		})
	})
	left := make(chan struct{})
	for _, f := range all {
		go func() {
			f()
			left <- struct{}{}
		}()
	}
	go func() {
		for range all {
			<-left
		}
		close(done)
	}()
	// Writing the heap collects it first, and memory then takes a while to be what it was: not where the half begins that must be flat.
	for _, p := range []struct {
		when  string
		after time.Duration
	}{{"quarter", s.duration / 4}, {"end", s.duration - s.duration/4}} {
		select {
		case <-time.After(p.after):
			s.heap(t, p.when)
		case <-s.rec.ended:
			t.Errorf("the recorder ended:\n%s", s.rec.talk.String())
		}
	}
	close(s.over)
	select {
	case <-done:
	case <-time.After(5 * time.Second): // what is asked last may wait for a master that does not answer
		s.end()
		<-done
	}
	s.honest.stop()
	s.sly.stop()
	s.honest.wait(t)
	s.sly.wait(t)
}

// heap has the recorder write its heap, for `go tool pprof -diff_base heap-quarter.prof heap-end.prof`.
func (s *soak) heap(t *testing.T, when string) {
	if err := s.rec.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
		return
	}
	path := filepath.Join(s.tmp, "heap")
	eventually(t, "the heap is written", func() bool { text, err := os.Stat(path + ".txt"); return err == nil && text.Size() > 0 })
	for from, to := range map[string]string{path: "heap-" + when + ".prof", path + ".txt": "heap-" + when + ".txt"} {
		b, err := os.ReadFile(from)
		if err := errors.Join(err, os.WriteFile(filepath.Join(s.out, to), b, 0o644), os.Remove(from)); err != nil {
			t.Error(err)
		}
	}
}

// often calls f again and again until the run is over.
func (s *soak) often(every time.Duration, f func(i int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-s.over:
			return
		case <-tick.C:
			f(i)
		}
	}
}

// backup takes one, asks it something, and removes it.
func (s *soak) backup(t *testing.T, i int) {
	to := filepath.Join(s.tmp, fmt.Sprint("backup-", i))
	if s.ask.timed(t, "backup", "", "backup", "--dir", s.dir, "--to", to, "--output", "json").code != 0 {
		return
	}
	s.ask.timed(t, "a backup's stats", "", "stats", "--dir", to, "--output", "json")
	if err := os.RemoveAll(to); err != nil {
		t.Error(err)
	}
}

// soakResult is what a run came to.
type soakResult struct {
	Seconds float64 `json:"seconds"`
	Events  uint64  `json:"events"`
	// RSS in MiB: at most, in the mean of the second half, and how much it grew over the second half by its slope.
	RSSMax    float64 `json:"rss_mib_max"`
	RSSMean   float64 `json:"rss_mib_mean"`
	RSSGrowth float64 `json:"rss_mib_growth"`
	Flat      bool    `json:"flat"`
	FilesMax  int     `json:"files_max"`
	LagMax    uint64  `json:"lag_max"`
	DirMiB    float64 `json:"dir_mib"`
	// Gaps by cause. Ours are those that a recorder makes.
	Gaps map[string]int `json:"gaps"`
	Ours int            `json:"gaps_ours"`
	// Judged are the checkpoints of the truth that were asked about, Confirmed the confirmed answers among the Evident ones.
	Judged    int               `json:"judged"`
	Evident   int               `json:"evident"`
	Confirmed int               `json:"confirmed"`
	Failed    int               `json:"failed_commands"`
	Latency   map[string]millis `json:"latency_ms"`
}

// flatWithin is the share of its mean that the memory may grow by over the second half of a run, and still count as flat.
const flatWithin = 0.05

func (s *soak) finish(t *testing.T) {
	quiet(t, s.dir)
	last := stats(t, s.dir)
	s.rec.stop(t)
	r := soakResult{Seconds: time.Since(s.begun).Seconds(), Events: last.Events, Failed: s.ask.failed, Latency: s.ask.summary(), Gaps: count(gaps(t, s.dir))}
	for _, cause := range []string{"recorder_slow", "recorder_down", "damaged", "unknown"} {
		r.Ours += r.Gaps[cause]
	}
	s.measure(&r)
	s.judge(t, &r)
	line, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(s.out, name), b, 0o644); err != nil {
			t.Error(err)
		}
	}
	write("record.log", []byte(s.rec.talk.String()))
	write("soak.json", append(line, '\n'))
	write("soak.svg", s.charts())
	t.Logf("%s", line)
	t.Logf("plots: %s", filepath.Join(s.out, "soak.svg"))
	if r.Ours > 0 {
		t.Errorf("%d gaps of the recorder's own: %v", r.Ours, r.Gaps)
	}
	if r.Failed > 0 {
		t.Errorf("%d commands failed", r.Failed)
	}
	if !r.Flat && s.duration >= 30*time.Minute {
		t.Errorf("memory grew by %.1f MiB of %.1f over the second half", r.RSSGrowth, r.RSSMean)
	}
	if len(s.ask.known) < 100 {
		t.Errorf("questions were asked about %d objects only", len(s.ask.known))
	}
	if r.Confirmed == 0 {
		t.Error("nothing at all was confirmed")
	}
}

// judgedObjects is about how many objects are asked about at each checkpoint.
const judgedObjects = 4000

// judge compares answers about the honest source with the truth, and looks that presence at the sly one is confirmed by readings only.
func (s *soak) judge(t *testing.T, r *soakResult) {
	truth := readTruth(t, &s.honest.truth)
	all := truth
	if truth = some(truth, 16); len(truth) < 4 {
		t.Fatalf("only %d checkpoints", len(truth))
	}
	objects := universe(nil, all)
	if n := len(objects) / judgedObjects; n > 1 { // a restarted master has new ones
		objects = slices.DeleteFunc(objects, func(o object) bool { return crc32.ChecksumIEEE([]byte(o.key))%uint32(n) != 0 })
	}
	for i := range truth {
		answers, ok := s.askHonest(t, truth[i].UnixMS, objects)
		if !ok {
			continue // before the horizon
		}
		n := truth[i].judge(t, fmt.Sprint("checkpoint ", i), objects, answers)
		r.Judged, r.Evident, r.Confirmed = r.Judged+1, r.Evident+n.evident, r.Confirmed+n.confirmed
	}
	if r.Judged == 0 {
		t.Error("no checkpoint could be judged")
	}
	lines := kvjournal(t, "objects", "--dir", s.dir, "--source", "sly", "--certainty", "confirmed", "--output", "json").answered(t)
	for _, line := range lines {
		var a query.Answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		for name, m := range a.Media {
			if a.Silent && m.State == query.Present && m.Certainty == query.Confirmed && m.Evidence.Cause != "reconciliation" {
				t.Fatalf("%s on %s is confirmed present by an event of a silent master: %s", a.Key, name, line)
			}
		}
	}
}

// askHonest asks for all objects of the honest source; false where the moment lies before what was pruned.
func (s *soak) askHonest(t *testing.T, ms int64, objects []object) ([]query.Answer, bool) {
	t.Helper()
	r := kvjournalStdin(t, sourced(t, "honest", objects), "lookup", "--stdin", "--dir", s.dir, "--at", fmt.Sprint(ms), "--output", "json")
	if r.code != 0 && strings.Contains(r.stderr, "horizon") {
		return nil, false
	}
	lines := r.answered(t)
	if len(lines) != len(objects) {
		t.Fatalf("%d answers to %d questions", len(lines), len(objects))
	}
	out := make([]query.Answer, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out, true
}

// sourced are the lines of `lookup --stdin` for objects of one source.
func sourced(t *testing.T, source string, objects []object) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		line, err := json.Marshal(&query.Question{Name: query.Name{Source: source, Tenant: query.Bytes(o.tenant), Key: query.Bytes(o.key)}})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// measure sums the samples up.
func (s *soak) measure(r *soakResult) {
	for _, p := range s.samples {
		r.RSSMax, r.FilesMax, r.LagMax, r.DirMiB = max(r.RSSMax, p.RSS), max(r.FilesMax, p.Files), max(r.LagMax, p.Lag), p.Dir
	}
	half := s.samples[len(s.samples)/2:]
	x, y := make([]float64, len(half)), make([]float64, len(half))
	for i, p := range half {
		x[i], y[i] = p.Seconds, p.RSS
	}
	slope, mean := line(x, y)
	r.RSSMean = mean
	if len(half) > 1 {
		r.RSSGrowth = slope * (slices.Max(x) - slices.Min(x))
	}
	r.Flat = r.RSSGrowth <= flatWithin*mean
}

// line fits a line through points by least squares: its slope, and the mean of y.
func line(x, y []float64) (slope, mean float64) {
	if len(x) == 0 {
		return 0, 0
	}
	var mx, my, xx, xy float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	if xx == 0 {
		return 0, my
	}
	return xy / xx, my
}
