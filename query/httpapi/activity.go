package httpapi

import (
	"context"
	"strings"

	"github.com/kvjournal/kvjournal/query"
)

// activity answers activity: source, backend_id, tenant_id, medium, type, from, to, bucket.
func activity(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	o := query.ActivityOptions{Where: p.where(), Span: p.span(e.Clock()), Medium: p.text("medium"), Bucket: p.duration("bucket")}
	if t := p.text("type"); t != "" {
		o.Types = strings.Split(t, ",")
	}
	if err := p.err(); err != nil {
		return err
	}
	return e.Activity(ctx, o, progress, func(b *query.ActivityBucket) error { return emit(b) })
}
