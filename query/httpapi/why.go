package httpapi

import (
	"context"

	"github.com/kvjournal/kvjournal/query"
)

// why answers GET /v1/why?object_key=K&tenant_id=T&at=WHEN.
func why(ctx context.Context, e *query.Engine, p *params, _ query.Progress, emit Emit) error {
	name, at := p.name(), p.when("at", e.Clock())
	if err := p.err(); err != nil {
		return err
	}
	return e.Why(ctx, name, at, func(story *query.WhyOut) error { return emit(story) })
}
