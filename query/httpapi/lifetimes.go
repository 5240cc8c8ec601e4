package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/query"
)

// maxTop bounds `top`: no more is counted apart.
const maxTop = 4096

// lifetimes: source, backend_id, tenant_id, prefix, medium, group_id, from, to, by, top, doubtful.
func lifetimes(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	q := &query.LifetimesQuery{
		Where: p.where(), Span: p.span(e.Clock()), Prefix: p.bytes("prefix"), Medium: p.text("medium"), Group: p.bytes("group_id"),
		By: p.choice("by", "tenant", "group", "none"), Doubtful: p.flag("doubtful"),
	}
	top := p.number("top", 0)
	if top > maxTop {
		p.bad("top %d: %d at most", top, maxTop)
	}
	if err := p.err(); err != nil {
		return err
	}
	q.Top = int(top)
	return e.Lifetimes(ctx, q, progress, func(l *query.LifetimesOut) error { return emit(l) })
}
