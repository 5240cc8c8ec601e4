package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// flushEvery is how long lines of a listing wait at most for others to be sent with them.
const flushEvery = time.Second

// flushing lets the first line go at once, so that whoever reads need not wait for the end.
func flushing(emit Emit) Emit {
	var last time.Time
	return func(line any) error {
		if err := emit(line); err != nil {
			return err
		}
		if now := time.Now(); now.Sub(last) >= flushEvery {
			last = now
			return emit(Flush)
		}
		return nil
	}
}

// objects answers objects: source, backend_id, tenant_id, at, prefix, group_id, medium, state (present, absent, any), certainty
// (confirmed, uncertain), count, limit, after. after is a key, or a line of the answer. With page=N there are at most N lines, and, where
// there may be more, a last one {"next":"…"}, whose value is what `after` takes to go on; give `at` for pages of one moment.
func objects(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error {
	q := query.ObjectsQuestion{
		Where: p.where(), At: p.when("at", e.Clock()), Prefix: p.bytes("prefix"), Group: p.bytes("group_id"), Medium: p.text("medium"),
		State: p.choice("state", query.Present, query.Absent, query.AnyState), Certainty: p.choice("certainty", "", query.Confirmed, query.Uncertain),
		Limit: p.number("limit", 0), After: p.after("after"),
	}
	count, page := p.flag("count"), p.page(&q.Limit)
	if count && (q.Limit > 0 || q.After != nil) {
		p.bad("count counts all objects: leave out limit and after")
	}
	if err := p.err(); err != nil {
		return err
	}
	if count {
		c, err := e.CountObjects(ctx, q, progress)
		if err != nil {
			return err
		}
		return emit(c)
	}
	emit = flushing(emit)
	given, last := uint64(0), []byte(nil)
	err := e.Objects(ctx, q, progress, func(l *query.ObjectLine) error {
		if given++; given == page {
			last = l.AppendJSON(last)
		}
		return emit(l)
	})
	if err != nil || last == nil {
		return err
	}
	return emit(next{nameOf(last)})
}

// nameOf is what a line of objects says of the object's name, as `after` takes it.
func nameOf(line []byte) string {
	var q query.Question
	if json.Unmarshal(line, &q) != nil {
		return string(line) // after takes a line too
	}
	b, err := json.Marshal(&q)
	if err != nil {
		return string(line)
	}
	return string(b)
}

// after reads the name of an object to go on behind: JSON with its name, or a key.
func (p *params) after(name string) *query.Name {
	b := p.bytes(name)
	if b == nil {
		return nil
	}
	var q query.Question
	if bytes.HasPrefix(b, []byte("{")) && json.Unmarshal(b, &q) == nil {
		return &q.Name
	}
	return &query.Name{Key: b}
}
