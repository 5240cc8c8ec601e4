package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/kvjournal/kvjournal/query"
)

// position is a line between those of a log that was asked for with positions=true: all up to this offset was told.
type position struct {
	Position uint64 `json:"position"`
}

// logOptions reads the parameters of log: source, backend_id, tenant_id, object_key, prefix, medium, type (several with commas between),
// from, to, limit, raw; after=N leaves out the records up to that offset, after=N/E also what comes up to event E of the next one;
// follow=true goes on with what is recorded.
func logOptions(e *query.Engine, p *params) (query.LogOptions, EventID) {
	o := query.LogOptions{
		Where: p.where(), Span: p.span(e.Clock()), Key: p.bytes("object_key"), Prefix: p.bytes("prefix"), Medium: p.text("medium"),
		Limit: p.number("limit", 0), Raw: p.flag("raw"), Follow: p.flag("follow"),
	}
	if t := p.text("type"); t != "" {
		o.Types = strings.Split(t, ",")
	}
	var id EventID
	if after := p.text("after"); after != "" {
		var err error
		if id, err = ParseEventID(after); err != nil {
			p.bad("after: %v", err)
		}
		o.After = id.after()
	}
	return o, id
}

// logRecords answers log. With positions=true there is a line {"position":N} whenever everything up to N was told; with page=N there are
// at most N lines, and, where there is more, a last one {"next":"…"}, whose value is what `after` takes to go on.
func logRecords(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	o, id := logOptions(e, p)
	positions, page := p.flag("positions"), p.page(&o.Limit)
	if page > 0 && o.Follow {
		p.bad("follow has no pages: leave page or follow out")
	}
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
	limit := o.Limit
	if id.Partly { // what is left out is not to count
		o.Limit = 0
	}
	given, at := uint64(0), EventID{}
	err := e.Log(ctx, o, progress, func(l *query.LogLine) error {
		now := idOf(l)
		if !id.behind(now) {
			return nil
		}
		if given == limit && limit > 0 {
			return errPage
		}
		given, at = given+1, now
		return emit(l)
	})
	more := errors.Is(err, errPage)
	if more {
		err = nil
	}
	if err != nil || page == 0 {
		return err
	}
	if given == page || more {
		return emit(next{at.String()})
	}
	return nil
}
