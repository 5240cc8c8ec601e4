package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Reason is why a service is not ready.
type Reason struct {
	// Check is what was looked at: journal, index, source or disk.
	Check string `json:"check"`
	// Source is left out where it is about no single one.
	Source string `json:"source,omitempty"`
	Detail string `json:"detail"`
}

// Readier is a Source that knows what it takes to be ready: nil where nothing is amiss.
type Readier interface{ NotReady() []Reason }

// Metered is a Source with metrics.
type Metered interface{ Metrics() http.Handler }

// Observer is a Source that is told of each answer to others than the owner: of which path, with what status, and how long it took.
type Observer interface {
	Answered(path string, status int, took time.Duration)
}

// health is the answer of /healthz and, where all is well, /readyz.
type health struct {
	Status string `json:"status"`
}

func sayHealth(w http.ResponseWriter, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(health{status}) // nobody is left to be told if that fails
}

// healthz tells that the process answers, and nothing else.
func healthz(w http.ResponseWriter, _ *http.Request) { sayHealth(w, "ok") }

// readyz tells whether answers are durable, near the end of the journal, and of sources that are heard.
func readyz(w http.ResponseWriter, r *http.Request, s Source) {
	var reasons []Reason
	if ready, ok := s.(Readier); ok {
		reasons = ready.NotReady()
	} else if _, err := s.Engine(); err != nil {
		reasons = []Reason{{Check: "index", Detail: err.Error()}}
	}
	if len(reasons) == 0 {
		sayHealth(w, "ready")
		return
	}
	words := make([]string, len(reasons))
	for i, reason := range reasons {
		words[i] = reason.Detail
		if reason.Source != "" {
			words[i] = fmt.Sprintf("source %q: %s", reason.Source, reason.Detail)
		}
	}
	p := newProblem(ProblemNotReady, strings.Join(words, "; "), instanceOf(r))
	p.Reasons = reasons
	writeProblem(w, p)
}

func metrics(w http.ResponseWriter, r *http.Request, s Source) {
	m, ok := s.(Metered)
	if !ok {
		refuse(w, r, ProblemNotFound, "this service counts nothing")
		return
	}
	m.Metrics().ServeHTTP(w, r)
}
