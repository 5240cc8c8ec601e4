package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
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
		var silent *SilentError
		err := SignOfLife(t.Context(), c, "kvjournal record, process 77", 20*time.Millisecond)
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
		if err := SignOfLife(ctx, c, "", time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		l, c := socketOf(t)
		l.Close()
		var gone *httpapi.GoneError
		if err := SignOfLife(t.Context(), c, "", time.Minute); !errors.As(err, &gone) {
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
			if err := SignOfLife(t.Context(), c, "", time.Minute); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}
