package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/query"
)

// diff answers diff: source, backend_id, tenant_id, from, to, prefix, group_id, medium, limit. summary=true gives the summary alone,
// summary=after behind the changes.
func diff(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	q := query.DiffQuestion{
		Where: p.where(), From: p.when("from", e.Clock()), To: p.when("to", e.Clock()), Prefix: p.bytes("prefix"),
		Group: p.bytes("group_id"), Medium: p.text("medium"), Limit: p.number("limit", 0),
	}
	summary := p.choice("summary", "false", "true", "after")
	if err := p.err(); err != nil {
		return err
	}
	q.NoSummary = summary == "false"
	var each func(*query.ChangeLine) error
	if summary != "true" {
		lines := flushing(emit)
		each = func(l *query.ChangeLine) error { return lines(l) }
	}
	s, err := e.Diff(ctx, q, progress, each)
	if err != nil || q.NoSummary {
		return err
	}
	return emit(s)
}
