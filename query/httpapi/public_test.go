package httpapi_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// Who may ask what: without a token, with that of a reader, and with that of who may have the master read.
func TestRights(t *testing.T) {
	s := newSource(t)
	rights := func(token string) httpapi.Right {
		return map[string]httpapi.Right{"reader": httpapi.Read, "reconciler": httpapi.Reconcile}[token]
	}
	closed := httpapi.PublicHandler(s, httpapi.Public{Rights: rights})
	open := httpapi.PublicHandler(s, httpapi.Public{})
	for _, c := range []struct {
		h              http.Handler
		token          string
		method, target string
		status         int
	}{
		{closed, "", "GET", "/healthz", 200},
		{closed, "", "GET", "/readyz", 200},
		{closed, "", "GET", "/openapi.yaml", 200},
		{closed, "", "GET", "/v1/gaps", 401},
		{closed, "guessed", "GET", "/v1/gaps", 401},
		{closed, "", "GET", "/metrics", 401},
		{closed, "reader", "GET", "/v1/gaps", 200},
		{closed, "reader", "POST", "/v1/reconcile", 403},
		{closed, "reconciler", "GET", "/v1/gaps", 200},
		{closed, "reconciler", "POST", "/v1/reconcile", 500}, // it is tried: there is no master
		{closed, "reconciler", "POST", "/v1/reconcile?snapshot=/etc/passwd", 403},
		{closed, "reconciler", "POST", "/v1/prune", 403},
		{closed, "reconciler", "POST", "/v1/backup?to=/tmp/x", 403},
		{closed, "reconciler", "POST", "/v1/rebuild", 403},
		{open, "", "GET", "/v1/gaps", 200},
		{open, "", "POST", "/v1/reconcile", 401},
		{open, "", "POST", "/v1/prune", 403},
		{open, "", "GET", "/", 404},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s with %q: %d %s, want %d", c.method, c.target, c.token, w.Code, w.Body, c.status)
		}
		if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s %s: %d, WWW-Authenticate %q", c.method, c.target, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
}

// Every problem is one as RFC 9457 has it, with what the lines of answers have too.
func TestProblem(t *testing.T) {
	s := newSource(t)
	h := httpapi.PublicHandler(s, httpapi.Public{Hosts: httpapi.OwnNames()})
	for target, kind := range map[string]string{"/v1/gaps?source=nobody": "usage", "/v1/nothing": "not_found", "/v1/prune": "method"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", target, nil)
		r.Host = "localhost:8900"
		h.ServeHTTP(w, r)
		var p httpapi.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		path, _, _ := strings.Cut(target, "?")
		if p.Type != "urn:kvjournal:problem:"+kind || p.Status != w.Code || p.Detail == "" || p.Detail != p.Error || p.Title == "" || p.Instance != path || p.Usage != (kind == "usage") {
			t.Errorf("%s: %+v", target, p)
		}
	}
}

// A page that made its own name an address of this machine is not answered.
func TestHosts(t *testing.T) {
	h := httpapi.PublicHandler(newSource(t), httpapi.Public{Hosts: httpapi.OwnNames("kv.example")})
	for host, status := range map[string]int{
		"127.0.0.1:8900": 200, "[::1]:8900": 200, "localhost": 200, "LOCALHOST.:1": 200, "10.0.0.7:8900": 200, "kv.example": 200,
		"attacker.example": 421, "127.0.0.1.attacker.example:8900": 421, "localhost.attacker.example": 421, "": 421,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/v1/gaps", nil)
		r.Host = host
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("Host %q: %d, want %d", host, w.Code, status)
		}
	}
}

// Answers come compressed to who can read that, the same bytes; small ones and events as they are.
func TestCompressed(t *testing.T) {
	h := httpapi.PublicHandler(newSource(t), httpapi.Public{})
	questions := strings.Repeat(`{"object_key":"k"}`+"\n", 100)
	ask := func(encoding, body string) *http.Response {
		r := httptest.NewRequest("POST", "/v1/lookup", strings.NewReader(body))
		if encoding != "" {
			r.Header.Set("Accept-Encoding", encoding)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	plain, err := io.ReadAll(ask("", questions).Body)
	if err != nil || strings.Count(string(plain), "\n") != 100 {
		t.Fatalf("%v, %d lines", err, strings.Count(string(plain), "\n"))
	}
	for _, c := range []struct {
		accept, encoding string
		reader           func(io.Reader) (io.Reader, error)
	}{
		{"gzip", "gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		{"gzip, zstd", "zstd", func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) }},
		{"br", "", func(r io.Reader) (io.Reader, error) { return r, nil }},
	} {
		resp := ask(c.accept, questions)
		if got := resp.Header.Get("Content-Encoding"); got != c.encoding {
			t.Errorf("%s: encoded as %q", c.accept, got)
		}
		r, err := c.reader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != string(plain) {
			t.Errorf("%s: %v, %d bytes, want %d", c.accept, err, len(b), len(plain))
		}
	}
	if resp := ask("gzip", `{"object_key":"k"}`); resp.Header.Get("Content-Encoding") != "" {
		t.Error("a small answer was compressed")
	}
}

// What is at / is the page's, what is below /v1/ never is.
func TestPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page") })
	h := httpapi.PublicHandler(newSource(t), httpapi.Public{Page: page, Rights: func(string) httpapi.Right { return httpapi.Open }})
	for target, want := range map[string]string{"/": "page", "/web/app.js": "page", "/lookup": "but /v1/lookup", "/favicon.ico": "not_found", "/healthz": "ok", "/v1/x": "not_found", "/v1/gaps": "unauthorized"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", target, w.Body)
		}
	}
}
