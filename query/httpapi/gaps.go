package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/query"
)

// gaps: source, from, to, no_objects; summary counts the losses by cause and hour.
func gaps(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	q := &query.GapsQuery{Source: p.text("source"), Span: p.span(e.Clock()), NoObjects: p.flag("no_objects")}
	summary := p.flag("summary")
	if err := p.err(); err != nil {
		return err
	}
	if summary {
		return e.GapsSummary(ctx, q, progress, func(h *query.GapsHour) error { return emit(h) })
	}
	return e.Gaps(ctx, q, progress, func(g *query.GapOut) error { return emit(g) })
}
