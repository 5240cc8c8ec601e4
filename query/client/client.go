package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// Options of a Client.
type Options struct {
	// Token is a bearer token; empty: none is sent.
	Token string
	// Transport sends the requests; nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// Client asks one service. It may be used by any number of goroutines.
type Client struct{ lines *httpapi.Client }

// New returns a client of the service at base, as http://HOST:PORT. It sends nothing.
func New(base string, o Options) (*Client, error) {
	lines, err := httpapi.NewURLClient(base, o.Token, o.Transport)
	if err != nil {
		return nil, err
	}
	return &Client{lines}, nil
}

// OnSocket returns a client of the recorder that listens on a unix socket: service.FindSocket finds that of a directory.
func OnSocket(path string) *Client { return &Client{httpapi.NewClient(path)} }

// Close gives up the connections that are kept for the next question.
func (c *Client) Close() { c.lines.Close() }

// Params are the parameters of a question, as in its path: those of /openapi.yaml. Bytes that are no text go as NAME_base64.
type Params map[string]string

func (p Params) values() url.Values {
	v := url.Values{}
	for name, value := range p {
		v.Set(name, value)
	}
	return v
}

// Ready returns nil where the service is ready, and a *httpapi.ProblemError that says why not.
func (c *Client) Ready(ctx context.Context) error { return c.lines.Health(ctx) }

// Lookup answers questions, in order, as of a moment; empty: the newest.
func (c *Client) Lookup(ctx context.Context, questions []query.Question, at string) ([]query.Answer, error) {
	out := make([]query.Answer, 0, len(questions))
	err := c.lines.Lookup(ctx, questions, at, func(line []byte) error {
		var a query.Answer
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		out = append(out, a)
		return nil
	})
	if err == nil && len(out) != len(questions) {
		err = &httpapi.GoneError{Err: errors.New("fewer answers than questions")}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Stats returns the figures of the moment.
func (c *Client) Stats(ctx context.Context) (*query.StatsOut, error) {
	var out query.StatsOut
	err := c.lines.Stats(ctx, func(line []byte) error { return json.Unmarshal(line, &out) })
	return &out, err
}

// errEnough ends an answer that whoever ranges over it does not want to the end.
var errEnough = errors.New("enough")

// each ranges over the lines of a question's answer; an error is the last.
func each[T any](ctx context.Context, c *Client, name string, p Params) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		err := c.lines.Ask(ctx, name, p.values(), nil, func(line []byte) error {
			out := new(T)
			if err := json.Unmarshal(line, out); err != nil {
				return err
			}
			if !yield(out, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// Objects ranges over the objects of a moment: object, group and what is known.
func (c *Client) Objects(ctx context.Context, p Params) iter.Seq2[*query.ObjectOut, error] {
	return each[query.ObjectOut](ctx, c, "objects", p)
}

// Gaps ranges over what was lost.
func (c *Client) Gaps(ctx context.Context, p Params) iter.Seq2[*query.GapOut, error] {
	return each[query.GapOut](ctx, c, "gaps", p)
}

// Log ranges over a span of the record. Follow goes on with what is recorded.
func (c *Client) Log(ctx context.Context, p Params) iter.Seq2[*query.LogLine, error] {
	return each[query.LogLine](ctx, c, "log", p)
}

// Why ranges over the stories behind the answers about an object, one a source and backend.
func (c *Client) Why(ctx context.Context, p Params) iter.Seq2[*query.WhyOut, error] {
	return each[query.WhyOut](ctx, c, "why", p)
}

// Activity ranges over the buckets of events over time.
func (c *Client) Activity(ctx context.Context, p Params) iter.Seq2[*query.ActivityBucket, error] {
	return each[query.ActivityBucket](ctx, c, "activity", p)
}

// Lifetimes ranges over how long objects stay, by what p says.
func (c *Client) Lifetimes(ctx context.Context, p Params) iter.Seq2[*query.LifetimesOut, error] {
	return each[query.LifetimesOut](ctx, c, "lifetimes", p)
}

// Lines ranges over the lines of any question's answer as JSON: for those whose lines are of several kinds, as history and diff.
func (c *Client) Lines(ctx context.Context, name string, p Params) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for line, err := range each[json.RawMessage](ctx, c, name, p) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(*line, nil) {
				return
			}
		}
	}
}

// Reconcile has the recorder read a source's master now, and returns what that came to; progress may be nil.
func (c *Client) Reconcile(ctx context.Context, p Params, progress func(*httpapi.ReconcileLine)) (*httpapi.ReconcileLine, error) {
	return c.lines.Reconcile(ctx, p.values(), func(l *httpapi.ReconcileLine) error {
		if progress != nil {
			progress(l)
		}
		return nil
	})
}
