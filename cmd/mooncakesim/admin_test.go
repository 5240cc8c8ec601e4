package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// patience is how long a test waits for what must happen: a busy machine may hold it up.
const patience = 2 * time.Minute

// waitFor asks until the answer is of this kind.
func waitFor[T any](t *testing.T, what string, ask func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if answer, ok := ask(); ok {
			return answer
		}
	}
	t.Fatal("waited in vain: ", what)
	panic("unreachable")
}

// The admin API is there where it says, as a standby first, then as the leader with keys; what is asked for goes wrong.
func TestAdmin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr testkit.Buffer // read while it is written
	var stdout bytes.Buffer
	done := make(chan int, 1)
	port, err := mooncaketest.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer port.Release()
	go func() {
		done <- run(ctx, strings.Fields("--bind "+port.Endpoint()+" --admin 127.0.0.1:0 --standby 100ms --old-status --rate 20000 "+
			"--objects 500 --silent-removals 2000 --segment-loss-every 300ms --restart-every 700ms --queue-delay 5ms --status-lag 1ms "+
			"--queue-capacity 500 --tail-loss 0.5 --quiet-every 200ms --quiet-for 60ms --odd-keys 9 --admin-latency 1ms --admin-errors 0.2"), &stdout, &stderr, false)
	}()
	url := waitFor(t, "the address", func() (string, bool) {
		found := regexp.MustCompile(`admin API on (http://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(stderr.String())
		if found == nil {
			return "", false
		}
		return found[1], found[1] != "http://127.0.0.1:0"
	})
	client := http.Client{Timeout: 500 * time.Millisecond}
	get := func(path string) (int, string) {
		response, err := client.Get(url + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(body)
	}
	for _, c := range []struct {
		path, want string
		code       int
	}{
		{"/get_all_keys", "service plane is not active", 503},
		{"/role", "leader", 200},
		{"/get_all_keys", "_0_k\n", 200},
		{"/kv_events/status", `"skipped_unparsed_keys":0}`, 200},
		{"/get_segments_detail", `"total_segments":2`, 200},
		{"/role", "500 Internal Server Error", 500},
		{"/role", "EOF", 0},
		{"/role", "Client.Timeout exceeded", 0},
		{"/role", "standby", 200}, // a restart
	} {
		waitFor(t, c.path+": "+c.want, func() (string, bool) {
			code, body := get(c.path)
			return body, code == c.code && strings.Contains(body, c.want)
		})
	}
	cancel()
	if code := <-done; code != 0 || !strings.Contains(stdout.String(), `"silently_removed":`) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}
