package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/kvjournal/kvjournal/query"
)

// problemJSON is the media type of a Problem.
const problemJSON = "application/problem+json"

// Problem is an error as RFC 9457 has it. Error and Usage are what the last line of an answer has that failed behind its first:
// so whoever reads lines finds the same in both.
type Problem struct {
	// Error is what happened and what to do next, as in Detail.
	Error string `json:"error"`
	// Usage: the question was wrong, not the service.
	Usage bool `json:"usage,omitempty"`
	// Type is one of the Problem constants behind problemType.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Instance is the path that was asked for.
	Instance string `json:"instance,omitempty"`
	// Reasons, of not_ready, are the things that are not as they should be.
	Reasons []Reason `json:"reasons,omitempty"`
}

// problemType is what the type of a Problem begins with.
const problemType = "urn:kvjournal:problem:"

// The kinds of problems: the end of Problem.Type.
const (
	ProblemUsage        = "usage"        // 400: the question cannot be understood
	ProblemUnauthorized = "unauthorized" // 401: no token, or none that is known
	ProblemForbidden    = "forbidden"    // 403: the token does not allow it, or it is only answered over the socket
	ProblemNotFound     = "not_found"    // 404: there is no such path
	ProblemMethod       = "method"       // 405: the path is not asked that way
	ProblemPruned       = "pruned"       // 410: the moment lies before the horizon
	ProblemLost         = "lost"         // 410: the moment is one of records that our own disk lost
	ProblemMedia        = "media_type"   // 415: the body is of a kind that is not read
	ProblemHost         = "host"         // 421: the name in the Host header is not this server's
	ProblemFailed       = "failed"       // 500: the answer could not be read
	ProblemBusy         = "busy"         // 503: too many questions at once
	ProblemUnavailable  = "unavailable"  // 503: there are no answers yet
	ProblemNotReady     = "not_ready"    // 503: what /readyz looks at is not as it should be
	ProblemTimeout      = "timeout"      // 504: the answer took too long
)

var problems = map[string]struct {
	status int
	title  string
}{
	ProblemUsage:        {http.StatusBadRequest, "The question cannot be understood"},
	ProblemUnauthorized: {http.StatusUnauthorized, "A token is needed"},
	ProblemForbidden:    {http.StatusForbidden, "Not allowed"},
	ProblemNotFound:     {http.StatusNotFound, "There is no such path"},
	ProblemMethod:       {http.StatusMethodNotAllowed, "The path is not asked that way"},
	ProblemPruned:       {http.StatusGone, "The moment was pruned"},
	ProblemLost:         {http.StatusGone, "The moment was lost"},
	ProblemMedia:        {http.StatusUnsupportedMediaType, "The body is of a kind that is not read"},
	ProblemHost:         {http.StatusMisdirectedRequest, "The Host header does not name this server"},
	ProblemFailed:       {http.StatusInternalServerError, "The answer could not be read"},
	ProblemBusy:         {http.StatusServiceUnavailable, "Too many questions at once"},
	ProblemUnavailable:  {http.StatusServiceUnavailable, "There are no answers yet"},
	ProblemNotReady:     {http.StatusServiceUnavailable, "Not ready"},
	ProblemTimeout:      {http.StatusGatewayTimeout, "The answer took too long"},
}

// problemOf names the kind of an error that a question ended with.
func problemOf(err error) string {
	var usage *query.UsageError
	var pruned *query.PrunedError
	var lost *query.LostError
	var media *mediaError
	switch {
	case errors.As(err, &usage):
		return ProblemUsage
	case errors.As(err, &media):
		return ProblemMedia
	case errors.As(err, &pruned):
		return ProblemPruned
	case errors.As(err, &lost):
		return ProblemLost
	case errors.Is(err, errNoAnswers):
		return ProblemUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return ProblemTimeout
	}
	return ProblemFailed
}

// errNoAnswers is of a source that has no engine just now.
var errNoAnswers = errors.New("no answers yet")

// noAnswers is errNoAnswers with the source's own words.
type noAnswers struct{ error }

func (e noAnswers) Unwrap() error        { return e.error }
func (e noAnswers) Is(target error) bool { return target == errNoAnswers }

// newProblem is the problem of a kind.
func newProblem(kind, detail, instance string) *Problem {
	k := problems[kind]
	return &Problem{
		Error: detail, Usage: kind == ProblemUsage || kind == ProblemMedia, Type: problemType + kind, Title: k.title, Status: k.status, Detail: detail, Instance: instance,
	}
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", problemJSON)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // nobody is left to be told if that fails
}

// refuse answers a request with a problem of a kind.
func refuse(w http.ResponseWriter, r *http.Request, kind, detail string) {
	writeProblem(w, newProblem(kind, detail, instanceOf(r)))
}

// instanceOf is the path that was asked for, cut to what a person reads.
func instanceOf(r *http.Request) string { return cut(r.URL.EscapedPath(), 256) }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

// Unavailable answers a request for which there is no answer just now.
func Unavailable(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Retry-After", "1")
	refuse(w, r, ProblemUnavailable, err.Error())
}
