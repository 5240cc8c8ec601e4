package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
)

// Source gives the handlers what they answer from. An error says why there are no answers yet.
type Source interface {
	Engine() (*query.Engine, error)
	Recorder() *query.RecorderStats
	// Rebuild computes the index anew; progress is told applied of total offsets.
	Rebuild(ctx context.Context, progress func(applied, total uint64)) error
	// Backup writes a consistent copy of the directory to a new one.
	Backup(ctx context.Context, to string, progress func(backup.Progress)) (*backup.Report, error)
	// Reconcile reads a source's master now; source is empty where only one has a master.
	Reconcile(ctx context.Context, source string, r reconcile.Request) (*reconcile.Report, error)
}

// Healer is a Source that sees to what made a question fail, if it can. Failed returns what the client is told.
type Healer interface{ Failed(error) error }

const (
	// lookupChunk is how many questions are answered in one view.
	lookupChunk = 4096
	// maxLine bounds one question: a key of 16 MiB in base64. chunkBytes bounds the questions that are held at once, give or take one.
	maxLine    = 24 << 20
	chunkBytes = 4 << 20
	ndjson     = "application/x-ndjson"
)

// Handler serves the questions of the command line:
//
//	POST /v1/lookup?at=WHEN   questions, one JSON object a line; answers likewise, in order
//	GET  /v1/NAME?…           (or POST, with the parameters as its body, where they are long) the questions in questions.go, e.g. /v1/gaps?source=S; with progress=true there are lines
//	                          {"progress":{"done":…,"total":…}} between those of the answer
//	GET  /v1/stats
//	POST /v1/reconcile?source=S&audit=B&dry_run=B&snapshot=FILE   lines {"progress":…} and {"begun":h}, at the end the report
//	POST /v1/backup?to=DIR    lines {"progress":…}, at the end {"report":…} or {"error":…}
//	POST /v1/prune?keep=D|keep_bytes=N|before=WHEN&forget_removed=B&dry_run=B   lines {"progress":…}, at the end the report
//	POST /v1/rebuild          lines {"applied":…,"total":…}, at the end {"done":true} or {"error":…}
//
// An error before the first line is a status and {"error":…}; behind it, a last line {"error":…}.
func Handler(s Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/lookup", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, lookup) })
	for name := range questions {
		ask := func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, answer(name)) }
		mux.HandleFunc("GET /v1/"+name, ask)
		mux.HandleFunc("POST /v1/"+name, ask)
	}
	mux.HandleFunc("GET /v1/stats", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, stats(s)) })
	mux.HandleFunc("POST /v1/reconcile", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, reconcileNow(s)) })
	mux.HandleFunc("POST /v1/backup", func(w http.ResponseWriter, r *http.Request) { backupNow(w, r, s) })
	mux.HandleFunc("POST /v1/prune", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, prune) })
	mux.HandleFunc("POST /v1/rebuild", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, rebuild(s)) })
	return bounded(mux, maxQuestions)
}

// lines writes one JSON value a line, buffered.
type lines struct {
	w     http.ResponseWriter
	out   *bufio.Writer
	line  []byte
	begun bool
}

func (l *lines) write(v any) error {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", ndjson)
	}
	var err error
	if l.line, err = query.AppendJSON(l.line[:0], v); err != nil {
		return err
	}
	_, err = l.out.Write(append(l.line, '\n'))
	return err
}

// Write gives the client so long to take what is sent.
func (l *lines) Write(b []byte) (int, error) {
	_ = http.NewResponseController(l.w).SetWriteDeadline(time.Now().Add(takePatience)) // a test's reply has none
	return l.w.Write(b)
}

// flush sends what was written.
func (l *lines) flush() error {
	err := l.out.Flush()
	if f, ok := l.w.(http.Flusher); ok && err == nil {
		f.Flush()
	}
	return err
}

// failure is the JSON of an error; Usage tells that the question was wrong, not the service.
type failure struct {
	Error string `json:"error"`
	Usage bool   `json:"usage,omitempty"`
}

func serve(w http.ResponseWriter, r *http.Request, s Source, f func(context.Context, *query.Engine, *http.Request, *lines) error) {
	out := &lines{w: w}
	out.out = bufio.NewWriterSize(out, 32<<10)
	defer out.out.Flush() // nobody is left to be told if that fails
	e, err := s.Engine()
	if err != nil {
		fail(out, http.StatusServiceUnavailable, err)
		return
	}
	if err := f(r.Context(), e, r, out); err != nil {
		if h, ok := s.(Healer); ok {
			err = h.Failed(err)
		}
		fail(out, statusOf(err), err)
	}
}

