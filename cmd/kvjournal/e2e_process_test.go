package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// patience bounds every wait for a condition: far above what is usual, because the machine may be busy.
const patience = 2 * time.Minute

// eventually polls ok until it holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !waitFor(patience, ok) {
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
}

// waitFor waits for a condition, so long at most; any goroutine may.
func waitFor(patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// kvjournal runs the command to its end.
func kvjournal(t *testing.T, args ...string) result { return kvjournalStdin(t, "", args...) }

func kvjournalStdin(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	return runCommand(t, exec.CommandContext(ctx, kvjournalBinary, args...), stdin)
}

func runCommand(t *testing.T, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var out, talk bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &talk
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, talk.String())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), talk.String()}
}

// answered fails the test unless the command answered, and returns the lines of its stdout.
func (r result) answered(t *testing.T) []string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	if r.stdout == "" {
		return nil
	}
	if !strings.HasSuffix(r.stdout, "\n") {
		t.Fatalf("stdout ends in the middle of a line: %q", r.stdout[max(0, len(r.stdout)-200):])
	}
	return strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
}

// process is one that runs beside the test. It is killed when the test ends.
type process struct {
	cmd   *exec.Cmd
	talk  testkit.Buffer
	out   testkit.Buffer
	ended chan struct{}
}

func start(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(binary, args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.talk
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%q said:\n%s", p.cmd.Args, p.talk.String())
		}
	})
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v to %q: %v\n%s", s, p.cmd.Args, err, p.talk.String())
	}
}

// wait waits for the end and returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%q does not end\n%s", p.cmd.Args, p.talk.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) kill9(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
}

// stop ends a recorder as Ctrl-C does, which is no failure.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, os.Interrupt.(syscall.Signal))
	if code := p.wait(t); code != 0 {
		t.Fatalf("a recorder that was interrupted ended with exit %d:\n%s", code, p.talk.String())
	}
}

// record starts a recorder of one source and waits until it answers.
func record(t *testing.T, dir, endpoint string, more ...string) *process {
	t.Helper()
	p := start(t, kvjournalBinary, append([]string{"record", "--dir", dir, "--endpoint", endpoint}, more...)...)
	p.answers(t, dir)
	return p
}

// answers waits until the recorder answers questions.
func (p *process) answers(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the recorder answers", func() bool {
		if !p.running() {
			t.Fatalf("the recorder ended:\n%s", p.talk.String())
		}
		st, ok := tryStats(t, dir)
		return ok && st.Recorder != nil
	})
}

var publishingOn = regexp.MustCompile(`publishing on (tcp://[0-9.]+:[0-9]+)`)

// simulate starts a mooncakesim on a free port and returns its endpoint.
func simulate(t *testing.T, args ...string) (p *process, endpoint string) {
	t.Helper()
	return simulateOn(t, mooncaketest.Reserved(t), args...)
}

func simulateOn(t *testing.T, bind string, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, mooncakesimBinary, append([]string{"--bind", bind}, args...)...)
	return p, p.says(t, publishingOn)
}

// says waits until the process has said what fits, and returns what the first group of it is.
func (p *process) says(t *testing.T, what *regexp.Regexp) (group string) {
	t.Helper()
	eventually(t, "it says "+what.String(), func() bool {
		if !p.running() {
			t.Fatalf("it ended:\n%s", p.talk.String())
		}
		m := what.FindStringSubmatch(p.talk.String())
		if m != nil {
			group = m[1]
		}
		return m != nil
	})
	return group
}

// adminOn finds the admin URL of a mooncakesim.
var adminOn = regexp.MustCompile(`admin API on (http://[0-9.]+:[0-9]+)`)
