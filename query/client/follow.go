package client

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// EventID is where a reader of the log stands. Keep the last one, and nothing is missed and nothing seen twice.
type EventID = httpapi.EventID

// ParseEventID reads what EventID.String wrote.
func ParseEventID(s string) (EventID, error) { return httpapi.ParseEventID(s) }

// How long Follow waits before it connects again: twice as long each time that nothing came, and up to half of it more or less, so that
// many do not come at once.
const (
	retryLeast = 100 * time.Millisecond
	retryMost  = 10 * time.Second
)

// Follow calls f with each line of the log that p asks for, from behind last on (the zero EventID: from what p says), and goes on with
// what is recorded, over connections that break and services that restart, until ctx ends or f returns an error, which it returns. line
// is nil where nothing of what was recorded up to id was asked for: keep the id all the same. What the service itself refuses is
// returned too, as a *query.UsageError or *httpapi.ProblemError, but for ProblemBusy, ProblemUnavailable and ProblemNotReady.
func (c *Client) Follow(ctx context.Context, p Params, last EventID, f func(id EventID, line *query.LogLine) error) error {
	values := p.values()
	wait := retryLeast
	for {
		var own error
		err := c.lines.Events(ctx, values, last, func(id EventID, data []byte) error {
			wait = retryLeast
			var line *query.LogLine
			if data != nil {
				line = new(query.LogLine)
				if own = json.Unmarshal(data, line); own != nil {
					return own
				}
			}
			if own = f(id, line); own != nil {
				return own
			}
			last = id
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if own != nil || !passing(err) {
			return err
		}
		if err := pause.For(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
		wait = min(2*wait, retryMost)
	}
}

// passing reports whether an error may be gone when it is tried again.
func passing(err error) bool {
	var gone *httpapi.GoneError
	var problem *httpapi.ProblemError
	switch {
	case errors.As(err, &gone):
		return true
	case errors.As(err, &problem):
		return problem.Kind == httpapi.ProblemBusy || problem.Kind == httpapi.ProblemUnavailable || problem.Kind == httpapi.ProblemNotReady
	}
	return false
}
