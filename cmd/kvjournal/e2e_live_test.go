package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// A directory whose path is too long for a socket in it.
func TestLongPath(t *testing.T) {
	t.Parallel()
	root, tmp := t.TempDir(), t.TempDir()
	dir := filepath.Join(root, strings.Repeat("d", 120), strings.Repeat("e", 120), "data")
	rec := startCommand(t, withTemp(tmp, kvjournalBinary, "record", "--dir", dir, "--endpoint", "tcp://127.0.0.1:1"))
	rec.answers(t, dir)
	lookup(t, dir, "", []object{{"default", "k"}})
	gapLines(t, dir)
	if r := kvjournal(t, "rebuild", "--dir", dir); r.code != 0 {
		t.Errorf("rebuild: %q", r.stderr)
	}
	// A relative path is the same directory.
	cmd := exec.Command(kvjournalBinary, "stats", "--dir", "data", "--output", "json")
	cmd.Dir = filepath.Dir(dir)
	if r := runCommand(t, cmd, ""); r.code != 0 || !strings.Contains(r.stdout, `"recorder"`) {
		t.Errorf("by a relative path: exit %d, %q %q", r.code, r.stdout, r.stderr)
	}
	rec.stop(t)
	if names, err := os.ReadDir(tmp); err != nil || len(names) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", names, err)
	}
	if st := stats(t, dir); st.Recorder != nil {
		t.Errorf("a recorder answers that was stopped: %+v", st.Recorder)
	}
}

func withTemp(tmp, binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return cmd
}

var stopped = regexp.MustCompile(`stopped in good order" durable_offset=(\d+) messages=(\d+) events=(\d+)`)

// SIGINT under load: exit 0, and all that was received is durable, sealed and indexed. Meanwhile the index is rebuilt
// while questions are answered.
func TestInterruptAndRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Truth, o.Rate, o.Duration, o.Store.Objects = nil, 10_000, 2*patience, 3000
	})
	rec := record(t, dir, s.Endpoint())
	connected(t, dir, true)
	s.heard(t)
	s.run(t)
	eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > 20_000 })

	before := stats(t, dir)
	rebuild := start(t, kvjournalBinary, "rebuild", "--dir", dir)
	asked := 0
	for rebuild.running() {
		lookup(t, dir, "offset:1", []object{{"default", "never-seen"}})
		asked++
	}
	if code := rebuild.wait(t); code != 0 || rebuild.out.String() != "" || !strings.Contains(rebuild.talk.String(), "index rebuilt") {
		t.Errorf("rebuild: exit %d, %q %q", code, rebuild.out.String(), rebuild.talk.String())
	}
	t.Logf("%d questions were answered while the index was rebuilt", asked)
	eventually(t, "the recorder goes on", func() bool { return stats(t, dir).Events > before.Events+5000 })

	last := stats(t, dir)
	rec.stop(t)
	s.stop()
	s.wait(t)
	m := stopped.FindStringSubmatch(rec.talk.String())
	if m == nil {
		t.Fatalf("the recorder does not say what it has: %q", rec.talk.String())
	}
	said := func(i int) uint64 {
		n, err := strconv.ParseUint(m[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	st, journal := stats(t, dir), readJournal(t, dir)
	if st.DurableOffset != said(1) || st.Messages != said(2) || st.Events != said(3) || journal.events != said(3) || st.Events < last.Events {
		t.Errorf("the recorder said %s, stats say %d, %d, %d, the journal holds %d events", m[0], st.DurableOffset, st.Messages, st.Events, journal.events)
	}
	if st.Index.Lag != 0 || st.Index.AppliedOffset != st.DurableOffset || st.Journal.Bytes == 0 {
		t.Errorf("the directory is not as one at rest: index %+v, journal %+v", st.Index, st.Journal)
	}
	onlyCauses(t, gaps(t, dir))
	sameAfterRebuild(t, dir, journal.objects)
}

// SIGTERM is the same as SIGINT, and --duration ends a recorder too.
func TestOtherEnds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, "tcp://127.0.0.1:1")
	rec.signal(t, 15)
	if code := rec.wait(t); code != 0 {
		t.Errorf("SIGTERM: exit %d", code)
	}
	kvjournal(t, "record", "--dir", dir, "--endpoint", "tcp://127.0.0.1:1", "--duration", "100ms").answered(t)
	for _, name := range []string{"live.json", "kvjournal.sock"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left behind", name)
		}
	}
}
