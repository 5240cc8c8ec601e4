package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/query"
)

// ReconcileLine is a line of a reconciliation: how far it is, where it began, or, at the end, what it came to.
type ReconcileLine struct {
	Progress *reconcile.Progress `json:"progress,omitempty"`
	// Begun is h, told where a snapshot is to be taken now.
	Begun       uint64                 `json:"begun,omitempty"`
	Report      *reconcile.Report      `json:"report,omitempty"`
	Corrections []*query.CorrectionOut `json:"corrections,omitempty"` // the first of them
}

func corrections(r *reconcile.Report) []*query.CorrectionOut {
	var out []*query.CorrectionOut
	for i := range r.First {
		c := &r.First[i]
		o := &query.CorrectionOut{Name: query.Name{Backend: append(query.Bytes{}, c.Backend...), Tenant: c.Tenant, Key: c.Key}, Medium: string(c.Medium)}
		switch c.What {
		case reading.Present:
			o.State = query.Present
		case reading.Absent:
			o.State = query.Absent
		}
		out = append(out, o)
	}
	return out
}

func reconcileNow(s Source) func(context.Context, *query.Engine, *http.Request, *lines) error {
	return func(ctx context.Context, _ *query.Engine, r *http.Request, out *lines) error {
		p, err := onlyPathParams(out.w, r)
		if err != nil {
			return err
		}
		q := reconcile.Request{Audit: p.flag("audit"), DryRun: p.flag("dry_run"), Sample: int(p.number("sample", 10))}
		source, file := p.text("source"), p.text("snapshot")
		if err := p.err(); err != nil {
			return err
		}
		var mu sync.Mutex // lines come from the reading, and from the snapshot that it waits for
		tell := func(l ReconcileLine) {
			mu.Lock()
			defer mu.Unlock()
			// A client that went away is seen by ctx.
			_ = out.write(l)
			_ = out.flush()
		}
		if file != "" {
			q.Snapshot = &reconcile.SnapshotFile{Path: file, Ready: func(h uint64) { tell(ReconcileLine{Begun: h}) }}
		}
		var pace pacer
		q.Progress = func(now reconcile.Progress) {
			if !pace.due(now.Step) {
				return
			}
			tell(ReconcileLine{Progress: &now})
		}
		report, err := s.Reconcile(ctx, source, q)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return out.write(ReconcileLine{Report: report, Corrections: corrections(report)})
	}
}

// Reconcile has the recorder read a source's master now, and calls f with each line but the last, which it returns.
func (c *Client) Reconcile(ctx context.Context, values url.Values, f func(*ReconcileLine) error) (*ReconcileLine, error) {
	var end *ReconcileLine
	err := c.ask(ctx, http.MethodPost, "/v1/reconcile", values, nil, func(line []byte) error {
		var l ReconcileLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.Report != nil {
			end = &l
			return nil
		}
		return f(&l)
	})
	if err == nil && end == nil {
		err = errors.New("the recorder ended before the master was read; nothing was changed")
	}
	return end, err
}
