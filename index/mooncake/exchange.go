package mooncake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// excerptBytes is how much of an odd reply an error shows.
const excerptBytes = 160

// errorBody is how much is read of a reply that is no 200, in bytes; a master's are below 100.
const errorBody = 16 << 10

// standbyCode is the error_code of a master whose service plane is not active.
const standbyCode = "-1011"

// reply is a response and its body, which is counted and bounded.
type reply struct {
	*http.Response
	max  int64
	n    int64
	head []byte // the first bytes
	keep int    // how many those may be
	err  error  // that reading gave, other than io.EOF

	heard func() // called when bytes came; nil: nobody waits for them
	clock Clock
	ended time.Time // when whole had the last byte; zero where it was not called
}

// whole reads the body to its end. From then on the call is over for the master: what is made of the reply takes time of its rest.
func (r *reply) whole() (*bytes.Reader, error) {
	body := bytes.NewBuffer(make([]byte, 0, max(bytes.MinRead, min(r.ContentLength, r.max)+bytes.MinRead)))
	if _, err := body.ReadFrom(r); err != nil {
		return nil, err
	}
	r.ended = r.clock.Now()
	return bytes.NewReader(body.Bytes()), nil
}

// errTooLong: a body is longer than its limit.
var errTooLong = errors.New("reply too long")

// Read reads the body. Its end is io.EOF only if all of it came: net/http compares with Content-Length or the last chunk.
func (r *reply) Read(p []byte) (int, error) {
	if r.n > r.max {
		r.err = errTooLong
		return 0, r.err
	}
	if room := r.max - r.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := r.Body.Read(p)
	r.n += int64(n)
	if n > 0 && r.heard != nil {
		r.heard()
	}
	if room := r.keep - len(r.head); room > 0 {
		r.head = append(r.head, p[:min(n, room)]...)
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// address is what errors call the request.
func (c *Client) address(kind Kind, keys int) string {
	if keys > 0 {
		return fmt.Sprintf("%s (%d keys)", c.urls[kind], keys)
	}
	return c.urls[kind].String()
}

// exchange sends one request and has its reply read. It returns how many bytes of body were read, and when the last of them came.
func (c *Client) exchange(caller context.Context, kind Kind, query string, keys int, read func(*reply) error) (int64, time.Time, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(caller, c.options.Timeouts.of(kind))
	defer cancel()
	var heard func()
	if kind == KindKeys {
		var done func()
		ctx, heard, done = endIfSilent(ctx, c.options.Timeouts.Silence)
		defer done()
	}

	u := *c.urls[kind]
	u.RawQuery = query
	req := (&http.Request{Method: http.MethodGet, URL: &u, Host: u.Host, Header: http.Header{
		"User-Agent":    {"kvjournal"},
		"Cache-Control": {"no-cache, no-store"}, // for what may stand in front of the master
	}}).WithContext(ctx)
	if c.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	// Not http.Client: it would follow redirects, and its errors print the query.
	resp, err := c.transport.RoundTrip(req)
	r := &reply{Response: resp, max: c.options.MaxReply, keep: excerptBytes + len(c.options.Token), heard: heard, clock: c.options.Clock}
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if kind == KindKeys {
				r.max = c.options.MaxListing
			}
			err = c.understand(r, read)
		} else {
			err = c.refusal(r, kind, keys)
		}
	}
	if r.ended.IsZero() {
		r.ended = c.options.Clock.Now()
	}
	return r.n, r.ended, c.explain(caller, ctx, err, r, c.address(kind, keys), time.Since(began))
}

// errSilent: nothing came for Timeouts.Silence.
var errSilent = errors.New("nothing came")

// endIfSilent returns a context that ends, with errSilent as its cause, when heard was not called for as long as patience. A listing may take
// minutes, and one that hangs should not be waited for as long.
func endIfSilent(parent context.Context, patience time.Duration) (ctx context.Context, heard, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	t := time.AfterFunc(patience, func() { cancel(errSilent) })
	return ctx, func() { t.Reset(patience) }, func() {
		t.Stop()
		cancel(nil)
	}
}

