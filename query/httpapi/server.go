package httpapi

import (
	"context"
	"errors"
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

// Guarded is a Source whose answers can be spoilt while they are read: nothing is sent that was read before Undisturbed returned nil.
type Guarded interface{ Undisturbed() error }

// Healer is a Source that sees to what made a question fail, if it can. Failed returns what the client is told.
type Healer interface{ Failed(error) error }

const (
	// lookupChunk is how many questions are answered in one view.
	lookupChunk = 4096
	// maxLine bounds one question: a key of 16 MiB in base64. chunkBytes bounds the questions that are held at once, give or take one.
	maxLine    = 24 << 20
	chunkBytes = 4 << 20
	ndjson     = "application/x-ndjson"
	oneJSON    = "application/json" // of an answer that is one value
)

// Handler serves the questions of the command line to the owner of the directory, who may do all of it:
//
//	POST /v1/lookup?at=WHEN   questions, one JSON object a line, or an array of them; answers likewise, in order
//	GET  /v1/lookup?object_key=K&tenant_id=T&at=WHEN   one question, and its answer
//	GET  /v1/NAME?…           (or POST, with the parameters as its body, where they are long) the questions in questions.go, e.g. /v1/gaps?source=S; with progress=true there are lines
//	                          {"progress":{"done":…,"total":…}} between those of the answer
//	GET  /v1/log?…            with Accept: text/event-stream, as server-sent events: see events.go
//	GET  /v1/stats
//	POST /v1/reconcile?source=S&audit=B&dry_run=B&snapshot=FILE   lines {"progress":…} and {"begun":h}, at the end the report
//	POST /v1/backup?to=DIR    lines {"progress":…}, at the end {"report":…} or {"error":…}
//	POST /v1/prune?keep=D|keep_bytes=N|before=WHEN&forget_removed=B&dry_run=B   lines {"progress":…}, at the end the report
//	POST /v1/rebuild          lines {"applied":…,"total":…}, at the end {"done":true} or {"error":…}
//	GET  /healthz, /readyz, /metrics, /openapi.yaml
//
// An error before the first line is a Problem; behind it, a last line {"error":…}. PublicHandler is for others than the owner.
func Handler(s Source) http.Handler {
	t := newTable(routes(s))
	return bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route := t.find(w, r); route != nil {
			route.serve(w, r)
		}
	}), maxQuestions)
}

// failure is the JSON of an error behind the first line; Usage tells that the question was wrong, not the service.
type failure struct {
	Error string `json:"error"`
	Usage bool   `json:"usage,omitempty"`
}

// answerer writes the lines of an answer.
type answerer = func(context.Context, *query.Engine, *http.Request, *lines) error

// serve answers from s, with buffers of the pool.
func serve(w http.ResponseWriter, r *http.Request, s Source, p *linesPool, f answerer) {
	out := p.get(w, r)
	defer p.put(out)
	if g, ok := s.(Guarded); ok {
		out.guard = g.Undisturbed
	}
	defer out.out.Flush() // nobody is left to be told if that fails
	e, err := s.Engine()
	if err != nil {
		out.fail(noAnswers{err})
		return
	}
	if err = f(r.Context(), e, r, out); err == nil {
		err = out.out.Flush()
	}
	if err == nil {
		out.begin() // an answer without a line has a type too
		return
	}
	if h, ok := s.(Healer); ok {
		err = h.Failed(err)
	}
	if errors.Is(err, context.Canceled) {
		err = noAnswers{errEnding} // whoever asked may still be there: a recorder that ends gives its questions up, and serve has passed them on
	}
	out.fail(err)
}

var errEnding = errors.New("who answers is ending; ask again")

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

func answer(name string) answerer {
	return func(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
		p, err := paramsOf(out.w, r)
		if err != nil {
			return err
		}
		if name == "log" && wantsEvents(r) {
			return logEvents(ctx, e, r, p, out)
		}
		var progress query.Progress
		if told := time.Now(); p.flag("progress") {
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
		return questions[name](ctx, e, p, progress, func(v any) error {
			if v == Flush {
				return out.flush()
			}
			return out.write(v)
		})
	}
}

func stats(s Source) answerer {
	return func(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
		if err := noParams(out.w, r); err != nil {
			return err
		}
		out.kind = oneJSON
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

func rebuild(s Source) answerer {
	return func(ctx context.Context, _ *query.Engine, r *http.Request, out *lines) error {
		if err := noParams(out.w, r); err != nil {
			return err
		}
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