func statusOf(err error) int {
	var usage *query.UsageError
	if errors.As(err, &usage) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func fail(out *lines, status int, err error) {
	if !out.begun {
		out.w.Header().Set("Content-Type", ndjson)
		out.w.WriteHeader(status)
	}
	// Nobody is left to be told if this fails too.
	_ = out.write(failure{Error: err.Error(), Usage: status == http.StatusBadRequest})
}

func lookup(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
	w, err := query.ParseWhen(r.URL.Query().Get("at"), e.Clock())
	if err != nil {
		return err
	}
	return EachChunk(newPatientBody(out.w, r), lookupChunk, func(questions []query.Question) error {
		answers, err := e.Lookup(ctx, questions, w)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if err := out.write(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// EachChunk reads questions, one JSON object a line, and calls f with up to n at a time. Empty lines are skipped.
func EachChunk(r io.Reader, n int, f func([]query.Question) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxLine)
	var chunk []query.Question
	line, held := 0, 0
	for in.Scan() {
		line++
		if len(in.Bytes()) == 0 {
			continue
		}
		var q query.Question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return &query.UsageError{Message: fmt.Sprintf("line %d: %v; each line is an object like {\"tenant_id\":\"default\",\"object_key\":\"k\"}", line, err)}
		}
		held += len(in.Bytes())
		if chunk = append(chunk, q); len(chunk) == n || held >= chunkBytes {
			if err := f(chunk); err != nil {
				return err
			}
			clear(chunk) // the keys can go
			chunk, held = chunk[:0], 0
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &query.UsageError{Message: fmt.Sprintf("line %d: longer than %d MiB", line+1, maxLine>>20)}
	case err != nil:
		return fmt.Errorf("line %d: %w", line+1, err)
	}
	if len(chunk) > 0 {
		return f(chunk)
	}
	return nil
}

// progressLine is a line between those of an answer that takes long.
type progressLine struct {
	Progress struct {
		Done  uint64 `json:"done"`
		Total uint64 `json:"total"`
	} `json:"progress"`
}

// progressEvery is how often progress is told over a socket.
const progressEvery = 200 * time.Millisecond

// pacer decides which words about the progress of several steps are told: the first of each step, and one every progressEvery.
type pacer struct {
	told time.Time
	step string
}

func (p *pacer) due(step string) bool {
	if step == p.step && time.Since(p.told) < progressEvery {
		return false
	}
	p.told, p.step = time.Now(), step
	return true
}

func answer(name string) func(context.Context, *query.Engine, *http.Request, *lines) error {
	return func(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
		values, err := valuesOf(out.w, r)
		if err != nil {
			return err
		}
		var progress query.Progress
		if told := time.Now(); values.Get("progress") == "true" {
			progress = func(done, total uint64) {
				if time.Since(told) < progressEvery {
					return
				}
				told = time.Now()
				var l progressLine
				l.Progress.Done, l.Progress.Total = done, total
				// A client that went away is seen by ctx.
				_ = out.write(l)
				_ = out.flush()
			}
		}
		return Run(ctx, e, name, values, progress, func(v any) error {
			if v == Flush {
				return out.flush()
			}
			return out.write(v)
		})
	}
}

func stats(s Source) func(context.Context, *query.Engine, *http.Request, *lines) error {
	return func(ctx context.Context, e *query.Engine, _ *http.Request, out *lines) error {
		st, err := e.Stats(ctx)
		if err != nil {
			return err
		}
		st.Recorder = s.Recorder()
		return out.write(st)
	}
}

// Progress is a line of a rebuild.
type Progress struct {
	Applied uint64 `json:"applied,omitempty"`
	Total   uint64 `json:"total,omitempty"`
	Done    bool   `json:"done,omitempty"`
}

func rebuild(s Source) func(context.Context, *query.Engine, *http.Request, *lines) error {
	return func(ctx context.Context, _ *query.Engine, _ *http.Request, out *lines) error {
		err := s.Rebuild(ctx, func(applied, total uint64) {
			// A client that went away is seen by ctx.
			_ = out.write(Progress{Applied: applied, Total: total})
			_ = out.flush()
		})
		if err != nil {
			return err
		}
		return out.write(Progress{Done: true})
	}
}
