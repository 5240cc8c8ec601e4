package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
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

// Client asks a running recorder over its socket, or whoever answers at an address. It hands lines on as they are; query/client
// decodes them.
type Client struct {
	http  http.Client
	base  url.URL
	token string
}

// SocketTransport sends requests to the unix socket at path, whatever host they name.
func SocketTransport(path string) *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &http.Transport{DialContext: dial, DisableCompression: true}
}

// NewClient returns a client of the unix socket at path.
func NewClient(path string) *Client {
	return &Client{
		http: http.Client{Transport: SocketTransport(path)},
		base: url.URL{Scheme: "http", Host: "kvjournal"},
	}
}

// NewURLClient returns a client of the service at base, as http://HOST:PORT, with a bearer token, empty: none. transport nil:
// http.DefaultTransport.
func NewURLClient(base, token string, transport http.RoundTripper) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &query.UsageError{Message: fmt.Sprintf("%q is no address of a service: write http://HOST:PORT", base)}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Client{http: http.Client{Transport: transport}, base: url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}, token: token}, nil
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

// do sends a request.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header) (*http.Response, error) {
	u := c.base
	u.Path += path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, gone(ctx, err)
	}
	return resp, nil
}

// ask sends a request and calls f with each line of the reply.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body io.Reader, f func([]byte) error) error {
	resp, err := c.do(ctx, method, path, query, body, nil)
	if err != nil {
		return err
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
	var f struct {
		failure
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return err
	}
	if f.Usage {
		return &query.UsageError{Message: f.Error}
	}
	if kind, ok := strings.CutPrefix(f.Type, problemType); ok {
		return &ProblemError{Kind: kind, Status: status, Detail: f.Error}
	}
	return errors.New(f.Error)
}

// ProblemError is an answer that is a Problem, but for ProblemUsage, which is a *query.UsageError.
type ProblemError struct {
	Kind   string // one of the Problem constants
	Status int
	Detail string
}

func (e *ProblemError) Error() string { return e.Detail }

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

// Events calls f with each event of GET /v1/log as server-sent events, from behind last on, until the stream or ctx ends. data is a line
// of log, nil where the event only tells how far everything was told. An error that the service tells is a *ProblemError; where the
// stream ends otherwise before ctx it is a *GoneError: go on with the last id.
func (c *Client) Events(ctx context.Context, values url.Values, last EventID, f func(id EventID, data []byte) error) error {
	header := http.Header{"Accept": {eventStream}}
	if last != (EventID{}) {
		header.Set("Last-Event-ID", last.String())
	}
	resp, err := c.do(ctx, http.MethodGet, "/v1/log", values, nil, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return gone(ctx, err)
		}
		return cmp.Or(failureOf(bytes.TrimSpace(b), resp.StatusCode), error(&ProblemError{Status: resp.StatusCode, Detail: resp.Status}))
	}
	return readEvents(ctx, resp.Body, f)
}

// readEvents reads server-sent events as logEvents writes them.
func readEvents(ctx context.Context, r io.Reader, f func(id EventID, data []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var id EventID
	var name string
	var data []byte
	any := false
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return gone(ctx, err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(": "))
		switch string(field) {
		case "id":
			if id, err = ParseEventID(string(value)); err != nil {
				return err
			}
			any = true
		case "event":
			name = string(value)
		case "data":
			data, any = append(data[:0], value...), true
		}
		if len(line) > 0 || !any {
			continue
		}
		if name == "error" {
			return failureOf(data, http.StatusOK)
		}
		told := data
		if len(data) == 0 {
			told = nil
		}
		if err := f(id, told); err != nil {
			return err
		}
		name, data, any = "", data[:0], false
	}
}

// Health asks whether the service is ready; a *ProblemError of ProblemNotReady says why not.
func (c *Client) Health(ctx context.Context) error {
	return c.ask(ctx, http.MethodGet, "/readyz", nil, nil, func([]byte) error { return nil })
}

// Alive asks for a sign of life, and nothing else: it costs next to nothing.
func (c *Client) Alive(ctx context.Context) error {
	return c.ask(ctx, http.MethodGet, "/healthz", nil, nil, func([]byte) error { return nil })
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
