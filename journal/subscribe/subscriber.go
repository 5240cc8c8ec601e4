package subscribe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/capture"
)

const (
	// idleWait bounds the wait for a message, and so how late the end of the context is noticed.
	idleWait = 100 * time.Millisecond
	// stallTick is the time between two looks at the sockets while the Buffer is full.
	stallTick = 20 * time.Millisecond
	// stallTellEvery bounds how often the log tells of a full Buffer: under overload it is full many times a second.
	stallTellEvery = 10 * time.Second
	// backlogMessages bounds Item.Backlog: what a publisher queues (10,000), our receive mark (256) and what the
	// kernel's buffers hold at both ends (about 10 MB: 20,000 messages of 500 B), doubled.
	backlogMessages = 1 << 16
)

// Subscriber moves the messages of one endpoint, and the facts of its connection, into a Buffer.
type Subscriber struct {
	o    Options
	zctx *zmq.Context
	buf  *Buffer
	status

	giveUp atomic.Pointer[error] // why the connection is to be broken

	// The rest belongs to Run.
	running     atomic.Bool
	sock        *socket
	window      window
	peer        peer
	disconnects uint64
	events      []zmq.Event
	transitions []transition
	kinds       []capture.Kind
	pending     []capture.Kind // drained while a message waited for space: they stand behind it
	slow        bool
	backlog     int
	largest     int64     // message, as libzmq holds it, bytes
	stallTold   time.Time // when the log last told of a full Buffer
}

// New checks the options. Nothing is opened before Run. The context stays its owner's: he terminates it after Run has
// returned. One I/O thread of it carries several subscribers, but a name lookup by one of them holds up the others.
func New(zctx *zmq.Context, buf *Buffer, o Options) (*Subscriber, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	if major, minor, patch := zmq.Version(); major < 4 || major == 4 && minor < 3 {
		return nil, fmt.Errorf("libzmq %d.%d.%d reports no handshakes: want 4.3 or later", major, minor, patch)
	}
	s := &Subscriber{o: o, zctx: zctx, buf: buf, peer: peer{
		interval: o.ReconnectInterval, backoffMax: o.BackoffMax, maxMessageSize: o.MaxMessageSize,
	}}
	s.status.endpoint, s.status.source = o.Endpoint, o.Source
	s.status.set(connection{since: time.Now(), windowOpen: true})
	return s, nil
}

// Run receives until ctx is done. When it returns, every message it took from the socket is in the Buffer (beyond its bound,
// if it was full), and its sockets are closed; what libzmq still held is lost, as if it had never come. It may be called once.
//
// Errors: nil if ctx ended it; ErrBufferClosed; or libzmq's (no sockets left, context terminated), after
// which no more messages of this endpoint will come.
func (s *Subscriber) Run(ctx context.Context) (err error) {
	if s.running.Swap(true) {
		return errors.New("subscriber runs already")
	}
	defer func() {
		if s.sock != nil {
			s.sock.close()
		}
		if err != nil {
			s.peer.trouble = err.Error()
		}
		s.peer.stands = false
		s.publish(time.Now())
	}()
	if s.sock, err = openSocket(s.zctx, &s.o, s.largest); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := s.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn is one turn of the loop: receive, then drain the monitor, then judge. The order is the proof; see doc.go.
func (s *Subscriber) turn(ctx context.Context) error {
	frames, err := s.sock.receive(s.o.MaxMessageSize)
	var refused *refusal
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("receive from %s: %w", s.o.Endpoint, err)
	}
	now := time.Now()
	got := empty
	if frames != nil || refused != nil {
		got = message
	}
	s.kinds = s.kinds[:0]
	if err := s.judge(&s.kinds, got, now); err != nil {
		return err
	}
	for _, kind := range s.kinds {
		if err := s.push(ctx, capture.Record{Kind: kind, Received: now.UnixNano()}); err != nil {
			return err
		}
	}
	if why := s.giveUp.Swap(nil); refused == nil && why != nil {
		err = *why
	}
	if frames != nil {
		s.peer.messageReceived()
		s.status.lastMessage.Store(now.UnixNano())
		s.largest = max(s.largest, s.status.count(frames))
		if err := s.push(ctx, capture.Record{Kind: capture.Message, Received: now.UnixNano(), Frames: frames}); err != nil {
			return err
		}
	}
	for len(s.pending) > 0 {
		kind := s.pending[0]
		s.pending = s.pending[1:]
		if err := s.push(ctx, capture.Record{Kind: kind, Received: time.Now().UnixNano()}); err != nil {
			return err
		}
	}
	if err != nil {
		return s.refuse(ctx, now, err)
	}
	if got == message || s.window.phase == reconnected {
		return nil // the next attempt comes at once
	}
	return s.idle(ctx, now)
}

// GiveUp breaks the connection, if one stands, for the reason given, and makes a new one: what libzmq holds of the old one is lost, as if it
// had never come. It may be called from any goroutine.
func (s *Subscriber) GiveUp(why error) { s.giveUp.Store(&why) }

