package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// withoutWhom takes out of an answer's JSON, at any depth, what depends on whom one asks, and when.
func withoutWhom(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "live")
		delete(v, "age_ms")
		for _, x := range v {
			withoutWhom(x)
		}
	case []any:
		for _, x := range v {
			withoutWhom(x)
		}
	}
	return v
}

// samePast fails the test where two answers of one command differ in more than whom was asked.
func samePast(t *testing.T, command string, live, rest []string) {
	t.Helper()
	for i := range max(len(live), len(rest)) {
		a, b := lineAt(live, i), lineAt(rest, i)
		if a == b {
			continue
		}
		var x, y any
		if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil || !reflect.DeepEqual(withoutWhom(x), withoutWhom(y)) {
			t.Errorf("%s: %d lines live, %d at rest; line %d\nlive %.1000s\nrest %.1000s", command, len(live), len(rest), i+1, a, b)
			return
		}
	}
}

// Every question about the past, with moments in every form: a recorder and its directory at rest give the same JSON.
func TestPastLiveAndAtRest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Publisher.QueueCapacity, o.Burst, o.BurstEvery = 256, 1500, 700*time.Millisecond
		o.RestartEvery, o.Duration, o.Rate = 900*time.Millisecond, 1500*time.Millisecond, 1000
	})
	rec := record(t, dir, s.Endpoint())
	s.run(t)
	s.wait(t)
	truth := readTruth(t, &s.truth)
	end := quiet(t, dir).DurableOffset
	connected(t, dir, false)
	if len(gapLines(t, dir)) == 0 {
		t.Error("no losses to tell of")
	}
	ms := truth[len(truth)/2].UnixMS
	when := []string{strconv.FormatInt(ms, 10), time.UnixMilli(ms).UTC().Format(time.RFC3339Nano), "-10m", "offset:" + strconv.FormatUint(end/2, 10),
		"seq:1/" + strconv.FormatUint(seqReceived(t, dir), 10), "now"}
	var key object
	for o := range truth[len(truth)-1].media {
		if o.tenant != "" && (key.key == "" || o.key < key.key) {
			key = o
		}
	}
	to := " --to offset:" + strconv.FormatUint(end, 10)
	var commands []string
	add := func(format string, args ...any) { commands = append(commands, fmt.Sprintf(format, args...)) }
	add("why %s --tenant %s", key.key, key.tenant)
	add("history %s --tenant %s --raw", key.key, key.tenant)
	add("objects --state any")
	add("objects --count")
	add("diff --from offset:1 --summary")
	add("gaps --summary")
	add("gaps --no-objects")
	add("log --raw%s", to)
	add("lifetimes --by group%s", to)
	add("activity%s", to)
	add("export --format ndjson%s", to)
	for _, w := range when {
		if w != "-10m" { // it tells the moment, which moves with our clock
			add("why %s --tenant %s --at %s", key.key, key.tenant, w)
		}
		add("objects --at %s", w)
		add("objects --at %s --certainty uncertain --count", w)
		add("diff --from %s%s", w, to)
		add("gaps --from %s%s", w, to)
		add("history %s --tenant %s --from %s", key.key, key.tenant, w)
		add("log --type event,gap --from %s%s", w, to)
		add("lifetimes --from %s%s", w, to)
		add("activity --from %s%s", w, to)
		add("export --format ndjson --from %s%s", w, to)
		if w == "now" { // the recorder's end is recorded too
			continue
		}
		add("diff --from offset:1 --to %s", w)
		add("gaps --to %s", w)
		add("history %s --tenant %s --to %s", key.key, key.tenant, w)
		add("log --to %s", w)
		add("lifetimes --to %s", w)
		add("activity --to %s", w)
		add("export --format ndjson --to %s", w)
	}
	ask := func(command string) []string {
		args := append(strings.Fields(command), "--dir", dir)
		if !strings.HasPrefix(command, "export ") {
			args = append(args, "--output", "json")
		}
		return kvjournal(t, args...).answered(t)
	}
	live, lines := make([][]string, len(commands)), 0
	for i, c := range commands {
		live[i] = ask(c)
		lines += len(live[i])
		for _, line := range live[i] {
			if !json.Valid([]byte(line)) {
				t.Fatalf("%s: no JSON: %.300s", c, line)
			}
		}
	}
	rec.stop(t)
	for i, c := range commands {
		samePast(t, c, live[i], ask(c))
	}
	t.Logf("%d commands, %d lines", len(commands), lines)
	// The two ways to write one moment are one.
	samePast(t, "ms and RFC 3339", ask("objects --at "+when[0]), ask("objects --at "+when[1]))
}

