package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// socketOf listens on a socket until the test ends.
func socketOf(t *testing.T) (net.Listener, *httpapi.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := httpapi.NewClient(path)
	t.Cleanup(c.Close)
	return l, c
}

// Whoever takes the connection and says nothing is named; whoever says anything at all has given a sign.
func TestSignOfLife(t *testing.T) {
	t.Parallel()
	t.Run("silence", func(t *testing.T) {
		_, c := socketOf(t) // the kernel takes the connection
		var silent *silentError
		err := signOfLife(t.Context(), c, "kvjournal record, process 77", 20*time.Millisecond)
		if !errors.As(err, &silent) {
			t.Fatalf("%v", err)
		}
		for _, w := range []string{"process 77", "does not answer", "20ms", "kill -CONT", "restart"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		_, c := socketOf(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := signOfLife(ctx, c, "", patience); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		l, c := socketOf(t)
		l.Close()
		var gone *httpapi.GoneError
		if err := signOfLife(t.Context(), c, "", patience); !errors.As(err, &gone) {
			t.Errorf("%v", err)
		}
	})
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			l, c := socketOf(t)
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				w.Write([]byte("{}\n"))
			})}
			go s.Serve(l)
			defer s.Close()
			if err := signOfLife(t.Context(), c, "", patience); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// A recorder that is stopped is named, and what to do; it answers again when it goes on.
func TestStoppedRecorder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, "tcp://127.0.0.1:1")
	kvjournal(t, "reconcile", "--dir", dir, "--source", "nobody").told(t, 2, "nobody", "there is default")
	if r := kvjournal(t, "gaps", "--dir", dir); r.code != 0 || !strings.HasPrefix(r.stdout, "Nothing was recorded yet") {
		t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	rec.signal(t, syscall.SIGSTOP)
	for _, command := range []string{"stats", "gaps"} {
		kvjournal(t, command, "--dir", dir).told(t, 1, "kvjournal record, process ", "since ", "does not answer", "kill -CONT", "restart")
	}
	follower := start(t, kvjournalBinary, "log", "--follow", "--dir", dir)
	eventually(t, "the follower waits", func() bool { return strings.Contains(follower.talk.String(), "waiting for it") })
	rec.signal(t, syscall.SIGCONT)
	eventually(t, "the follower goes on", func() bool { return strings.Contains(follower.out.String(), "recorder started") })
	follower.stop(t)
	stats(t, dir)
	rec.stop(t)
}