// refuse breaks a connection.
func (s *Subscriber) refuse(ctx context.Context, now time.Time, why error) error {
	s.kinds = s.window.turn(s.kinds[:0], nothing, []transition{lost})
	for _, kind := range s.kinds {
		if err := s.push(ctx, capture.Record{Kind: kind, Received: now.UnixNano()}); err != nil {
			return err
		}
	}
	return s.abandon(ctx, now, why)
}

// abandon replaces a socket whose connection, if one stood, is told to have ended.
func (s *Subscriber) abandon(ctx context.Context, now time.Time, why error) error {
	if s.peer.stands {
		s.disconnects++
	}
	s.backlog = 0
	s.peer.refused(why.Error(), now)
	return s.replace(ctx, s.peer.backoff())
}

// judge drains the monitor and appends what follows from it to kinds.
func (s *Subscriber) judge(kinds *[]capture.Kind, got outcome, now time.Time) (err error) {
	if s.events, err = s.sock.drain(s.events[:0]); err != nil {
		return fmt.Errorf("connection events of %s: %w", s.o.Endpoint, err)
	}
	s.transitions = s.transitions[:0]
	for _, e := range s.events {
		switch e {
		case zmq.EVENT_HANDSHAKE_SUCCEEDED:
			s.transitions = append(s.transitions, handshaken)
		case zmq.EVENT_DISCONNECTED:
			s.transitions = append(s.transitions, lost)
			s.backlog = 0 // no queue outlives its connection
			if s.peer.stands {
				s.disconnects++
			}
		}
		s.peer.event(e, now)
	}
	before := s.window.phase
	*kinds = s.window.turn(*kinds, got, s.transitions)
	if len(s.events) > 0 || s.window.phase != before {
		s.publish(now)
	}
	return nil
}

// idle waits for something to come, on an empty socket, and replaces a socket that libzmq has given up.
func (s *Subscriber) idle(ctx context.Context, now time.Time) error {
	replace, pause, check := s.peer.verdict(now)
	if !replace {
		wait := idleWait
		if check > 0 {
			wait = min(wait, check)
		}
		came, err := s.sock.wait(wait)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", s.o.Endpoint, err)
		}
		if !came && wait == idleWait {
			s.backlog = 0
		}
		return nil
	}
	return s.replace(ctx, pause)
}

// replace opens a new socket in place of the old one, after a pause.
func (s *Subscriber) replace(ctx context.Context, pause time.Duration) error {
	s.status.replaced.Add(1)
	s.publish(time.Now())
	s.sock.close()
	s.sock = nil
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	s.peer.replaced()
	var err error
	s.sock, err = openSocket(s.zctx, &s.o, s.largest)
	return err
}

// push puts a record into the Buffer. While that is full nothing is read, but the sockets are still looked after.
func (s *Subscriber) push(ctx context.Context, rec capture.Record) error {
	item := Item{Source: s.o.Source, Record: rec, Slow: s.slow, Backlog: s.backlog > 0}
	if rec.Kind == capture.Message && s.backlog > 0 {
		s.backlog--
	}
	s.slow = false
	space, err := s.buf.offer(item, false)
	if space == nil || err != nil {
		return err
	}
	started := time.Now()
	s.status.stalls.Add(1)
	s.status.stalled.Store(true)
	defer func() {
		s.status.stalled.Store(false)
		s.status.stallTime.Add(int64(time.Since(started)))
	}()
	if started.Sub(s.stallTold) >= stallTellEvery {
		s.stallTold = started
		s.o.Logger.Warn("buffer full: not reading until the disk has caught up; the publisher drops what it cannot send meanwhile",
			"endpoint", s.o.Endpoint, "buffer_bytes", s.buf.Bytes(), "times_so_far", s.status.stalls.Load())
	}
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	force := false
	for space != nil {
		select {
		case <-space:
		case <-ctx.Done():
			force = true // what was received is never thrown away
		case <-tick.C:
			if why := s.giveUp.Swap(nil); why != nil {
				s.pending = s.window.turn(s.pending, nothing, []transition{lost})
				if err := s.abandon(ctx, time.Now(), *why); err != nil {
					return err
				}
			}
			if err := s.sock.tend(); err != nil {
				return fmt.Errorf("tend the socket of %s: %w", s.o.Endpoint, err)
			}
			if err := s.judge(&s.pending, nothing, time.Now()); err != nil {
				return err
			}
		}
		if space, err = s.buf.offer(item, force); err != nil {
			return err
		}
	}
	s.slow, s.backlog = true, backlogMessages
	return nil
}

// publish shows and logs the state of the connection, if it changed.
func (s *Subscriber) publish(now time.Time) {
	old := s.status.get()
	next := connection{
		connected: s.peer.stands, since: old.since, windowOpen: s.window.open(),
		trouble: s.peer.trouble, troubleAt: old.troubleAt, disconnects: s.disconnects,
	}
	if next.connected != old.connected {
		next.since = now
	}
	if next.trouble != old.trouble || old.connected && !next.connected {
		next.troubleAt = now
	}
	s.status.set(next)
	log := s.o.Logger.With("endpoint", s.o.Endpoint)
	if next.trouble != old.trouble && next.trouble != "" {
		log.Warn(next.trouble)
	}
	if next.connected && !old.connected {
		log.Info("connected")
	} else if !next.connected && old.connected {
		log.Info("disconnected")
	}
}
