package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// agedHour is how many messages an hour of agedDir has.
const agedHour = 3600

// agedDir is a directory with four hours of a publisher, a batch a second, with gaps, more than 10 hours ago, and some of its objects.
func agedDir(t *testing.T, source string) (dir string, objects []object) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "aged.kvcap")
	c := newCapture(t, path)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 4 * agedHour {
		k, medium := fmt.Sprint("k", rng.IntN(300)), []string{"cpu", "disk"}[rng.IntN(2)]
		if rng.IntN(2) == 0 {
			c.batch(stored(k, medium))
		} else {
			c.batch(removed(k, medium))
		}
		if i%5000 == 4999 {
			c.seq += 3
		}
	}
	c.close()
	dir = dataDir(t)
	kvjournal(t, "import", "--dir", dir, "--source", source, path).answered(t)
	for i := range 300 {
		objects = append(objects, object{"default", fmt.Sprint("k", i)})
	}
	return dir, append(objects, object{"default", "never"})
}

// recordAged starts a recorder of the directory's source, which meets no publisher.
func recordAged(t *testing.T, dir string, more ...string) *process {
	t.Helper()
	p := start(t, kvjournalBinary, append([]string{"record", "--dir", dir, "--source", "name=aged,endpoint=tcp://127.0.0.1:1"}, more...)...)
	p.answers(t, dir)
	return p
}

func pruneReport(t *testing.T, dir string, more ...string) query.PruneReport {
	t.Helper()
	lines := kvjournal(t, append([]string{"prune", "--dir", dir, "--output", "json"}, more...)...).answered(t)
	var r query.PruneReport
	if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &r) != nil {
		t.Fatalf("report %q", lines)
	}
	return r
}

// TestPrune: at rest, and by a recorder that runs, the answers from the horizon on stay, and what lies before it has its own error.
func TestPrune(t *testing.T) {
	t.Parallel()
	dir, objects := agedDir(t, "aged")
	end := stats(t, dir).DurableOffset
	first := fmt.Sprintf("offset:%d", end/2)
	would := pruneReport(t, dir, "--before", first, "--dry-run")
	if !would.Pruned || !would.DryRun || would.Horizon == nil || would.Horizon.Offset >= end/2 || would.EventsPruned == 0 || stats(t, dir).Horizon != nil {
		t.Fatalf("a dry run: %+v", would)
	}
	at := []string{"", first, fmt.Sprintf("offset:%d", would.Horizon.Offset), fmt.Sprintf("offset:%d", end-1), timeOf(4*3600 - 30).Format(time.RFC3339)}
	var before [][]string
	for _, a := range at {
		before = append(before, lookupLines(t, dir, a, objects))
	}
	losses := gapLines(t, dir)
	same := func(what string, from int) {
		t.Helper()
		for i, a := range at {
			if i < from && a != "" {
				continue
			}
			sameAnswers(t, what+", at "+a, before[i], lookupLines(t, dir, a, objects))
		}
		if now := gapLines(t, dir); len(now) != len(losses) {
			t.Errorf("%s: %d losses, there were %d", what, len(now), len(losses))
		}
	}
	did := pruneReport(t, dir, "--before", first)
	if !did.Pruned || *did.Horizon != *would.Horizon && did.Horizon.Offset != would.Horizon.Offset || did.EventsPruned != would.EventsPruned || did.JournalBytesAfter >= did.JournalBytesBefore {
		t.Errorf("a dry run said %+v, and it became %+v", would, did)
	}
	same("at rest", 0)
	if st := stats(t, dir); st.Horizon == nil || st.Horizon.Offset != did.Horizon.Offset || st.Events != 4*3600 {
		t.Errorf("stats behind a prune: %+v", st)
	}
	early := fmt.Sprintf("offset:%d", did.Horizon.Offset-1)
	for _, c := range [][]string{
		{"lookup", "--at", early, "k"}, {"lookup", "--at", "seq:1/5", "k"}, {"lookup", "--at", timeOf(10).Format(time.RFC3339), "k"}, {"objects", "--at", early}, {"why", "--at", early, "k"},
		{"history", "--from", early, "k"}, {"log", "--from", early}, {"diff", "--from", early}, {"lifetimes", "--from", early}, {"activity", "--from", early},
		{"export", "--from", early, "--out", filepath.Join(t.TempDir(), "no.kvcap")}, {"gaps", "--from", early},
	} {
		kvjournal(t, append(c, "--dir", dir)...).told(t, 1, "horizon", fmt.Sprintf("offset %d", did.Horizon.Offset), "2026-11-29T")
	}
	for _, c := range []string{"log", "activity", "lifetimes"} {
		if r := kvjournal(t, c, "--dir", dir); r.code != 0 || strings.Count(r.stderr, "was pruned; this begins there") != 1 {
			t.Errorf("%s does not say that it begins at the horizon: %d %q", c, r.code, r.stderr)
		}
	}
	if again := pruneReport(t, dir, "--before", first); again.Pruned {
		t.Errorf("pruned again: %+v", again)
	}
	kvjournal(t, "rebuild", "--dir", dir).answered(t)
	same("rebuilt", 0)

	rec := recordAged(t, dir, "--keep-bytes", "0")
	live := pruneReport(t, dir, "--before", fmt.Sprintf("offset:%d", end-700))
	if !live.Pruned || live.Horizon.Offset <= did.Horizon.Offset {
		t.Errorf("by the recorder: %+v", live)
	}
	same("live", 3)
	kvjournal(t, "lookup", "--dir", dir, "--at", first, "k").told(t, 1, "horizon", fmt.Sprintf("offset %d", live.Horizon.Offset))
	rec.kill9(t)
	same("behind kill -9", 3)
}

