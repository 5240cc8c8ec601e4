package mooncake

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// calls are all that a Client can ask.
func calls(c *Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"status":   func(ctx context.Context) error { _, err := c.Status(ctx); return err },
		"health":   func(ctx context.Context) error { _, err := c.Health(ctx); return err },
		"keys":     func(ctx context.Context) error { _, err := c.Keys(ctx, func([]byte) error { return nil }); return err },
		"batch":    func(ctx context.Context) error { _, err := c.BatchQuery(ctx, keysOf("a", "b")); return err },
		"segments": func(ctx context.Context) error { _, err := c.Segments(ctx); return err },
	}
}

// readCalls is the whole list of what may be asked: /query_key grants leases, every POST changes something.
var readCalls = []string{"/batch_query_keys", "/get_all_keys", "/get_segments_detail", "/health", "/kv_events/status"}

func TestOnlyReads(t *testing.T) {
	m := &master{poison: map[string]bool{"b": true}}
	c := serve(t, m, Options{})
	for name, ask := range calls(c) {
		if err := ask(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	slices.Sort(m.requests)
	got := slices.Compact(m.requests)
	if len(got) != len(readCalls) {
		t.Errorf("asked %q", got)
	}
	for i, path := range readCalls {
		if got[i] != "GET "+path {
			t.Errorf("asked %q", got[i])
		}
	}
}

// TestNoOtherCode: the source has no other path and no other way to send.
func TestNoOtherCode(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind == token.STRING && err == nil && len(text) > 1 && text[0] == '/' && !slices.Contains(readCalls, text) {
					t.Errorf("%s: path %q", name, text)
				}
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if ok && pkg.Name == "http" && (strings.HasPrefix(n.Sel.Name, "Method") && n.Sel.Name != "MethodGet" ||
					slices.Contains([]string{"Get", "Post", "PostForm", "Head", "NewRequest", "NewRequestWithContext", "DefaultClient", "Client"}, n.Sel.Name)) {
					t.Errorf("%s: http.%s", name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// pipes is a network of one server, inside of a bubble: in it, time passes only when nobody has anything to do. net/http closes a connection
// whose request does not seem to be written 50 ms behind its reply.
type pipes struct{ calls chan net.Conn }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.calls <- theirs
	return ours, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.calls; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p.calls); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9003} }

// TestOneConnection: one call at a time, over one kept connection, whoever asks.
func TestOneConnection(t *testing.T) { synctest.Test(t, oneConnection) }

func oneConnection(t *testing.T) {
	m := &master{objects: map[string]string{"a": onMemory}}
	var busy, most, connections atomic.Int32
	network := pipes{make(chan net.Conn)}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), busy.Add(1)))
			m.ServeHTTP(w, r)
			busy.Add(-1)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		},
	}
	go server.Serve(network)
	defer server.Close()
	c, err := New(Options{URL: "http://" + network.Addr().String(), PauseFactor: -1, Clock: newFakeClock()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.transport.DialContext = network.dial
	var wg sync.WaitGroup
	for range 8 {
		for name, ask := range calls(c) {
			wg.Go(func() {
				if err := ask(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	// Refusals are read to their end too.
	m.mu.Lock()
	m.standby = true
	m.mu.Unlock()
	for range 3 {
		_, _ = c.Status(t.Context())
	}
	if most.Load() != 1 || connections.Load() != 1 {
		t.Errorf("%d calls at once, %d connections", most.Load(), connections.Load())
	}
}

// TestPauses: after each call as long a pause as it took.
func TestPauses(t *testing.T) {
	clock := newFakeClock()
	m := &master{}
	took := 70 * time.Millisecond
	var seen []Call
	var sent []time.Time
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clock.advance(took)
		m.ServeHTTP(w, r)
	}), Options{Clock: clock, PauseFactor: 1, BatchKeys: 2, OnCall: func(call Call) { seen = append(seen, call) },
		OnSend: func(_ Kind, at time.Time) { sent = append(sent, at) }})
	s, err := c.Status(t.Context())
	if err != nil || s.Took != took {
		t.Fatalf("%+v, %v", s, err)
	}
	took = 500 * time.Millisecond
	if _, err := c.BatchQuery(t.Context(), keysOf("a", "b", "c", "d", "e")); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(clock.sleeps()); got != "[70ms 500ms 500ms]" {
		t.Errorf("paused %v", got)
	}
	if len(seen) != 4 || seen[1].Waited != 70*time.Millisecond || seen[2].Waited != took || seen[2].Took != took || seen[2].Keys != 2 || seen[3].Keys != 1 || seen[3].Kind != KindBatch {
		t.Errorf("%+v", seen)
	}
	if len(sent) != 4 || !sent[0].Equal(s.Sent) || !sent[3].Equal(seen[3].Sent) {
		t.Errorf("sent %v", sent)
	}
	// What was waited already need not be waited again.
	clock.advance(400 * time.Millisecond)
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(clock.sleeps()); got != "[100ms]" {
		t.Errorf("paused %v", got)
	}
}

// TestUnderstandingIsRest: what is made of a whole reply is neither the master's time nor waited for again.
func TestUnderstandingIsRest(t *testing.T) {
	clock := newFakeClock()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clock.advance(50 * time.Millisecond)
		(&master{}).ServeHTTP(w, r)
	}), Options{Clock: clock, PauseFactor: 1})
	took, err := c.call(t.Context(), KindBatch, "keys=a", 1, func(r *reply) error {
		_, err := r.whole()
		clock.advance(30 * time.Millisecond)
		return err
	})
	if err != nil || took.Took != 50*time.Millisecond {
		t.Fatalf("took %v, %v", took.Took, err)
	}
	if answers, err := c.BatchQuery(t.Context(), keysOf("a")); err != nil || answers.Took != 50*time.Millisecond {
		t.Fatalf("took %v, %v", answers.Took, err)
	}
	if got := fmt.Sprint(clock.sleeps()); got != "[20ms]" {
		t.Errorf("paused %v", got)
	}
}

