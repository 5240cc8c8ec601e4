package main

import (
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// A reader at rest that is still reading when a recorder starts does not hold it up, and prints a message, not what may be
// torn.
func TestReaderWhenARecorderStarts(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	cmd := exec.Command(kvjournalBinary, "lookup", "--stdin", "--dir", dir, "--output", "json")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader := startCommand(t, cmd)
	ask := func(n int) {
		t.Helper()
		objects := make([]object, n)
		for i := range objects {
			objects[i] = object{"default", "k" + strconv.Itoa(i)}
		}
		if _, err := io.WriteString(stdin, questions(t, objects)); err != nil {
			t.Fatal(err)
		}
	}
	answers := func() int { return strings.Count(reader.out.String(), "\n") }
	ask(lookupChunk) // one chunk is answered: the directory is open
	eventually(t, "the reader answers", func() bool { return answers() == lookupChunk })

	s := newSimulation(t, func(o *mooncaketest.SimOptions) { o.Truth, o.Duration = nil, 10*patience })
	rec := record(t, dir, s.Endpoint())
	connected := func() bool {
		for _, so := range stats(t, dir).Sources {
			if so.Source == "default" && so.Connected {
				return true
			}
		}
		return false
	}
	eventually(t, "the recorder is connected", connected)
	s.heard(t)
	s.run(t)
	before := stats(t, dir).Events
	eventually(t, "events are recorded beside the reader", func() bool { return stats(t, dir).Events > before+1000 })

	ask(10)
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := reader.wait(t); code != 1 {
		t.Errorf("the reader ended with exit %d", code)
	}
	if n := answers(); n != lookupChunk || !strings.HasSuffix(reader.out.String(), "}\n") {
		t.Errorf("the reader printed %d answers, the recorder came behind %d", n, lookupChunk)
	}
	if talk := reader.talk.String(); !strings.Contains(talk, "a recorder started while this was read; ask again") {
		t.Errorf("the reader said %q", talk)
	}
	rec.stop(t)
	s.stop()
	s.wait(t)
	if all := gapLines(t, dir); len(all) != 1 || !strings.Contains(all[0], `"small"`) {
		t.Errorf("gaps %q", all)
	}
}

// Readers that come and go while a recorder starts, and many at once, never stop it, and never print a torn line.
func TestReadersBesideStartsAndStops(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	done := make(chan struct{})
	ended := make(chan []result)
	for range 2 {
		go func() {
			var all []result
			for {
				select {
				case <-done:
					ended <- all
					return
				default:
				}
				var r result
				cmd := exec.Command(kvjournalBinary, "lookup", "k", "never", "--source", "small", "--at", "offset:5", "--dir", dir, "--output", "json")
				var out, talk strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &talk
				cmd.Run()
				r.code, r.stdout, r.stderr = cmd.ProcessState.ExitCode(), out.String(), talk.String()
				all = append(all, r)
			}
		}()
	}
	for range 5 {
		rec := record(t, dir, "tcp://127.0.0.1:1")
		rec.stop(t)
	}
	rec := record(t, dir, "tcp://127.0.0.1:1")
	rec.kill9(t)
	close(done)
	want := ""
	answered, refused := 0, map[string]int{}
	for range 2 {
		for _, r := range <-ended {
			switch {
			case r.code == 0:
				answered++
				lines := r.answered(t)
				got := ""
				for _, l := range lines {
					got += short(l) + "\n"
				}
				if want == "" {
					want = got
				}
				if len(lines) != 2 || got != want {
					t.Errorf("answered %q, before %q", got, want)
				}
			case r.code == 1 && r.stdout == "":
				refused[r.stderr]++
			default:
				t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
			}
		}
	}
	t.Logf("%d answered; refused: %v", answered, refused)
	if answered == 0 {
		t.Error("nobody was answered")
	}
	for talk := range refused {
		if !strings.Contains(talk, "ask again") {
			t.Errorf("a reader was told %q, which does not say what to do", talk)
		}
	}
}

// A writer that answers no questions: whoever asks is told so, and what to do.
func TestQuestionsBesideAnImport(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	lock, err := datadir.Claim(t.Context(), vfs.Default, dir, "kvjournal import")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	asked := make(chan result)
	commands := []string{"stats", "rebuild"} // both wait for a while
	for _, c := range commands {
		go func() { asked <- runCommand(t, exec.Command(kvjournalBinary, c, "--dir", dir), "") }()
	}
	for range commands {
		r := <-asked
		r.told(t, 1, "a writer runs on this directory: ", "kvjournal import, process ", "ask again when it has ended")
	}
}
