package httpapi

import (
	"context"
	"net/url"

	"github.com/kvjournal/kvjournal/query"
)

// Emit takes one line of an answer.
type Emit func(line any) error

// Flush, emitted, is no line: what came before it should reach whoever asked now.
var Flush any = flushLines{}

type flushLines struct{}

// question is one that needs nothing but parameters: how it is answered, line by line.
type question func(ctx context.Context, e *query.Engine, p *params, progress query.Progress, emit Emit) error

// questions are those asked with GET /v1/NAME. A command of the same name asks each, with the same parameters.
var questions = map[string]question{
	"activity":  activity,
	"diff":      diff,
	"export":    export,
	"gaps":      gaps,
	"lifetimes": lifetimes,
	"why":       why,
	"history":   history,
	"horizon":   horizon,
	"log":       logRecords,
	"objects":   objects,
}

// Run answers the question of that name from an engine, as a recorder's socket would.
func Run(ctx context.Context, e *query.Engine, name string, values url.Values, progress query.Progress, emit Emit) error {
	p := &params{values: values}
	q := questions[name]
	if q == nil {
		return p.bad("there is no question %q", name)
	}
	return q(ctx, e, p, progress, emit)
}
