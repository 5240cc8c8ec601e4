package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// source serves an empty directory.
type source struct {
	engine  *query.Engine
	err     error
	rebuild func(progress func(applied, total uint64)) error
}

func (s *source) Engine() (*query.Engine, error) { return s.engine, s.err }
func (s *source) Reconcile(context.Context, string, reconcile.Request) (*reconcile.Report, error) {
	return nil, errors.New("no master")
}

func (s *source) Recorder() *query.RecorderStats { return &query.RecorderStats{BufferMaxBytes: 7} }
func (s *source) Backup(_ context.Context, to string, progress func(backup.Progress)) (*backup.Report, error) {
	progress(backup.Progress{Step: "copying", Done: 1, Total: 2})
	if s.err != nil {
		return nil, s.err
	}
	return &backup.Report{Dir: to, DurableOffset: 7}, nil
}
func (s *source) Rebuild(_ context.Context, progress func(applied, total uint64)) error {
	return s.rebuild(progress)
}

func newSource(t *testing.T) *source {
	t.Helper()
	w, err := service.OpenForWriting(t.Context(), "data", "test", service.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &source{engine: &query.Engine{Journal: w.Journal, Index: w.Index}}
}

func request(s *source, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpapi.Handler(s).ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func TestHandlerStatus(t *testing.T) {
	s := newSource(t)
	broken := &source{err: errors.New("the index is away")}
	for _, c := range []struct {
		s              *source
		method, target string
		body           string
		status         int
		say            string
	}{
		{s, "POST", "/v1/lookup", `{"object_key":"k"}`, 200, `"uncertain"`},
		{s, "POST", "/v1/lookup", "", 200, ""},
		{s, "POST", "/v1/lookup", "k", 400, `"usage":true`},
		{s, "POST", "/v1/lookup?at=soon", `{"object_key":"k"}`, 400, "RFC 3339"},
		{s, "POST", "/v1/lookup", `{"object_key":"k","source":"nobody"}`, 400, "nobody"},
		{s, "GET", "/v1/lookup?object_key=k", "", 200, `"uncertain"`},
		{s, "GET", "/v1/lookup", "", 400, "key"},
		{s, "POST", "/v1/lookup", " [ {\"object_key\":\"k\"}, {\"object_key\":\"l\"}]", 200, `[{"`},
		{s, "POST", "/v1/lookup", "[]", 200, "[]"},
		{s, "POST", "/v1/lookup", "[{}]", 400, "object_key"},
		{s, "DELETE", "/v1/lookup", "", 405, "GET or POST"},
		{s, "GET", "/healthz", "", 200, "ok"},
		{s, "GET", "/readyz", "", 200, "ready"},
		{s, "GET", "/metrics", "", 404, "counts nothing"},
		{s, "GET", "/v1/log?page=5&limit=3", "", 400, "one of them"},
		{s, "GET", "/v1/log?after=7/x", "", 400, "OFFSET/EVENT"},
		{s, "GET", "/v1/gaps", "", 200, ""},
		{s, "GET", "/v1/gaps?source=nobody", "", 400, "nobody"},
		{s, "GET", "/v1/stats", "", 200, `"buffer_max_bytes":7`},
		{s, "GET", "/v1/surplus", "", 404, ""},
		{broken, "POST", "/v1/lookup", `{"object_key":"k"}`, 503, "the index is away"},
		{broken, "GET", "/v1/stats", "", 503, `{"error":`},
		{broken, "GET", "/healthz", "", 200, "ok"},
		{broken, "GET", "/readyz", "", 503, `"reasons":[{"check":"index","detail":"the index is away"}]`},
	} {
		w := request(c.s, c.method, c.target, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.say) {
			t.Errorf("%s %s %q: %d %s", c.method, c.target, c.body, w.Code, w.Body)
		}
		if kind := w.Header().Get("Content-Type"); c.status >= 400 && kind != "application/problem+json" {
			t.Errorf("%s %s: %d as %s", c.method, c.target, c.status, kind)
		}
		if text := w.Body.String(); c.status < 404 && text != "" && strings.Count(text, "\n") != 1 {
			t.Errorf("%s %s: not one line: %q", c.method, c.target, text)
		}
	}
}

// An error behind answers is a last line, and the client returns it as what it is.
func TestErrorBehindAnswers(t *testing.T) {
	s := newSource(t)
	questions := strings.Repeat(`{"object_key":"k"}`+"\n", 4096) + "no question\n"
	w := request(s, "POST", "/v1/lookup", questions)
	lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
	if w.Code != 200 || len(lines) != 4097 || !strings.HasPrefix(lines[4096], `{"error":"line 4097`) {
		t.Errorf("%d, %d lines, the last %s", w.Code, len(lines), lines[len(lines)-1])
	}
	if slices.ContainsFunc(lines[:4096], func(l string) bool { return l != lines[0] }) {
		t.Error("equal questions, different answers")
	}
}

// client serves h on a socket.
func client(t *testing.T, h http.Handler) *httpapi.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return httpapi.NewClient(path)
}

func TestClientErrors(t *testing.T) {
	s := newSource(t)
	c := client(t, httpapi.Handler(s))
	none := func([]byte) error { t.Error("a line"); return nil }
	var usage *query.UsageError
	if err := c.Ask(t.Context(), "gaps", url.Values{"source": {"nobody"}}, nil, none); !errors.As(err, &usage) {
		t.Errorf("an unknown source: %v", err)
	}
	if err := c.Lookup(t.Context(), []query.Question{{Name: query.Name{Key: query.Bytes("k")}}}, "soon", none); !errors.As(err, &usage) {
		t.Errorf("a bad moment: %v", err)
	}
	s.err = errors.New("the index is away")
	if err := c.Stats(t.Context(), none); err == nil || errors.As(err, &usage) || err.Error() != "the index is away" {
		t.Errorf("no engine: %v", err)
	}
	s.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Stats(ctx, none); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	stop := errors.New("the reader has enough")
	if err := c.Stats(t.Context(), func([]byte) error { return stop }); err != stop {
		t.Errorf("the caller's own error: %v", err)
	}
}

// A recorder that ends in the middle of an answer is told as such: an answer is never cut silently.
func TestClientWhenTheRecorderEnds(t *testing.T) {
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "{\"line\":1}\n{\"li")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	n := 0
	err := c.Ask(t.Context(), "gaps", nil, nil, func(line []byte) error { n++; return nil })
	var gone *httpapi.GoneError
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "ask again") || n != 1 {
		t.Errorf("%v behind %d lines", err, n)
	}
	c = httpapi.NewClient(filepath.Join(t.TempDir(), "nobody"))
	if err := c.Stats(t.Context(), nil); !errors.As(err, &gone) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestRebuild(t *testing.T) {
	s := newSource(t)
	c := client(t, httpapi.Handler(s))
	var steps []uint64
	s.rebuild = func(progress func(applied, total uint64)) error {
		progress(1, 2)
		progress(2, 2)
		return nil
	}
	if err := c.Rebuild(t.Context(), func(applied, total uint64) { steps = append(steps, applied, total) }); err != nil || !slices.Equal(steps, []uint64{1, 2, 2, 2}) {
		t.Errorf("%v, steps %v", err, steps)
	}
	s.rebuild = func(progress func(applied, total uint64)) error {
		progress(1, 2)
		return errors.New("no space")
	}
	if err := c.Rebuild(t.Context(), nil); err == nil || err.Error() != "no space" {
		t.Errorf("a rebuild that fails behind its first line: %v", err)
	}
}
