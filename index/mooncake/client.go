package mooncake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Kind is one of the five calls.
type Kind uint8

const (
	KindStatus Kind = iota
	KindHealth
	KindKeys
	KindBatch
	KindSegments
	kindCount
)

// paths are all that is ever asked for.
var paths = [kindCount]string{
	KindStatus:   "/kv_events/status",
	KindHealth:   "/health",
	KindKeys:     "/get_all_keys",
	KindBatch:    "/batch_query_keys",
	KindSegments: "/get_segments_detail",
}

func (k Kind) String() string {
	return [...]string{KindStatus: "status", KindHealth: "health", KindKeys: "keys", KindBatch: "batch", KindSegments: "segments"}[k]
}

// Timing says when a call was on its way, by the Client's clock. What the reply tells was true at some moment in between.
type Timing struct {
	Sent time.Time     // right before sending, after all waiting
	Took time.Duration // until the last byte
}

// Client asks one master. Its methods may be called by several goroutines; the calls take turns, in the order in which
// they came, except those that wait for their backoff.
//
// A call waits for its turn, its kind's backoff and the master's rest as long as ctx allows. If ctx ends meanwhile, nothing was sent, and
// the error is ctx's.
type Client struct {
	options   Options
	urls      [kindCount]*url.URL
	transport *http.Transport
	slot      chan struct{} // holds a value while a call is under way

	mu    sync.Mutex
	pacer pacer
	nudge chan struct{} // closed by ResetBackoff, then replaced
}

// New returns a client; it sends nothing yet.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("master's admin client: %w", err)
	}
	base, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, slot: make(chan struct{}, 1), nudge: make(chan struct{}), pacer: pacer{factor: o.PauseFactor}}
	if c.transport, err = newTransport(&c.options); err != nil {
		return nil, fmt.Errorf("master's admin client: %w", err)
	}
	for k, path := range paths {
		c.urls[k] = base.JoinPath(path)
	}
	return c, nil
}

// URL is the address that was given.
func (c *Client) URL() string { return c.options.URL }

// Close closes the kept connection. It does not end a call; ctx does.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// ResetBackoff lets the next calls come without the wait for earlier failures, also those that wait now: for a caller that
// knows more, such as that the publisher's socket is connected again. The pause for the master's rest stays.
func (c *Client) ResetBackoff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pacer.forget()
	close(c.nudge)
	c.nudge = make(chan struct{})
}

// call makes one request when it is due. read gets the body of a reply with status 200 and returns nil when it has
// understood all of it. keys is the number of keys asked for, for people.
func (c *Client) call(ctx context.Context, kind Kind, query string, keys int, read func(*reply) error) (Timing, error) {
	came := c.options.Clock.Now()
	if err := c.enter(ctx, kind); err != nil {
		return Timing{}, err
	}
	defer func() { <-c.slot }()

	sent := c.options.Clock.Now()
	if c.options.OnSend != nil {
		c.options.OnSend(kind, sent)
	}
	bytes, ended, err := c.exchange(ctx, kind, query, keys, read)
	t := Timing{Sent: sent, Took: ended.Sub(sent)}

	c.mu.Lock()
	c.pacer.done(kind, ended, t.Took, outcomeOf(ctx, err), err, c.options.Random())
	c.mu.Unlock()
	if c.options.OnCall != nil {
		c.options.OnCall(Call{Kind: kind, Sent: sent, Waited: sent.Sub(came), Took: t.Took, Bytes: bytes, Keys: keys, Err: err})
	}
	if caller := (callerError{}); errors.As(err, &caller) {
		err = caller.error
	}
	return t, err
}

// outcomeOf says what the error of a call means for the next ones.
func outcomeOf(ctx context.Context, err error) outcome {
	var (
		caller  callerError
		isOff   *StandbyError
		broken  *BrokenReplyError
		nowhere *UnreachableError
	)
	switch {
	case err == nil:
		return answered
	case errors.As(err, &caller) || ctx.Err() != nil:
		return neutral
	case errors.As(err, &isOff):
		return standby
	case errors.As(err, &broken) && broken.refused:
		return neutral
	case errors.As(err, &nowhere):
		return unreachable
	default:
		return failed
	}
}

// enter waits until a call of this kind may be sent, and takes the slot.
func (c *Client) enter(ctx context.Context, kind Kind) error {
	var last error // the failure that is waited for
	backoff := func(now time.Time) (d time.Duration) {
		d, last = c.pacer.backoff(kind, now)
		return d
	}
	gaveUp := func() error {
		if last != nil {
			return fmt.Errorf("GET %s: not asked again: %w while waiting after: %w", c.urls[kind], ctx.Err(), last)
		}
		return fmt.Errorf("GET %s: not asked: %w while waiting for its turn", c.urls[kind], ctx.Err())
	}
	for {
		// Outside of the slot: calls of other kinds go ahead.
		if !c.sleep(ctx, backoff) {
			return gaveUp()
		}
		select {
		case c.slot <- struct{}{}:
		case <-ctx.Done():
			return gaveUp()
		}
		// The call that had the slot may have been of this kind, and failed.
		if c.due(backoff) <= 0 {
			break
		}
		<-c.slot
	}
	if !c.sleep(ctx, c.pacer.pause) {
		<-c.slot
		return gaveUp()
	}
	return nil
}

// due evaluates wait at this moment.
func (c *Client) due(wait func(time.Time) time.Duration) time.Duration {
	now := c.options.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return wait(now)
}

// sleep returns when wait is 0, or false when ctx ended first.
func (c *Client) sleep(ctx context.Context, wait func(time.Time) time.Duration) bool {
	for {
		c.mu.Lock()
		nudge := c.nudge
		c.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		d := c.due(wait)
		if d <= 0 {
			return true
		}
		timer, stop := c.options.Clock.Timer(d)
		select {
		case <-timer:
		case <-nudge:
		case <-ctx.Done():
		}
		stop()
	}
}
