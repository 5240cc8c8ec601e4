package mooncaketest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/event"
)

// Facts of the real publisher.
const (
	BatchEvents          = 64     // the most events in one message
	DefaultQueueCapacity = 65_536 // events
	DefaultSendHWM       = 10_000 // messages (ZMQ.md)
	DefaultModelName     = "deepseek-v3"
	DefaultBlockSize     = 64 // tokens
	DefaultBackendID     = "mooncake-master-0"
)

// Options configures a Publisher. The zero value of every field is the real publisher's default, but for Bind.
type Options struct {
	// Bind is a ZMQ endpoint, such as tcp://127.0.0.1:5557. Empty means tcp://127.0.0.1:*, a free port:
	// Publisher.Endpoint tells which.
	Bind string

	// QueueCapacity is the most events that wait for the sender; 0 means DefaultQueueCapacity. More are dropped, the
	// oldest first. Full, the queue needs about 90 bytes an event and the objects' keys.
	QueueCapacity int

	// SendHWM is the socket's send high-water mark in messages, for each subscriber; 0 means DefaultSendHWM. Beyond it
	// the socket drops silently.
	SendHWM int

	// Linger is how long Close waits for messages that a connected subscriber has not yet taken; 0 means one second.
	Linger time.Duration

	// QueueDelay is how long an event rests in the queue before the sender takes it, and up to BatchEvents-1 younger ones
	// with it: what the store holds is ahead of the stream by as much. 0 means that the sender takes what is there. Close
	// does not wait for it. The delay is faithful to R9: a batch of fewer than BatchEvents still leaves the queue empty.
	QueueDelay time.Duration

	// StatusLag is for how long after it was sent a batch is missing in the counters that a poll sees, unless the next
	// one is sent before: the real sender counts a batch after it has sent it and before it takes the next, so that a
	// poll is behind by one batch at most. 0 means only as long as it takes.
	StatusLag time.Duration

	NoLegacy    bool // leave out the legacy fields: kv_events_emit_legacy_compat=false
	NoObjectKey bool // suppress stored and removed: kv_events_emit_object_key=false

	ModelName string // empty: DefaultModelName
	BlockSize int    // tokens; 0: DefaultBlockSize; negative: nil on the wire
	BackendID string // empty: DefaultBackendID
	Salt      string // additional_salt; empty: nil on the wire
	LoraName  string // empty: nil on the wire
	DPRank    uint32

	// Now is the publisher's clock; nil means time.Now. The sender reads it once a batch; delays and lags are measured on
	// it. Several goroutines call it, some while they hold a lock: it must not call the publisher.
	Now func() time.Time

	// TellsSubscribed makes Publisher.Subscribed know: by an XPUB, which sends as a PUB does, and hears of its subscribers.
	TellsSubscribed bool

	// OnTaken, if set, is called by the sender when it has taken a batch of n events from the queue and has not given
	// it a number yet. It may block: whatever is dropped meanwhile reserves smaller numbers (R4).
	OnTaken func(n int)
}

func (o *Options) setDefaults() {
	setDefault(&o.Bind, "tcp://127.0.0.1:*")
	setDefault(&o.QueueCapacity, DefaultQueueCapacity)
	setDefault(&o.SendHWM, DefaultSendHWM)
	setDefault(&o.Linger, time.Second)
	setDefault(&o.ModelName, DefaultModelName)
	setDefault(&o.BlockSize, DefaultBlockSize)
	setDefault(&o.BackendID, DefaultBackendID)
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// Publisher is one publisher process: its queue, its numbers and its socket. Sequence numbers and event ids start at 1.
// All methods may be called by several goroutines at once.
type Publisher struct {
	o        Options
	queue    *queue
	skipped  atomic.Uint64
	losing   atomic.Bool
	context  *zmq.Context
	using    sync.Mutex  // of the socket
	socket   *zmq.Socket // the sender's, once it runs, but for Subscribed; nil when it is closed
	heard    bool        // under using: there is a subscriber
	endpoint string
	ended    chan struct{} // closed when socket and context are
	err      error         // of the sender; read it after ended
	lingers  atomic.Bool
}

// Start binds the socket and starts the sender. While the port is still taken, as for a moment after a process has
// died, it tries again for three seconds.
func Start(o Options) (*Publisher, error) {
	o.setDefaults()
	if o.QueueCapacity < 1 || o.SendHWM < 1 {
		return nil, fmt.Errorf("mooncaketest: queue capacity %d and send high-water mark %d must be positive", o.QueueCapacity, o.SendHWM)
	}
	if o.QueueDelay < 0 || o.StatusLag < 0 {
		return nil, fmt.Errorf("mooncaketest: queue delay %v and status lag %v must not be negative", o.QueueDelay, o.StatusLag)
	}
	p := &Publisher{o: o, queue: newQueue(o.QueueCapacity), ended: make(chan struct{})}
	p.queue.delay, p.queue.lag, p.queue.now = o.QueueDelay, o.StatusLag, o.Now
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("mooncaketest: bind %s: %w", o.Bind, err)
	}
	go p.send()
	return p, nil
}

