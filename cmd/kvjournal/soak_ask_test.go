package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// askers put every kind of question to a recorder, and note how long each takes.
type askers struct {
	dir string
	// end ends what still runs when the time is over.
	end context.Context

	mu     sync.Mutex
	took   map[string][]asked // by kind
	failed int
	known  []query.Name // objects that were seen in an answer
}

// asked is one question: when it was put, and how long it took.
type asked struct {
	at   time.Time
	took time.Duration
}

// millis sums latencies up, in ms.
type millis struct {
	Count  int     `json:"count"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"most"`
}

// mayFail are the commands that depend on a master which fails at times.
var mayFail = []string{"reconcile"}

// timed runs a command and notes how long it took. A failure is noted and shown, and ends nothing.
func (a *askers) timed(t *testing.T, kind, stdin string, args ...string) result {
	ctx, cancel := context.WithTimeout(a.end, 10*patience) // what a busy machine takes long for is measured, not judged
	defer cancel()
	begun := time.Now()
	var out, talk strings.Builder
	cmd := exec.CommandContext(ctx, kvjournalBinary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &talk
	_ = cmd.Run() // its exit code says it
	r := result{cmd.ProcessState.ExitCode(), out.String(), talk.String()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.code == 0 {
		a.took[kind] = append(a.took[kind], asked{begun, time.Since(begun)})
	} else if !slices.Contains(mayFail, kind) && a.end.Err() == nil {
		a.failed++
		t.Logf("FAILED %s: %q: exit %d, %s", kind, args, r.code, r.stderr)
	}
	return r
}

// knownMost bounds the objects that are asked about again.
const knownMost = 20_000

// learn remembers the objects that some answers name.
func (a *askers) learn(lines string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range strings.Lines(lines) {
		var n query.Question
		switch {
		case json.Unmarshal([]byte(line), &n) != nil || len(n.Key) == 0:
		case len(a.known) < knownMost:
			a.known = append(a.known, n.Name)
		default:
			a.known[rand.IntN(knownMost)] = n.Name
		}
	}
}

// some are n of the known objects, as lines of `lookup --stdin`.
func (a *askers) some(n int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for range n {
		q := query.Question{Name: query.Name{Key: query.Bytes("never-seen")}}
		if len(a.known) > 0 {
			q.Name = a.known[rand.IntN(len(a.known))]
		}
		if line, err := json.Marshal(&q); err == nil {
			b.Write(append(line, '\n'))
		}
	}
	return b.String()
}

// one is a known object as arguments of a command.
func (a *askers) one() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) == 0 {
		return []string{"never-seen"}
	}
	n := a.known[rand.IntN(len(a.known))]
	if strings.Contains(string(n.Key), "\x00") { // which no argument can hold
		return []string{"never-seen"}
	}
	return []string{"--source", n.Source, "--tenant", string(n.Tenant), "--", string(n.Key)}
}

// askPause lets the recorder breathe between two questions.
const askPause = 100 * time.Millisecond

// questions asks all kinds in turn until over.
func (a *askers) questions(t *testing.T, over chan struct{}) {
	common := []string{"--dir", a.dir, "--output", "json"}
	ask := func(kind, stdin string, args ...string) result {
		return a.timed(t, kind, stdin, slices.Concat(args[:1], common, args[1:])...)
	}
	for {
		for _, source := range []string{"honest", "sly"} {
			a.learn(ask("objects", "", "objects", "--source", source, "--limit", "300").stdout)
		}
		for _, f := range []func(){
			func() { ask("lookup 1000", a.some(1000), "lookup", "--stdin") },
			func() { ask("lookup 1000 at", a.some(1000), "lookup", "--stdin", "--at", "-10s") },
			func() { ask("lookup 1000 now", a.some(1000), "lookup", "--stdin", "--at", "now") },
			func() { ask("lookup", "", slices.Concat([]string{"lookup"}, a.one())...) },
			func() { ask("history", "", slices.Concat([]string{"history"}, a.one())...) },
			func() { ask("why", "", slices.Concat([]string{"why"}, a.one())...) },
			func() { ask("objects --count", "", "objects", "--count") },
			func() { ask("diff", "", "diff", "--source", "honest", "--from", "-20s", "--to", "-5s", "--summary") },
			func() { ask("gaps", "", "gaps", "--summary") },
			func() { ask("activity", "", "activity", "--from", "-60s", "--bucket", "1s") },
			func() { ask("lifetimes", "", "lifetimes", "--source", "honest", "--from", "-30s") },
			func() { ask("log", "", "log", "--limit", "1000") },
			func() { ask("stats", "", "stats") },
		} {
			f()
			select {
			case <-over:
				return
			case <-time.After(askPause):
			}
		}
	}
}

// followers come and go: they read the log as it grows, for a while, and leave, some without a word.
func (a *askers) followers(t *testing.T, over chan struct{}) {
	for i := 0; ; i++ {
		cmd := exec.Command(kvjournalBinary, "log", "--dir", a.dir, "--follow", "--output", "json", "--from", "now")
		if i%3 == 0 {
			cmd.Args = cmd.Args[:len(cmd.Args)-2]
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		stay := time.Duration(1+i%7) * time.Second
		select {
		case <-over:
		case <-time.After(stay):
		}
		if i%2 == 0 {
			_ = cmd.Process.Kill()
		} else {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		_ = cmd.Wait() // it was told to go
		select {
		case <-over:
			return
		default:
		}
	}
}

// summary is what each kind took.
func (a *askers) summary() map[string]millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]millis{}
	for kind, all := range a.took {
		var ms []float64
		for _, q := range all {
			ms = append(ms, float64(q.took.Microseconds())/1000)
		}
		slices.Sort(ms)
		out[kind] = millis{len(ms), ms[len(ms)/2], ms[len(ms)*99/100], ms[len(ms)-1]}
	}
	return out
}
