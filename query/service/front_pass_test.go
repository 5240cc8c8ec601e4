package service

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// asleep is a recorder that can be made to answer nothing, as one that is stopped, and woken.
type asleep struct {
	mu    sync.Mutex
	awake chan struct{} // closed: it answers
	asked chan string   // each path that it was asked for
}

func (a *asleep) until() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.awake
}

func (a *asleep) sleep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awake = make(chan struct{})
}

func (a *asleep) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked <- r.URL.Path
	select {
	case <-a.until():
	case <-r.Context().Done():
		return
	}
	if r.URL.Path == "/long" { // its answer takes longer than a sign of life may
		w.(http.Flusher).Flush()
		<-a.until()
	}
	io.WriteString(w, "answered")
}

// A recorder that gives no sign of life is named to whoever waits for it, and to who asks then; once it answers, it is asked again. What has
// begun may take its time, and so may what is worked on while there are signs.
func TestPassToSilence(t *testing.T) {
	t.Parallel()
	l, _ := socketOf(t)
	a := &asleep{awake: make(chan struct{}), asked: make(chan string, 1000)}
	server := &http.Server{Handler: a}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	p := &passer{log: slog.New(slog.DiscardHandler), patience: 200 * time.Millisecond}
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		p.pass(w, httptest.NewRequest("GET", path, nil), l.Addr().String(), "kvjournal record, process 77")
		return w
	}
	refused := func(w *httptest.ResponseRecorder) {
		t.Helper()
		if w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d, Retry-After %q: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
		}
		for _, say := range []string{"process 77", "does not answer", "200ms", "kill -CONT"} {
			if !strings.Contains(w.Body.String(), say) {
				t.Errorf("%s does not say %q", w.Body, say)
			}
		}
	}
	refused(ask("/v1/stats")) // it sleeps: waited for, then told
	for len(a.asked) > 0 {
		<-a.asked
	}
	refused(ask("/v1/stats")) // told at once: it is asked for a sign alone
	for len(a.asked) > 0 {
		if path := <-a.asked; path != "/healthz" {
			t.Errorf("while it is silent it was asked for %s", path)
		}
	}
	close(a.until())
	for range 2 {
		if w := ask("/v1/stats"); w.Code != 200 || w.Body.String() != "answered" {
			t.Errorf("awake: %d %s", w.Code, w.Body)
		}
	}

	// An answer that began before it fell asleep goes on when it wakes.
	a.sleep()
	begun := a.until()
	got := make(chan *httptest.ResponseRecorder)
	var late atomic.Bool
	go func() {
		w := ask("/long")
		late.Store(true)
		got <- w
	}()
	for path := ""; path != "/long"; path = <-a.asked {
	}
	a.sleep()
	close(begun) // its header is sent, and no more
	refused(ask("/v1/stats"))
	refused(ask("/v1/stats"))
	if late.Load() {
		t.Error("what had begun was ended")
	}
	close(a.until())
	if w := <-got; w.Code != 200 || w.Body.String() != "answered" {
		t.Errorf("what had begun: %d %s", w.Code, w.Body)
	}
}