func (p *Publisher) open() (err error) {
	if p.context, err = zmq.NewContext(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if p.socket != nil {
				p.socket.Close()
			}
			p.context.Term()
		}
	}()
	kind := zmq.PUB
	if p.o.TellsSubscribed {
		kind = zmq.XPUB
	}
	if p.socket, err = p.context.NewSocket(kind); err != nil {
		return err
	}
	if err = p.socket.SetSndhwm(p.o.SendHWM); err != nil {
		return err
	}
	if err = p.socket.SetLinger(0); err != nil {
		return err
	}
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err = p.socket.Bind(p.o.Bind)
		if !errors.Is(err, zmq.Errno(syscall.EADDRINUSE)) || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return err
	}
	p.endpoint, err = p.socket.GetLastEndpoint()
	return err
}

// Endpoint is the address the socket is bound to, with the port that was chosen.
func (p *Publisher) Endpoint() string { return p.endpoint }

// BackendID is the backend_id of the publisher's events.
func (p *Publisher) BackendID() string { return p.o.BackendID }

// Enqueue puts changes into the queue, side by side. It never waits: where the queue is full, the oldest are dropped.
// After Close or Kill it does nothing.
func (p *Publisher) Enqueue(changes ...Change) {
	if !p.o.NoObjectKey {
		p.queue.push(changes)
		return
	}
	for i := range changes {
		if changes[i].Type == event.Cleared {
			p.queue.push(changes[i : i+1])
		} else {
			p.skipped.Add(1)
		}
	}
}

// Subscribed reports whether a subscriber misses nothing of what is sent from now on: its subscription has arrived, which is later than its
// connection. It needs Options.TellsSubscribed.
func (p *Publisher) Subscribed() bool {
	p.using.Lock()
	defer p.using.Unlock()
	for p.o.TellsSubscribed && p.socket != nil {
		b, err := p.socket.RecvBytes(zmq.DONTWAIT)
		if err != nil {
			break
		}
		p.heard = len(b) > 0 && b[0] == 1
	}
	return p.heard && p.socket != nil
}

// QueueLength is the number of events that wait for the sender.
func (p *Publisher) QueueLength() int { return p.queue.length() }

// Stats returns the counters. They go on being readable after the publisher has ended.
func (p *Publisher) Stats() Stats {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{q.batches, q.events, q.dropped, p.skipped.Load()}
}

// Status returns the counters as a poll of the admin API sees them, behind by StatusLag.
func (p *Publisher) Status() Stats {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	batches, events := q.shown()
	return Stats{batches, events, q.dropped, p.skipped.Load()}
}

// Hold keeps what is in the queue, and what is still to come, from being sent; with false the sender goes on. A batch
// that was already taken is sent. Close and Kill are not held up.
func (p *Publisher) Hold(on bool) { p.queue.hold(on) }

// Lose makes messages that are sent from now on get lost on the wire, for every subscriber: they are numbered and
// counted and nobody receives them, as at a send high-water mark. With false the next one arrives again.
func (p *Publisher) Lose(on bool) { p.losing.Store(on) }

// WaitIdle waits until the queue is empty and everything taken from it was handed to the socket. It returns ErrEnded if
// the publisher ends before.
func (p *Publisher) WaitIdle(ctx context.Context) error {
	ok, err := p.queue.waitRest(ctx)
	if err == nil && !ok {
		err = ErrEnded
	}
	return err
}

// rests reports what WaitIdle waits for.
func (p *Publisher) rests() bool {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return p.queue.n == 0 && p.queue.taken == 0
}

// ErrEnded: the publisher was killed, or its socket failed, with events in its queue.
var ErrEnded = errors.New("mooncaketest: the publisher has ended")

// Close ends the publisher in good order: it sends what is in the queue and gives connected subscribers Options.Linger
// to take it. It returns the error that ended the sender before, if there was one.
func (p *Publisher) Close() error {
	p.lingers.Store(true)
	p.queue.close(false)
	<-p.ended
	return p.err
}

// Kill ends the publisher as SIGKILL does: what is in the queue and in the socket's own buffers is gone, unannounced
// and uncounted. When it returns, the port is free.
func (p *Publisher) Kill() {
	p.queue.close(true)
	<-p.ended
}

// hasEnded reports whether the publisher was closed or killed, or its socket has failed.
func (p *Publisher) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// send is the sender's goroutine: the socket belongs to it.
func (p *Publisher) send() {
	defer close(p.ended)
	p.err = p.sendAll()
	p.queue.close(true)
	if p.lingers.Load() && p.err == nil {
		p.socket.SetLinger(p.o.Linger)
	}
	p.using.Lock()
	p.socket.Close()
	p.socket = nil
	p.using.Unlock()
	p.context.Term()
}

func (p *Publisher) sendAll() error {
	batch := newBatch(&p.o)
	for {
		n := p.queue.take(batch.changes[:])
		if n == 0 {
			return nil
		}
		if p.o.OnTaken != nil {
			p.o.OnTaken(n)
		}
		payload := batch.encode(n, p.o.Now().UnixMilli())
		seq := event.SeqFrame(p.queue.number())
		if !p.losing.Load() {
			if err := p.sendMessage([...][]byte{nil, seq[:], payload}); err != nil {
				return err
			}
		}
		p.queue.sent()
	}
}

func (p *Publisher) sendMessage(frames [3][]byte) error {
	p.using.Lock()
	defer p.using.Unlock()
	for i, frame := range frames {
		flags := zmq.SNDMORE
		if i == len(frames)-1 {
			flags = 0
		}
		if _, err := p.socket.SendBytes(frame, flags); err != nil {
			return fmt.Errorf("mooncaketest: send: %w", err)
		}
	}
	return nil
}