// understand has the body of a 200 read, and checks that nothing is left of it.
func (c *Client) understand(r *reply, read func(*reply) error) error {
	if r.ContentLength > r.max {
		return errTooLong
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return broken("the body is compressed (%q), which was not asked for", coding)
	}
	if err := read(r); err != nil {
		return err
	}
	if r.ContentLength >= 0 && r.n != r.ContentLength {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// refusal makes an error of a reply with another status than 200.
func (c *Client) refusal(r *reply, kind Kind, keys int) error {
	r.max = errorBody
	body, err := io.ReadAll(r)
	if err != nil && !errors.Is(err, errTooLong) && r.n == 0 {
		return err
	}
	var f failure
	isJSON := json.Unmarshal(body, &f) == nil
	if isJSON && f.standby() {
		return &StandbyError{Message: f.words()}
	}
	status := r.StatusCode
	e := broken("%s", http.StatusText(status))
	if isJSON && f.words() != "" {
		e.What = fmt.Sprintf("%q", f.words())
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &DeniedError{Status: status, Sent: c.options.Token != ""}
	case status/100 == 3:
		e.What = "a redirect, which is not followed"
		if to, err := r.Location(); err == nil {
			e.What = fmt.Sprintf("a redirect to %s://%s%s, which is not followed", to.Scheme, to.Host, to.EscapedPath())
		}
		e.Next = "give the address of the master itself"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Next = "see whether this is the admin port (9003 by default), and the master new enough to know this call"
	case status == http.StatusTooManyRequests:
		e.Next = "something in front of the master limits the rate; raise the pause factor"
	case status == http.StatusRequestURITooLong || status == http.StatusRequestHeaderFieldsTooLarge:
		e.Next = "something in front of the master limits the request line; ask for fewer keys a call"
	}
	if kind == KindBatch {
		switch status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnprocessableEntity,
			http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable:
			e.refused = keys > 0
		}
	}
	return e
}

// explain makes of what went wrong an error that says where, what and what next. caller is the context that the caller gave, ctx the
// one with the timeout of the call.
func (c *Client) explain(caller, ctx context.Context, err error, r *reply, address string, took time.Duration) error {
	var (
		own     callerError
		standby *StandbyError
		denied  *DeniedError
		odd     *BrokenReplyError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.As(err, &standby):
		standby.URL, standby.Message = address, c.clean(standby.Message)
		return standby
	case errors.As(err, &denied):
		denied.URL = address
		return denied
	case errors.As(err, &odd): // understood as such before any timeout
	case errors.Is(caller.Err(), context.Canceled):
		return fmt.Errorf("GET %s: given up: %w", address, caller.Err())
	case ctx.Err() != nil:
		return &TimeoutError{URL: address, After: took, Bytes: r.n, Silent: errors.Is(context.Cause(ctx), errSilent), Err: context.DeadlineExceeded}
	case errors.Is(err, errTooLong):
		odd = broken("more than %d bytes", r.max)
		odd.Next = "if the master really has so much to tell, raise the limit"
	case r.Response == nil:
		return c.noReply(err, address)
	case r.err != nil || errors.Is(err, io.ErrUnexpectedEOF):
		odd = broken("cut after %d bytes", r.n)
		if r.ContentLength > 0 {
			odd.What = fmt.Sprintf("cut after %d of %d bytes", r.n, r.ContentLength)
		}
		if r.err != nil && !errors.Is(r.err, io.ErrUnexpectedEOF) {
			odd.What += ": " + shorten(r.err).Error()
		}
		switch {
		case r.err == nil && r.n == 0:
			odd.What = "an empty body"
		case r.err == nil:
			odd.What = fmt.Sprintf("it ends in the middle, though all its %d bytes came", r.n)
		}
		odd.Cut, odd.Next = true, "nothing of it was used; ask again"
	default:
		odd = broken("%s", jsonTrouble(err))
	}
	odd.URL, odd.What = address, c.clean(odd.What)
	if r.Response != nil {
		odd.Status = r.StatusCode
	}
	if !odd.Cut && odd.Excerpt == "" {
		odd.Excerpt = c.excerpt(r.head)
	}
	if odd.Next == "" {
		odd.Next = "see what answers at this address"
		if strings.HasPrefix(strings.TrimSpace(odd.Excerpt), "<") {
			odd.Next += ": this is a web page"
		}
	}
	return odd
}

// noReply sorts the errors of net/http that come instead of a response.
func (c *Client) noReply(err error, address string) error {
	var (
		record    tls.RecordHeaderError
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		cert      *tls.CertificateVerificationError
	)
	next := "see whether the master runs and this is its admin port (9003 by default)"
	switch text := err.Error(); {
	case strings.Contains(text, "HTTP/1.x transport connection broken") || strings.Contains(text, "response headers exceeded"):
		// Bytes came that are no HTTP response; the message quotes them.
		odd := broken("not HTTP: %s", c.clean(shorten(err).Error()))
		odd.URL, odd.Next = address, "see what listens there: a publisher's socket (5557 by default) is not the admin port (9003)"
		odd.Cut = errors.Is(err, io.ErrUnexpectedEOF)
		return odd
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		next = "it speaks http, not https"
	case errors.As(err, &dns):
		next = "check the host's name"
	case errors.As(err, &authority):
		next = "give the CA that signed the server's certificate"
	case errors.As(err, &hostname):
		next = "give the name that the server's certificate is for"
	case errors.As(err, &cert):
		next = "check the server's certificate"
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the connection was closed without a reply: %w", err)
	}
	return &UnreachableError{URL: address, Err: shorten(err), Next: next}
}

// shorten leaves out net/http's own words around an error.
func shorten(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "net/http: HTTP/1.x") {
		return inner
	}
	return err
}

// excerpt is the beginning of a body, for an error; nothing if it repeats the token.
func (c *Client) excerpt(head []byte) string {
	if c.options.Token != "" && bytes.Contains(head, []byte(c.options.Token)) {
		return ""
	}
	if len(head) > excerptBytes {
		return string(head[:excerptBytes]) + "..."
	}
	return string(head)
}

// clean leaves words out that repeat the token.
func (c *Client) clean(words string) string {
	if c.options.Token != "" {
		words = strings.ReplaceAll(words, c.options.Token, "***")
	}
	if len(words) > 2*excerptBytes {
		words = words[:2*excerptBytes] + "..."
	}
	return words
}
