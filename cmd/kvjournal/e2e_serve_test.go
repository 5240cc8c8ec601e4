package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// front asks a `kvjournal serve`, again where it says that there is no answer just now.
type front struct {
	url    string
	client http.Client

	mu      sync.Mutex
	answers int
	refused int
}

// get returns an answer. What is no answer must be a problem that says to ask again.
func (f *front) get(path string) (answer []byte, err error) {
	if waited := waitFor(patience, func() bool {
		var p *httpapi.Problem
		if answer, p, err = f.once(path); p != nil {
			err = fmt.Errorf("no answer for %v: %s", patience, p.Detail)
		}
		return p == nil
	}); !waited {
		return nil, err
	}
	return answer, err
}

// once returns an answer, or the problem that puts it off.
func (f *front) once(path string) ([]byte, *httpapi.Problem, error) {
	resp, err := f.client.Get(f.url + path)
	if err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("%s was cut: %w", path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if resp.StatusCode == http.StatusOK {
		f.answers++
		return b, nil, nil
	}
	var p httpapi.Problem
	if err := json.Unmarshal(b, &p); err != nil || !strings.HasSuffix(p.Type, ":"+httpapi.ProblemUnavailable) {
		return nil, nil, fmt.Errorf("%s: %s %s", path, resp.Status, b)
	}
	f.refused++
	return nil, &p, nil
}

// stats asks for the figures; Recorder is nil where the directory is at rest.
func (f *front) stats() (*query.StatsOut, error) {
	b, err := f.get("/v1/stats")
	if err != nil {
		return nil, err
	}
	var st query.StatsOut
	return &st, json.Unmarshal(b, &st)
}

// becomes waits until a recorder answers behind f, or none does, with at least the offset durable.
func (f *front) becomes(t *testing.T, live bool, offset uint64) *query.StatsOut {
	t.Helper()
	var last *query.StatsOut
	eventually(t, fmt.Sprintf("a recorder answers: %v, from offset %d on", live, offset), func() bool {
		st, err := f.stats()
		if err != nil {
			t.Fatal(err)
		}
		last = st
		return (st.Recorder != nil) == live && st.DurableOffset >= offset
	})
	return last
}

// asksOn asks two questions until stopped: where an object was at an offset, whose answer must stay the same, and how far the record goes,
// which must never go back.
func (f *front) asksOn(t *testing.T, path, want string, stop <-chan struct{}) error {
	durable := uint64(0)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		b, err := f.get(path)
		if err != nil {
			return err
		}
		if got := strings.TrimSuffix(string(b), "\n"); short(got) != short(want) {
			return fmt.Errorf("an answer is another:\n%s\n%s", got, want)
		}
		st, err := f.stats()
		if err != nil {
			return err
		}
		if st.DurableOffset < durable {
			return fmt.Errorf("offset %d is durable, then %d: answers were lost", durable, st.DurableOffset)
		}
		durable = st.DurableOffset
	}
}

// TestServeHandsOver: serve answers for a directory at rest, hands over to a recorder that starts, and takes back when that ends, in good order
// and killed; all the while each question is answered, or put off in words, and no answer changes.
func TestServeHandsOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if r := kvjournal(t, "import", "--dir", dir, "--source", "default", smallCapture(t)); r.code != 0 {
		t.Fatal(r.stderr)
	}
	begun := stats(t, dir).DurableOffset
	at := fmt.Sprintf("offset:%d", begun)
	objects := []object{{"default", "k"}}
	want := lookupLines(t, dir, at, objects)[0]
	serve := start(t, kvjournalBinary, "serve", "--dir", dir, "--listen", "127.0.0.1:0")
	f := &front{url: serve.says(t, answeringOn)}
	f.becomes(t, false, begun)

	path := "/v1/lookup?" + url.Values{"object_key": {objects[0].key}, "at": {at}}.Encode()
	stop, failed := make(chan struct{}), make(chan error, 3)
	var asking sync.WaitGroup
	for range cap(failed) {
		asking.Go(func() { failed <- f.asksOn(t, path, want, stop) })
	}
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Truth, o.Rate, o.Store.Objects, o.Duration = nil, 500, 100, time.Hour
	})
	s.run(t)
	end := begun
	for _, killed := range []bool{false, true} {
		rec := record(t, dir, s.Endpoint(), "--listen", "")
		end = f.becomes(t, true, end+20).DurableOffset
		if killed {
			rec.kill9(t)
		} else {
			rec.stop(t)
		}
		end = f.becomes(t, false, end).DurableOffset
	}
	s.stop()
	close(stop)
	asking.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	if st := stats(t, dir); st.DurableOffset != end {
		t.Errorf("serve answered up to offset %d, the directory has %d", end, st.DurableOffset)
	}
	t.Logf("%d answers, %d put off, %d to %d records", f.answers, f.refused, begun, end)
	serve.stop(t)
}

