package httpapi

import (
	"context"
	"strings"

	"github.com/kvjournal/kvjournal/query"
)

// position is a line between those of a log that was asked for with positions=true: all up to this offset was told.
type position struct {
	Position uint64 `json:"position"`
}

// logRecords answers log: source, backend_id, tenant_id, object_key, prefix, medium, type (several with commas between), from, to,
// limit, raw; after=N leaves out the records up to that offset, follow=true goes on with what is recorded, and with positions=true
// there is a line {"position":N} whenever everything up to N was told.
func logRecords(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	o := query.LogOptions{
		Where: p.where(), Span: p.span(e.Clock()), Key: p.bytes("object_key"), Prefix: p.bytes("prefix"), Medium: p.text("medium"),
		Limit: p.number("limit", 0), Raw: p.flag("raw"), After: p.number("after", 0), Follow: p.flag("follow"),
	}
	if t := p.text("type"); t != "" {
		o.Types = strings.Split(t, ",")
	}
	positions := p.flag("positions")
	if err := p.err(); err != nil {
		return err
	}
	o.Reached = func(offset uint64) error {
		if positions {
			if err := emit(position{offset}); err != nil {
				return err
			}
		}
		return emit(Flush)
	}
	return e.Log(ctx, o, progress, func(l *query.LogLine) error { return emit(l) })
}