func TestFailuresBackOff(t *testing.T) {
	clock := newFakeClock()
	var bad atomic.Bool
	bad.Store(true)
	m := &master{}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad.Load() && r.URL.Path == "/get_all_keys" {
			send(w, 502, "text/html", "<html>Bad Gateway</html>")
			return
		}
		m.ServeHTTP(w, r)
	}), Options{Clock: clock, Random: func() float64 { return 0.5 }})
	for range 8 {
		if _, _, err := list(t, c); err == nil {
			t.Fatal("no error")
		}
		if _, err := c.Status(t.Context()); err != nil { // goes ahead, and helps nothing
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(clock.sleeps()); got != "[450ms 900ms 1.8s 3.6s 7.2s 14.4s 22.5s]" {
		t.Errorf("waited %v", got)
	}
	bad.Store(false)
	for range 2 {
		if _, _, err := list(t, c); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(clock.sleeps()); got != "[22.5s]" {
		t.Errorf("waited %v", got)
	}
}

// TestResetBackoff wakes a call that waits; ctx ends one.
func TestResetBackoff(t *testing.T) {
	var bad atomic.Bool
	bad.Store(true)
	m := &master{}
	clock := frozenClock{newFakeClock()}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad.Load() {
			send(w, 502, "text/html", "<html>Bad Gateway</html>")
			return
		}
		m.ServeHTTP(w, r)
	}), Options{Clock: clock})
	if _, err := c.Status(t.Context()); err == nil {
		t.Fatal("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := c.Status(ctx); done <- err }()
	for len(clock.sleeps()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	err := <-done
	var odd *BrokenReplyError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &odd) || !strings.Contains(err.Error(), "not asked again: context canceled while waiting after: GET http") {
		t.Errorf("%v", err)
	}
	go func() { _, err := c.Status(t.Context()); done <- err }()
	for len(clock.sleeps()) == 0 {
		time.Sleep(time.Millisecond)
	}
	bad.Store(false)
	c.ResetBackoff()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRealClock: with the defaults, a failure is waited for and then over.
func TestRealClock(t *testing.T) {
	var n atomic.Int32
	m := &master{}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			send(w, 502, "text/html", "<html>Bad Gateway</html>")
			return
		}
		m.ServeHTTP(w, r)
	}), Options{Clock: realClock{}, PauseFactor: 1})
	began := time.Now()
	if _, err := c.Status(t.Context()); err == nil {
		t.Fatal("no error")
	}
	s, err := c.Status(t.Context())
	if err != nil || s.Sent.Sub(began) < backoffMin {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// hanging is a handler that sends what it was given and waits until the client is gone.
func hanging(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body != "" {
			w.Header().Set("Content-Type", listingKind)
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(body))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

func TestTimeouts(t *testing.T) {
	const short = 50 * time.Millisecond
	for _, body := range []string{"", " \n"} {
		c := serve(t, hanging(body), Options{Timeouts: Timeouts{Connect: short, Status: short, Health: short, Keys: short, Batch: short, Segments: short}})
		for name, ask := range calls(c) {
			err := ask(t.Context())
			var late *TimeoutError
			if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || late.After < short || !late.Timeout() || !strings.Contains(err.Error(), c.URL()) {
				t.Errorf("%s after %q: %v", name, body, err)
			}
		}
		if d, _ := c.pacer.backoff(KindKeys, c.options.Clock.Now()); d == 0 {
			t.Error("no backoff after a timeout")
		}
	}
	// What came before is told. On a busy machine nothing may come in so short a time.
	for wait := short; ; wait *= 2 {
		var late *TimeoutError
		_, err := serve(t, hanging(" \n"), Options{Timeouts: Timeouts{Keys: wait}}).Keys(t.Context(), func([]byte) error { return nil })
		if !errors.As(err, &late) || late.Bytes != 2 && (late.Bytes != 0 || wait > 30*time.Second) {
			t.Fatalf("%v, %+v", err, late)
		}
		if late.Bytes == 2 {
			break
		}
	}
}

// TestContext: the caller's deadline and cancellation end a call that is under way, or that waits for one.
func TestContext(t *testing.T) {
	for _, body := range []string{"", "a\n"} {
		c := serve(t, hanging(body), Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		var late *TimeoutError
		if _, err := c.Keys(ctx, func([]byte) error { return nil }); !errors.As(err, &late) {
			t.Errorf("after %q: %v", body, err)
		}
		cancel()

		ctx, cancel = context.WithCancel(t.Context())
		sent, done := make(chan bool, 2), make(chan error)
		c.options.OnSend = func(Kind, time.Time) { sent <- true }
		go func() { _, err := c.Keys(ctx, func([]byte) error { return nil }); done <- err }()
		<-sent
		waiting, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := c.Status(waiting); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waiting for its turn") {
			t.Errorf("waiting: %v", err)
		}
		stop()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || errors.As(err, &late) {
			t.Errorf("after %q: %v", body, err)
		}
		if d, _ := c.pacer.backoff(KindKeys, c.options.Clock.Now()); d != 0 {
			t.Error("the caller's giving up backs off")
		}
		if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("already canceled: %v", err)
		}
	}
}

func TestTLS(t *testing.T) {
	m := &master{}
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var lost *UnreachableError
	if _, err := serve(t, nil, Options{URL: server.URL}).Status(t.Context()); !errors.As(err, &lost) || !strings.Contains(lost.Next, "give the CA") {
		t.Errorf("not trusted: %v", err)
	}
	if s, err := serve(t, nil, Options{URL: server.URL, CA: ca}).Status(t.Context()); err != nil || s.PublishedBatches != 22 {
		t.Errorf("trusted: %v", err)
	}
	var odd *BrokenReplyError
	if _, err := serve(t, nil, Options{URL: "http" + strings.TrimPrefix(server.URL, "https")}).Status(t.Context()); !errors.As(err, &odd) || odd.Status != 400 {
		t.Errorf("http to https: %v", err)
	}
	plain := httptest.NewServer(m)
	defer plain.Close()
	if _, err := serve(t, nil, Options{URL: "https" + strings.TrimPrefix(plain.URL, "http")}).Status(t.Context()); !errors.As(err, &lost) || !strings.Contains(lost.Next, "http, not https") {
		t.Errorf("https to http: %v", err)
	}
}

// TestNoProxy: a proxy of the environment sees nothing. (net/http reads the environment once, so the transport is looked at.)
func TestNoProxy(t *testing.T) {
	if c := serve(t, &master{}, Options{}); c.transport.Proxy != nil {
		t.Error("proxies are used")
	}
}

func TestPathPrefix(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/pool-a/", http.StripPrefix("/pool-a", &master{}))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, suffix := range []string{"/pool-a", "/pool-a/"} {
		if _, err := serve(t, nil, Options{URL: server.URL + suffix}).Status(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o   Options
		err string
	}{
		{Options{URL: ""}, "begin with http"}, {Options{URL: "master:9003"}, "begin with http"}, {Options{URL: "ftp://x"}, "begin with http"},
		{Options{URL: "http://"}, "no host"}, {Options{URL: "http://:9003"}, "no host"}, {Options{URL: "http://h:x"}, "cannot be parsed"},
		{Options{URL: "http://user:hidden@h:9003"}, "does not belong there"}, {Options{URL: "http://user:hid den@h"}, "does not belong there"},
		{Options{URL: "http://h?token=hidden"}, "a query"}, {Options{URL: "http://h#hidden"}, "a query or a fragment"}, {Options{URL: "http://h?"}, "a query"},
		{Options{URL: "http://h", Token: "hidden\nX: y"}, "token contains"}, {Options{URL: "http://h", Token: strings.Repeat("hidden", 2000)}, "token has 12000"},
		{Options{URL: "http://h", BatchKeys: -1}, "negative"}, {Options{URL: "http://h", Timeouts: Timeouts{Keys: -1}}, "negative"},
		{Options{URL: "https://h", CA: []byte("hidden")}, "no PEM"},
		{Options{URL: "http://[::1]:9003"}, ""}, {Options{URL: "https://h/a/b"}, ""},
	} {
		_, err := New(c.o)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || err != nil && strings.Contains(err.Error(), "hid") {
			t.Errorf("%+v: %v, want %q", c.o, err, c.err)
		}
	}
	if err := CheckURL("http://h:9003"); err != nil {
		t.Error(err)
	}
}
