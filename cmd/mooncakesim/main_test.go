package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// runSim runs the command and returns its exit code and what it printed.
func runSim(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, talk bytes.Buffer
	code = run(ctx, args, &out, &talk, false)
	return code, out.String(), talk.String()
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--rate=-1", "--rate"},
		{"--rate=NaN", "--rate"},
		{"--rate=many", "--rate"},
		{"--tenants=0", "--tenants"},
		{"--objects=0", "--objects"},
		{"--queue-capacity=0", "--queue-capacity"},
		{"--burst=-5", "--burst"},
		{"--duration=-1s", "--duration"},
		{"--duration=10", "--duration"},
		{"--restart-every=-1s", "--restart-every"},
		{"--backend-id=", "--backend-id"},
		{"--bind=5557", "--bind"},
		{"--queue-delay=-1s", "--queue-delay"},
		{"--tail-loss=2", "--tail-loss"},
		{"--tail-loss=NaN", "--tail-loss"},
		{"--silent-removals=-1", "--silent-removals"},
		{"--segment-loss-every=-1s", "--segment-loss-every"},
		{"--standby=-1s", "--standby"},
		{"--odd-keys=-1", "--odd-keys"},
		{"--admin=127.0.0.1:0 --status-lag=-1s", "--status-lag"},
		{"--admin=127.0.0.1:0 --admin-latency=-1s", "--admin-latency"},
		{"--admin=127.0.0.1:0 --admin-errors=1.5", "--admin-errors"},
		{"--admin=127.0.0.1:0 --pending-puts=-1", "--pending-puts"},
		{"--admin=127.0.0.1:0 --capture=x.kvcap", "--admin"},
		{"--lose=1-2", "--lose: needs --capture"},
		{"--capture=x.kvcap --lose=2", "--lose"},
		{"--capture=x.kvcap --lose=3-2", "--lose"},
		{"--capture=x.kvcap --lose=0-2", "--lose"},
		{"--old-status", "--old-status: needs --admin"},
		{"--admin-errors=0.1", "--admin-errors: needs --admin"},
		{"--quiet-for=3s", "--quiet-for"},
		{"--no-such", "--no-such"},
		{"surplus", "surplus"},
	} {
		code, stdout, stderr := runSim(t.Context(), strings.Fields(c.args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") > 3 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, args := range [][]string{
		{"--bind", "tcp://1.2.3.4:1"},
		{"--bind", "tcp://127.0.0.1:*", "--admin", "1.2.3.4:1"},
		{"--bind", "tcp://127.0.0.1:*", "--truth", filepath.Join(t.TempDir(), "no", "such", "dir")},
	} {
		if code, _, stderr := runSim(t.Context(), args...); code != exitFailed || !strings.HasPrefix(stderr, "mooncakesim: ") {
			t.Errorf("%q: exit %d, stderr %q", args, code, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := runSim(t.Context(), "--help")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	for _, flag := range []string{"bind", "rate", "duration", "seed", "tenants", "objects", "queue-capacity", "burst",
		"restart-every", "legacy", "object-key", "backend-id", "truth",
		"racy-clears", "odd-keys", "queue-delay", "tail-loss", "silent-removals", "segment-loss-every", "standby", "admin", "old-status",
		"status-lag", "admin-latency", "admin-errors", "pending-puts", "quiet-every", "quiet-for", "capture", "events", "batch", "lose"} {
		if !strings.Contains(stdout, "--"+flag) {
			t.Errorf("--%s is missing from the help", flag)
		}
	}
}

func TestRun(t *testing.T) {
	truth := filepath.Join(t.TempDir(), "truth.jsonl")
	// A busy machine may hold it up all the while.
	var code int
	var stdout, stderr string
	for lasts := 300 * time.Millisecond; lasts < patience; lasts *= 4 {
		code, stdout, stderr = runSim(t.Context(), "--bind", "tcp://127.0.0.1:*", "--rate", "5000", "--duration", lasts.String(), "--truth", truth)
		if !strings.Contains(stdout, `"published_events":0,`) {
			break
		}
	}
	if code != 0 {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	if !strings.Contains(stderr, "publishing on tcp://127.0.0.1:") || strings.Contains(stderr, ":*:") {
		t.Errorf("stderr %q does not tell the port", stderr)
	}
	var end struct {
		PublishedBatches     *uint64  `json:"published_batches"`
		PublishedEvents      *uint64  `json:"published_events"`
		DroppedEvents        *uint64  `json:"dropped_events"`
		SkippedKeylessEvents *uint64  `json:"skipped_keyless_events"`
		Seconds              *float64 `json:"seconds"`
		EventsPerSecond      *float64 `json:"events_per_second"`
	}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&end); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("%v: stdout %q", err, stdout)
	}
	if end.PublishedBatches == nil || end.PublishedEvents == nil || *end.PublishedEvents == 0 || *end.DroppedEvents != 0 ||
		*end.SkippedKeylessEvents != 0 || *end.Seconds < 0.3 || *end.EventsPerSecond <= 0 {
		t.Errorf("stdout %q", stdout)
	}
	if b, err := os.ReadFile(truth); err != nil || !bytes.HasPrefix(b, []byte(`{"checkpoint":0,`)) {
		t.Errorf("truth %.80q, %v", b, err)
	}
}

// Without --duration it runs until it is interrupted, and ends in good order.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	started := make(chan struct{})
	var once bool
	talk := writerFunc(func(p []byte) (int, error) {
		if !once {
			once = true
			close(started)
		}
		return len(p), nil
	})
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"--bind", "tcp://127.0.0.1:*", "--object-key=false", "--legacy=false"}, &out, talk, false)
	}()
	<-started
	cancel()
	select {
	case code := <-done:
		if code != 0 || !strings.HasPrefix(out.String(), `{"published_batches":`) {
			t.Errorf("exit %d, stdout %q", code, out.String())
		}
	case <-time.After(patience):
		t.Fatal("does not end")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A capture with --lose is the same without the messages it names.
func TestCaptureLose(t *testing.T) {
	read := func(more ...string) (all []capture.Record) {
		path := filepath.Join(t.TempDir(), "x.kvcap")
		args := append([]string{"--capture", path, "--events", "100", "--batch", "4"}, more...)
		if code, _, stderr := runSim(t.Context(), args...); code != 0 {
			t.Fatalf("%q: exit %d, %s", args, code, stderr)
		}
		f, err := capture.Open(vfs.Default, path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var rec capture.Record
		for f.Next(&rec) == nil {
			own := capture.Record{Kind: rec.Kind, Received: rec.Received}
			for _, frame := range rec.Frames {
				own.Frames = append(own.Frames, bytes.Clone(frame))
			}
			all = append(all, own)
		}
		return all
	}
	whole, lost := read(), read("--lose", "7-9")
	if len(whole) != 26 || !reflect.DeepEqual(append(whole[:7:7], whole[10:]...), lost) { // the first tells of the connection
		t.Errorf("%d records without --lose, %d with it", len(whole), len(lost))
	}
}
