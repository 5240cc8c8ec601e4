package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// PruneLine is a line of a prune: how far it is, or, at the end, what it came to.
type PruneLine struct {
	Progress *PruneProgress     `json:"progress,omitempty"`
	Report   *query.PruneReport `json:"report,omitempty"`
}

// PruneProgress is how far a step is.
type PruneProgress struct {
	Step  string `json:"step"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
}

// PruneParams reads what to prune: keep (a duration), keep_bytes, before (a moment), forget_removed, dry_run.
func PruneParams(values url.Values, now time.Time) (*query.PruneQuestion, error) {
	return pruneQuestion(&params{values: values}, now)
}

func pruneQuestion(p *params, now time.Time) (*query.PruneQuestion, error) {
	q := &query.PruneQuestion{
		Keep: p.duration("keep"), KeepBytes: p.number("keep_bytes", 0), Before: p.when("before", now),
		ForgetRemoved: p.flag("forget_removed"), DryRun: p.flag("dry_run"),
	}
	return q, p.err()
}

func prune(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
	p, err := onlyPathParams(out.w, r)
	if err != nil {
		return err
	}
	q, err := pruneQuestion(p, e.Clock())
	if err != nil {
		return err
	}
	var pace pacer
	report, err := e.Prune(ctx, q, func(step string, done, total uint64) {
		if !pace.due(step) {
			return
		}
		// A client that went away is seen by ctx.
		_ = out.write(PruneLine{Progress: &PruneProgress{step, done, total}})
		_ = out.flush()
	})
	if err != nil {
		return err
	}
	return out.write(PruneLine{Report: report})
}

// Prune has the recorder prune its directory; progress may be nil.
func (c *Client) Prune(ctx context.Context, values url.Values, progress func(step string, done, total uint64)) (*query.PruneReport, error) {
	var report *query.PruneReport
	err := c.ask(ctx, http.MethodPost, "/v1/prune", values, nil, func(line []byte) error {
		var l PruneLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if p := l.Progress; p != nil && progress != nil {
			progress(p.Step, p.Done, p.Total)
		}
		if l.Report != nil {
			report = l.Report
		}
		return nil
	})
	if err == nil && report == nil {
		err = errors.New("the recorder ended before it had pruned; its next start leaves the old horizon or the new one, and `kvjournal stats` shows which")
	}
	return report, err
}

// horizon answers with where the journal begins; no line where it was never pruned.
func horizon(_ context.Context, e *query.Engine, p *params, _ query.Progress, emit Emit) error {
	if err := p.err(); err != nil {
		return err
	}
	if h := e.Horizon(); h != nil {
		return emit(h)
	}
	return nil
}
