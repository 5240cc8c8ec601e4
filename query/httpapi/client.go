package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/kvjournal/kvjournal/query"
)

// Client asks a running recorder over its socket.
type Client struct{ http http.Client }

// NewClient returns a client of the unix socket at path.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}}}
}

// Close gives up the connections that are kept for the next question.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// GoneError: the recorder ended before it had answered, by itself or by a signal; or it gave up telling.
type GoneError struct{ Err error }

func (e *GoneError) Error() string {
	return fmt.Sprintf("the recorder ended while it was asked, or nothing of its answer was taken for %v; ask again: %v", takePatience, e.Err)
}

func (e *GoneError) Unwrap() error { return e.Err }

// gone makes err a *GoneError, unless ctx ended the request.
func gone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &GoneError{err}
}

// ask sends a request and calls f with each line of the reply.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body io.Reader, f func([]byte) error) error {
	u := url.URL{Scheme: "http", Host: "kvjournal", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return gone(ctx, err)
	}
	defer resp.Body.Close()
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return gone(ctx, err) // what was read of a line is no answer
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if ferr := failureOf(line, resp.StatusCode); ferr != nil {
				return ferr
			}
			if err := f(line); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// failureOf returns the error that a line tells of, nil where it is an answer.
func failureOf(line []byte, status int) error {
	if !bytes.HasPrefix(line, []byte(`{"error":`)) {
		if status/100 == 2 {
			return nil
		}
		return fmt.Errorf("the recorder answered %d: %s", status, line)
	}
	var f failure
	if err := json.Unmarshal(line, &f); err != nil {
		return err
	}
	if f.Usage {
		return &query.UsageError{Message: f.Error}
	}
	return errors.New(f.Error)
}

// Lookup asks the questions and calls f with each answer's JSON, in order.
func (c *Client) Lookup(ctx context.Context, questions []query.Question, at string, f func([]byte) error) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	for i := range questions {
		if err := enc.Encode(&questions[i]); err != nil {
			return err
		}
	}
	return c.ask(ctx, http.MethodPost, "/v1/lookup", url.Values{"at": {at}}, &body, f)
}

// Ask asks one of the questions that GET /v1/NAME serves and calls f with each line's JSON; progress may be nil.
func (c *Client) Ask(ctx context.Context, name string, values url.Values, progress query.Progress, f func([]byte) error) error {
	if progress != nil {
		values = maps.Clone(values)
		values.Set("progress", "true")
	}
	method, body := http.MethodGet, io.Reader(nil)
	if long := values.Encode(); len(long) > longQuery {
		method, body, values = http.MethodPost, strings.NewReader(long), nil
	}
	return c.ask(ctx, method, "/v1/"+name, values, body, func(line []byte) error {
		if !bytes.HasPrefix(line, []byte(`{"progress":`)) {
			return f(line)
		}
		var l progressLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if progress != nil {
			progress(l.Progress.Done, l.Progress.Total)
		}
		return nil
	})
}

// Stats calls f with the figures' JSON.
func (c *Client) Stats(ctx context.Context, f func([]byte) error) error {
	return c.ask(ctx, http.MethodGet, "/v1/stats", nil, nil, f)
}

// Rebuild has the recorder compute its index anew.
func (c *Client) Rebuild(ctx context.Context, progress func(applied, total uint64)) error {
	done := false
	err := c.ask(ctx, http.MethodPost, "/v1/rebuild", nil, nil, func(line []byte) error {
		var p Progress
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		done = done || p.Done
		if !p.Done && progress != nil {
			progress(p.Applied, p.Total)
		}
		return nil
	})
	if err == nil && !done {
		err = errors.New("the recorder ended before the index was rebuilt; nothing is lost, the old index serves on")
	}
	return err
}
