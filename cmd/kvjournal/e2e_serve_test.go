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
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
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
func (f *front) get(path string) ([]byte, error) {
	for deadline := time.Now().Add(patience); ; {
		resp, err := f.client.Get(f.url + path)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("%s was cut: %w", path, err)
		}
		if resp.StatusCode == http.StatusOK {
			f.mu.Lock()
			f.answers++
			f.mu.Unlock()
			return b, nil
		}
		var p httpapi.Problem
		if err := json.Unmarshal(b, &p); err != nil || !strings.HasSuffix(p.Type, ":"+httpapi.ProblemUnavailable) {
			return nil, fmt.Errorf("%s: %s %s", path, resp.Status, b)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no answer for %v: %s", patience, p.Detail)
		}
		f.mu.Lock()
		f.refused++
		f.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
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