func TestUsageErrorsOfThePast(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, c := range []struct {
		args string
		say  []string
	}{
		{"history", []string{"one KEY", "history --help"}},
		{"history k more", []string{"one KEY", "more", "history --help"}},
		{"history k --limit many", []string{"--limit", "many"}},
		{"history !k --base64", []string{"!k", "base64"}},
		{"history k --source nobody", []string{"nobody", "there is small"}},
		{"history k --output csv", []string{"table or json"}},
		{"why", []string{"one KEY", "why --help"}},
		{"why k --source nobody", []string{"nobody", "there is small"}},
		{"objects surplus", []string{"surplus", "objects --help"}},
		{"objects --state gone", []string{"gone", "present", "absent", "any"}},
		{"objects --certainty sure", []string{"sure", "confirmed", "uncertain"}},
		{"objects --count --limit 5", []string{"--count", "--limit"}},
		{"objects --source nobody", []string{"nobody", "there is small"}},
		{"diff", []string{"--from", "-10m"}},
		{"diff --from offset:1 --source nobody", []string{"nobody", "there is small"}},
		{"lifetimes --by key", []string{"key", "tenant", "group", "none"}},
		{"lifetimes --top some", []string{"--top", "some"}},
		{"activity --bucket 0s", []string{"0s", "30s"}},
		{"activity --type stored,read", []string{"read", "stored"}},
		{"log --type everything", []string{"everything", "stored", "fact"}},
		{"log --source nobody", []string{"nobody", "there is small"}},
		{"export --format xml", []string{"xml", "kvcap", "ndjson"}},
		{"export --source nobody", []string{"nobody", "there is small"}},
		{"gaps --summary=perhaps", []string{"--summary", "perhaps"}},
	} {
		t.Run(c.args, func(t *testing.T) { kvjournal(t, append(strings.Fields(c.args), "--dir", dir)...).told(t, 2, c.say...) })
	}
	// A moment that is none, wherever there is one.
	for _, command := range []string{"why k --at", "objects --at", "diff --from", "diff --from offset:1 --to", "history k --from", "history k --to", "log --from",
		"log --to", "lifetimes --from", "lifetimes --to", "activity --from", "activity --to", "export --from", "export --to", "gaps --from", "gaps --to"} {
		for _, c := range []struct{ when, say string }{{"yesterday", "RFC 3339"}, {"seq:9/9", "never received"}, {"offset:x", "offset:N"}} {
			t.Run(command+" "+c.when, func(t *testing.T) {
				kvjournal(t, append(strings.Fields(command), c.when, "--dir", dir)...).told(t, 2, c.when[:1], c.say)
			})
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for _, command := range []string{"why k", "history k", "objects", "diff --from offset:1", "log", "lifetimes", "activity", "export"} {
		kvjournal(t, append(strings.Fields(command), "--dir", missing)...).told(t, 1, missing, "no kvjournal data", "--dir")
	}
}

// Ctrl-C in the middle of an export or a log ends it with exit 1, and nothing is there that was not there before.
func TestInterruptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	dir, out, temporary := filepath.Join(tmp, "data"), filepath.Join(tmp, "out"), filepath.Join(tmp, "temporary")
	for _, d := range []string{out, temporary} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	capture := filepath.Join(tmp, "long.kvcap")
	sim := start(t, mooncakesimBinary, "--capture", capture, "--events", "150000", "--batch", "1")
	if code := sim.wait(t); code != 0 {
		t.Fatal(sim.talk.String())
	}
	kvjournal(t, "import", "--dir", dir, capture).answered(t)
	stats(t, dir)
	names := func(dir string) (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	before := names(dir)
	interrupt := func(begin func() *process, begun func(*process) bool) {
		t.Helper()
		var p *process
		eventually(t, "one is interrupted before its end", func() bool { // a busy machine may not look at it in time
			if err := errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o700)); err != nil {
				t.Fatal(err)
			}
			p = begin()
			eventually(t, "it has begun", func() bool { return begun(p) || !p.running() })
			if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			return p.wait(t) > 0 // below: it had ended, and was about to leave
		})
		if code := p.wait(t); code != 1 || !strings.Contains(p.talk.String(), "interrupted") {
			t.Errorf("%q: exit %d, %q", p.cmd.Args, code, p.talk.String())
		}
		if o, d, tm := names(out), names(temporary), names(dir); len(o) > 0 || len(d) > 0 || !reflect.DeepEqual(tm, before) {
			t.Errorf("%q left behind: %v %v, in the directory %v, before %v", p.cmd.Args, o, d, tm, before)
		}
	}
	for _, format := range []string{"kvcap", "ndjson"} {
		interrupt(func() *process {
			return startCommand(t, withTemp(temporary, kvjournalBinary, "export", "--dir", dir, "--format", format, "--out", filepath.Join(out, "x.zst")))
		}, func(*process) bool { return len(names(out)) > 0 })
	}
	for _, command := range []string{"log --output json", "log --raw", "objects --state any --output json"} {
		interrupt(func() *process {
			return startCommand(t, withTemp(temporary, kvjournalBinary, append(strings.Fields(command), "--dir", dir)...))
		}, func(p *process) bool { return p.out.String() != "" })
	}
}
