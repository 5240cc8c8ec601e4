package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/query"
)

// history answers GET /v1/history?object_key=K&tenant_id=T&from=WHEN&to=WHEN&limit=N&raw=true&notes=true. notes adds the lines for
// people.
func history(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	ask := query.HistoryAsk{
		Name: p.name(), Span: p.span(e.Clock()), Limit: p.number("limit", 0), Raw: p.flag("raw"), Notes: p.flag("notes"),
	}
	if err := p.err(); err != nil {
		return err
	}
	return e.History(ctx, &ask, progress, func(line any) error { return emit(line) })
}
