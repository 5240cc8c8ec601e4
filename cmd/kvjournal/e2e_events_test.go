package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// answeringOn finds the URL at which a service answers others than the owner.
var answeringOn = regexp.MustCompile(`msg=answering url=(http://[0-9.:]+)/`)

// consumer reads the log as server-sent events, and dies now and then: what it kept is the id of the last event that it had as a whole,
// and of each event's data a hash.
type consumer struct {
	url    string
	last   string
	hashes []uint64
	lives  int
}

// reached reports whether everything up to an offset was told.
func (c *consumer) reached(end uint64) bool {
	offset, _, partly := strings.Cut(c.last, "/")
	n, err := strconv.ParseUint(offset, 10, 64)
	return err == nil && (n > end || n == end && !partly)
}

// live connects, reads up to so many bytes, or until enough, which it asks at each event and heartbeat, and dies.
func (c *consumer) live(t *testing.T, bytesLeft int64, enough func() bool) {
	t.Helper()
	c.lives++
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	silent := time.AfterFunc(patience, cancel)
	defer silent.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/log", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if c.last != "" {
		req.Header.Set("Last-Event-ID", c.last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s", resp.Status, b)
	}
	in := bufio.NewReader(io.LimitReader(resp.Body, bytesLeft))
	var id string
	var data []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return // it died in the middle of a line
		}
		if err != nil {
			t.Fatalf("the stream broke after id %s: %v", c.last, err)
		}
		if len(line) > 1 {
			silent.Reset(patience)
		}
		if len(line) == 1 && enough() {
			return
		}
		switch {
		case bytes.HasPrefix(line, []byte("id: ")):
			id = string(bytes.TrimSpace(line[4:]))
		case bytes.HasPrefix(line, []byte("data: ")):
			data = append(data[:0], line[6:len(line)-1]...)
		case len(line) == 1 && id != "":
			if len(data) > 0 {
				c.hashes = append(c.hashes, lineHash(data))
			}
			c.last, id, data = id, "", data[:0]
		}
	}
}

func lineHash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// TestEventsMissNothing: a consumer of the events that is killed at random and comes back with its last id has every line of the log
// once, in order, over KVJOURNAL_SSE_EVENTS events (default 100,000), while they are recorded.
func TestEventsMissNothing(t *testing.T) {
	t.Parallel()
	events := fromEnvironment(t, "KVJOURNAL_SSE_EVENTS", 100_000)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := filepath.Join(t.TempDir(), "data")
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Truth, o.Rate, o.Store.Objects, o.Duration = nil, 20_000, 3000, time.Hour
	})
	rec := record(t, dir, s.Endpoint(), "--listen", "127.0.0.1:0")
	connected(t, dir, true)
	s.run(t)
	c := &consumer{url: rec.says(t, answeringOn)}
	enough := func() bool { return len(c.hashes) >= events }
	// Now and then so few bytes that no event is whole: that must not keep it from going on.
	for !enough() {
		c.live(t, random.Int64N(int64(min(events, 100_000))*20)+1, enough)
	}
	s.stop()
	s.wait(t)
	// The service dies too, and comes back elsewhere.
	rec.stop(t)
	end := stats(t, dir).DurableOffset
	rec = record(t, dir, s.Endpoint(), "--listen", "127.0.0.1:0")
	c.url = rec.says(t, answeringOn)
	for !c.reached(end) {
		c.live(t, random.Int64N(int64(events)*40)+1, func() bool { return c.reached(end) })
	}
	rec.stop(t)
	t.Logf("%d lives, %d lines, to offset %d", c.lives, len(c.hashes), end)
	c.compare(t, dir)
	if len(c.hashes) < events || c.lives < 10 {
		t.Errorf("%d lines in %d lives: little was tried", len(c.hashes), c.lives)
	}
}

// compare fails the test unless the consumer had the lines of the log from the first on, each once.
func (c *consumer) compare(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kvjournalBinary, "log", "--dir", dir, "--output", "json", "--limit", strconv.Itoa(len(c.hashes)))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, before := 0, uint64(0)
	in := bufio.NewScanner(out)
	in.Buffer(make([]byte, 1<<20), 64<<20)
	for ; in.Scan(); n++ {
		line := lineHash(in.Bytes())
		if c.hashes[n] != line {
			t.Fatalf("line %d of %d is not what the consumer had (that before it again: %v; it comes later: %v): %s",
				n, len(c.hashes), c.hashes[n] == before, slices.Contains(c.hashes[n:], line), in.Bytes())
		}
		before = line
	}
	if err := errors.Join(in.Err(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if n != len(c.hashes) {
		t.Errorf("the consumer had %d lines, the log has %d", len(c.hashes), n)
	}
}