// TestServeBeforeStopped: serve says of a recorder that is stopped what to do, whether a question was under way or not, and it is ready again
// when that goes on.
func TestServeBeforeStopped(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	rec := record(t, dir, "tcp://127.0.0.1:1", "--listen", "")
	rec.signal(t, syscall.SIGSTOP)
	serve := start(t, kvjournalBinary, "serve", "--dir", dir, "--listen", "127.0.0.1:0")
	f := &front{url: serve.says(t, answeringOn)}
	begun := time.Now()
	for i, path := range []string{"/v1/stats", "/readyz", "/v1/log?follow=true", "/metrics"} {
		_, p, err := f.once(path)
		if err != nil || p == nil {
			t.Fatalf("%s: %v, answered: %v", path, err, p == nil)
		}
		for _, say := range []string{"kvjournal record, process ", "does not answer", "kill -CONT", "restart"} {
			if !strings.Contains(p.Detail, say) {
				t.Errorf("%s: %q does not say %q", path, p.Detail, say)
			}
		}
		if i == 0 && time.Since(begun) < service.SignPatience/2 {
			t.Errorf("given up after %v", time.Since(begun))
		}
	}
	if _, _, err := f.once("/healthz"); err != nil {
		t.Errorf("serve itself: %v", err)
	}
	rec.signal(t, syscall.SIGCONT)
	f.becomes(t, true, 0)
	rec.stop(t)
	f.becomes(t, false, 0)
	serve.stop(t)
}

// Two recorders with the default address: both record and answer by their sockets, and one at least does without HTTP, and says what to do.
func TestDefaultAddressTaken(t *testing.T) {
	t.Parallel()
	var talk [2]string
	var dirs [2]string
	for i := range dirs {
		dirs[i] = dataDir(t)
		rec := record(t, dirs[i], "tcp://127.0.0.1:1")
		defer rec.stop(t)
		eventually(t, "it says where it answers", func() bool {
			talk[i] = rec.talk.String()
			return strings.Contains(talk[i], "msg=answering") || strings.Contains(talk[i], "no HTTP")
		})
	}
	all := talk[0] + talk[1]
	if strings.Count(all, "msg=answering") > 1 || !strings.Contains(all, "--listen") {
		t.Errorf("two recorders on one address:\n%s", all)
	}
	for _, dir := range dirs {
		if st := stats(t, dir); st.Recorder == nil {
			t.Errorf("the recorder of %s does not answer", dir)
		}
	}
}

// An address that was asked for, in whatever way, is a demand: where it is taken nothing is recorded.
func TestDemandedAddressTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	args := []string{"record", "--dir", dataDir(t), "--endpoint", "tcp://127.0.0.1:1"}
	kvjournal(t, append(args, "--listen", address)...).told(t, 1, address, "choose another port")
	cmd := withTemp(t.TempDir(), kvjournalBinary, args...)
	cmd.Env = append(cmd.Env, "KVJOURNAL_LISTEN="+address)
	runCommand(t, cmd, "").told(t, 1, address, "choose another port")
	kvjournal(t, "serve", "--dir", smallDir(t), "--listen", address).told(t, 1, address, "choose another port")
}
