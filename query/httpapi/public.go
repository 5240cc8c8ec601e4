package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// Public says how a Handler is shown to whoever can reach an address: others than the owner, who comes by the socket.
type Public struct {
	// Page is what is at / and below /web/, for people; nil: nothing.
	Page http.Handler
	// Rights tells what the bearer of a token may do; "" is whoever has none.
	Rights func(token string) Right
	// Hosts tells whether a Host header, without its port, may name this server; nil: any. Where no token is asked for it keeps pages of
	// others out, which make their own name an address of this machine (DNS rebinding).
	Hosts func(host string) bool
	// Timeout is how long a question may be answered, following apart; 0: for ever.
	Timeout time.Duration
}

// PublicHandler is Handler for an address: with the rights checked, and its answers compressed where whoever asks can read that. What
// is Local is refused.
func PublicHandler(s Source, p Public) http.Handler {
	observer, _ := s.(Observer)
	return p.handler(routes(s), func(route *Route, w http.ResponseWriter, r *http.Request) {
		if observer == nil {
			route.serve(w, r)
			return
		}
		begun, seen := time.Now(), &observed{ResponseWriter: w, status: http.StatusOK}
		defer func() { observer.Answered(route.Path, seen.status, time.Since(begun)) }()
		route.serve(seen, r)
	})
}

// PublicFront is PublicHandler before a handler that serves the same as Handler.
func PublicFront(inner http.Handler, p Public) http.Handler {
	return p.handler(routes(nil), func(route *Route, w http.ResponseWriter, r *http.Request) {
		if route.Path == "/healthz" || route.Path == "/openapi.yaml" {
			route.serve(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// handler checks a request, and lets serve answer those that may be made.
func (p *Public) handler(routes []Route, serve func(*Route, http.ResponseWriter, *http.Request)) http.Handler {
	t := newTable(routes)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if p.Hosts != nil && !p.Hosts(hostOf(r.Host)) {
			refuse(w, r, ProblemHost, fmt.Sprintf("the Host header says %.100q, which is no name of this server; use its address, or give --allow-host", r.Host))
			return
		}
		if p.Page != nil && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/web/")) {
			p.Page.ServeHTTP(w, r)
			return
		}
		route := t.find(w, r)
		if route == nil || !p.allowed(w, r, route.Right) {
			return
		}
		if p.Timeout > 0 && !follows(r) {
			ctx, cancel := context.WithTimeout(r.Context(), p.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		serve(route, w, r)
	})
	return bounded(compressed(h), maxQuestions)
}

// allowed answers a request that may not be made with why.
func (p *Public) allowed(w http.ResponseWriter, r *http.Request, needs Right) bool {
	if needs == Open {
		return true
	}
	if needs == Local {
		refuse(w, r, ProblemForbidden, fmt.Sprintf("%s is for the owner of the directory alone: use the command on the machine", r.URL.Path))
		return false
	}
	if needs == Reconcile && r.URL.Query().Has("snapshot") {
		refuse(w, r, ProblemForbidden, "a snapshot is a file of the recorder's machine: use `kvjournal reconcile --snapshot` there")
		return false
	}
	token := bearer(r)
	has := Read
	if p.Rights != nil {
		has = p.Rights(token)
	}
	if has >= needs {
		return true
	}
	kind, detail := ProblemForbidden, "this token may ask questions, not have the master read: that takes the token of --reconcile-token-file"
	if has == Open || token == "" {
		kind, detail = ProblemUnauthorized, "send a token that is known: Authorization: Bearer TOKEN"
		w.Header().Set("WWW-Authenticate", `Bearer realm="kvjournal"`)
	}
	refuse(w, r, kind, detail)
	return false
}

// bearer is the token of a request, empty where there is none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// follows reports whether a question has no end of its own.
func follows(r *http.Request) bool {
	if r.URL.Path != "/v1/log" {
		return false
	}
	// Parsing costs more than looking whether there can be such a parameter.
	may := strings.Contains(r.URL.RawQuery, "follow") || strings.Contains(r.URL.RawQuery, "%")
	return wantsEvents(r) || may && r.URL.Query().Get("follow") == "true"
}

// hostOf is a Host header without its port.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// OwnNames returns what tells the names of this machine from others: addresses, localhost, the host's own, and those given. Another
// page's name is none of them, whatever address it resolves to.
func OwnNames(more ...string) func(host string) bool {
	own := map[string]bool{"localhost": true}
	if name, err := os.Hostname(); err == nil {
		own[strings.ToLower(name)] = true
	}
	for _, name := range more {
		own[hostOf(name)] = true
	}
	return func(host string) bool {
		return own[host] || net.ParseIP(host) != nil || strings.HasSuffix(host, ".localhost")
	}
}

// compressLeast is the smallest answer that is compressed.
const compressLeast = 1 << 10

// compressed sends answers as zstd or gzip where whoever asks takes that, both at their fastest: an answer is read once. Events are left as
// they are: each is to come at once.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(compressLeast), gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		return h // its options are constants
	}
	smaller := wrap(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") == "" || wantsEvents(r) {
			h.ServeHTTP(w, r)
			return
		}
		smaller.ServeHTTP(w, r)
	})
}

// observed notes the status of a reply.
type observed struct {
	http.ResponseWriter
	status int
}

func (o *observed) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

func (o *observed) Flush() { _ = http.NewResponseController(o.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