// TestRecordKeeps: a recorder prunes by itself what is older than it is to keep, and says what it keeps.
func TestRecordKeeps(t *testing.T) {
	t.Parallel()
	dir, objects := agedDir(t, "aged")
	before := lookupLines(t, dir, "", objects)
	rec := recordAged(t, dir, "--keep", "1h")
	eventually(t, "the recorder prunes", func() bool { return stats(t, dir).Horizon != nil })
	if talk := rec.talk.String(); !strings.Contains(talk, "in the last 1h") || !strings.Contains(talk, "80 % of the volume") {
		t.Errorf("what is kept is not said: %s", talk)
	}
	sameAnswers(t, "kept", before, lookupLines(t, dir, "", objects))
	rec.stop(t)
	sameAnswers(t, "at rest", before, lookupLines(t, dir, "", objects))
}

func TestPruneUsage(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, args := range [][]string{
		{}, {"--keep", "3"}, {"--keep", "0d"}, {"--keep", "-1h"}, {"--keep-bytes", "much"}, {"--keep-bytes", "0"}, {"--keep", "1d", "--keep-bytes", "1GB"},
		{"--before", "yesterday"}, {"--before", "now"}, {"--keep", "1d", "more"},
	} {
		kvjournal(t, append([]string{"prune", "--dir", dir}, args...)...).told(t, 2)
	}
	kvjournal(t, "record", "--endpoint", "tcp://127.0.0.1:1", "--dir", dir, "--keep", "x").told(t, 2, "--keep")
	kvjournal(t, "record", "--endpoint", "tcp://127.0.0.1:1", "--dir", dir, "--keep-bytes", "x").told(t, 2, "--keep-bytes")
	if r := pruneReport(t, dir, "--keep", "1d"); r.Pruned { // no checkpoint lies in so little
		t.Errorf("%+v", r)
	}
}

func TestParseKeep(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0.5d": 12 * time.Hour, "12h": 12 * time.Hour, "90m": 90 * time.Minute, "d": 0, "30": 0, "-1d": 0, "1us": 0, "99999999d": 0, "NaNd": 0} {
		if d, err := parseKeep(text); d != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
}
