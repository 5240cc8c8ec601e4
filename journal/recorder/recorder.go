package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/subscribe"
)

const (
	// DefaultBuffer bounds what was received and is not committed yet.
	DefaultBuffer = 64 << 20
	// commitBytes is the most that one commit takes from the buffer.
	commitBytes = 2 << 20
	// DefaultPace is the least time from one commit to the next, as long as there is less than commitBytes to commit.
	DefaultPace = 10 * time.Millisecond
)

// Options of a Recorder.
type Options struct {
	// BufferBytes bounds what was received and is not in the journal yet. 0: DefaultBuffer. More rides out longer stalls of
	// the disk; when it is full nothing is read, and the publisher drops at its own mark.
	BufferBytes int64
	// Pace is the least time between the beginnings of two commits, unless much has come: what comes within it is synced together. The first
	// message behind a silence is never held up. Shorter makes the newest messages durable sooner, at more syncs. 0: DefaultPace; negative: none.
	Pace time.Duration
	// MaxEvents bounds the events of one message that is applied: see Feed.LimitEvents. 0: event.DefaultLimit. More lets a single
	// message take more memory, about 150 B an event.
	MaxEvents int
	// NativeBytes bounds what the process may hold outside Go's heap; where it is more, a connection is broken. 0: DefaultNative;
	// negative: no bound.
	NativeBytes int64
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
	// Subscribe are the options of every socket; source, endpoint and logger are set by the recorder.
	Subscribe subscribe.Options
	// Room says when recording pauses for want of room on the disk. The zero value: never.
	Room Room
}

// Recorder receives from the sockets of its sources and appends to the journal. While it runs it is the journal's one
// appending goroutine.
type Recorder struct {
	j     *journal.Journal
	log   *slog.Logger
	o     Options
	zctx  *zmq.Context
	feeds []*Feed
	group *journal.Group // being filled; the writer's
	after []func(error)  // to be called when it is committed; the writer's
	// delivers are the numbers of the endpoints that deliver, by feed.
	delivers []*atomic.Int64
	native   int64    // bound of what is held outside Go's heap, negative: none
	ids      []uint32 // of the feeds
	lines    []line   // of the subscribers
	now      atomic.Pointer[stretch]
	tally    *Tally

	room     Room
	paused   atomic.Pointer[Pause]
	troubled string // why the room could not be told last; Run's and then watchRoom's
}

// stretch is a time without a pause: what is received in it goes through one buffer.
type stretch struct {
	buf  *subscribe.Buffer
	subs []*subscribe.Subscriber
	done chan struct{} // closed when it has ended
	why  error         // of its end, for who asks too late
}

// line says what a subscriber receives: from which endpoint of which source.
type line struct {
	feed     int
	endpoint int // journal.Source.Number
	source   string
	address  string
}

// New prepares a recorder of the sources, each with the endpoints of one master or of the masters of one HA group.
func New(j *journal.Journal, sources []journal.Source, o Options) (*Recorder, error) {
	if o.BufferBytes == 0 {
		o.BufferBytes = DefaultBuffer
	}
	if o.Pace == 0 {
		o.Pace = DefaultPace
	}
	if o.NativeBytes == 0 {
		o.NativeBytes = DefaultNative
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	zctx, err := zmq.NewContext()
	if err != nil {
		return nil, fmt.Errorf("starting ZeroMQ: %w", err)
	}
	r := &Recorder{j: j, log: o.Log, o: o, native: o.NativeBytes, zctx: zctx, room: o.Room.withDefaults(), tally: newTally()}
	for _, s := range sources {
		if err := r.add(s); err != nil {
			return nil, errors.Join(err, zctx.Term())
		}
	}
	if err := r.newStretch(); err != nil {
		return nil, errors.Join(err, zctx.Term())
	}
	return r, nil
}

func (r *Recorder) add(s journal.Source) error {
	if len(s.Endpoints) == 0 {
		return fmt.Errorf("source %q has no endpoint", s.Name)
	}
	feed, err := NewFeed(r.j, s.ID)
	if err != nil {
		return err
	}
	feed.LimitEvents(r.o.MaxEvents)
	feed.tally = r.tally
	for _, endpoint := range s.Endpoints {
		r.lines = append(r.lines, line{len(r.feeds), s.Number(endpoint), s.Name, endpoint})
	}
	r.feeds, r.ids = append(r.feeds, feed), append(r.ids, s.ID)
	r.delivers = append(r.delivers, new(atomic.Int64))
	r.delivers[len(r.delivers)-1].Store(int64(feed.Delivers()))
	return nil
}

// Discard gives up a recorder that will not be run.
func (r *Recorder) Discard() error { return r.zctx.Term() }

// newStretch makes the buffer and the sockets of the next stretch.
func (r *Recorder) newStretch() error {
	s := &stretch{buf: subscribe.NewBuffer(r.o.BufferBytes), done: make(chan struct{})}
	for i, l := range r.lines {
		so := r.o.Subscribe
		so.Source, so.Endpoint, so.Logger = i, l.address, r.log.With("source", l.source)
		sub, err := subscribe.New(r.zctx, s.buf, so)
		if err != nil {
			return fmt.Errorf("source %q: %w", l.source, err)
		}
		s.subs = append(s.subs, sub)
	}
	r.now.Store(s)
	return nil
}

// Run records until ctx ends or the journal fails, but for pauses (Options.Room). When it returns nil, all that was received is durable.
func (r *Recorder) Run(ctx context.Context) error {
	err := r.stretches(ctx)
	return errors.Join(err, r.zctx.Term())
}

func (r *Recorder) stretches(ctx context.Context) error {
	for first := true; ; first = false {
		if r.awaitRoom(ctx) != nil && !first {
			return nil
		}
		if !first {
			if err := r.newStretch(); err != nil {
				return err
			}
		}
		err := r.record(ctx, r.now.Load())
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// record records until ctx ends, the journal fails, or the room is short.
func (r *Recorder) record(ctx context.Context, s *stretch) (err error) {
	defer func() {
		if s.why = ErrStopped; err == nil && ctx.Err() == nil {
			s.why = ErrPaused
		}
		close(s.done)
	}()
	g := r.j.NewGroup()
	now := time.Now().UnixNano()
	for _, f := range r.feeds {
		f.Started(g, now)
		f.Save(g)
	}
	if err := g.Commit(); err != nil {
		return err
	}

	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	var subs, watch sync.WaitGroup
	watch.Go(func() { r.watchRoom(receiving, stopReceiving) })
	failures := make([]error, len(s.subs))
	for i, sub := range s.subs {
		subs.Go(func() {
			if err := sub.Run(receiving); err != nil {
				failures[i] = fmt.Errorf("receiving from %s: %w", sub.Status().Endpoint, err)
				stopReceiving()
			}
		})
	}
	if r.native > 0 {
		subs.Go(func() { r.watchNative(receiving, r.native) })
	}
	// What the sockets gave is in the buffer when they return; the writer ends when it is empty.
	go func() {
		subs.Wait()
		s.buf.Close()
	}()
	err = r.write(s.buf)
	stopReceiving()
	if err != nil {
		s.buf.Close() // nobody empties it any more
	}
	subs.Wait()
	watch.Wait()
	if err == nil {
		err = r.finish()
	}
	return errors.Join(append([]error{err}, failures...)...)
}

// write moves items from the buffer into the journal until the buffer is closed and empty. One commit takes all that arrived during the
// one before, and within Options.Pace: so a message that comes alone is durable at once, and groups are large under load.
func (r *Recorder) write(buf *subscribe.Buffer) error {
	var begun time.Time
	for {
		if wait := r.o.Pace - time.Since(begun); wait > 0 {
			buf.Gather(commitBytes, wait)
		}
		items, err := buf.Pop(context.Background(), commitBytes)
		begun = time.Now()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		g := r.j.NewGroup()
		r.group = g
		for i := range items {
			it := &items[i]
			if it.Call != nil {
				it.Call()
				it.Call = nil
				continue
			}
			l := r.lines[it.Source]
			if _, err := r.feeds[l.feed].AddFrom(g, l.endpoint, &it.Record, it.Slow || it.Backlog); err != nil {
				return err
			}
			it.Record = capture.Record{} // the frames can go
		}
		for i, f := range r.feeds {
			if f.moved {
				f.Save(g)
				r.delivers[i].Store(int64(f.Delivers()))
			}
		}
		err = g.Commit()
		r.committed(err)
		if err != nil {
			return err
		}
	}
}

// finish writes down that the recorder ends in good order.
func (r *Recorder) finish() error {
	g := r.j.NewGroup()
	now := time.Now().UnixNano()
	for _, f := range r.feeds {
		f.Stopped(g, now)
		f.Save(g)
	}
	if err := g.Commit(); err != nil {
		return err
	}
	return r.j.Sync()
}

// Connected reports whether the source has a connection that messages are proven to come from: to the endpoint that delivers.
func (r *Recorder) Connected(source uint32) bool {
	feed := r.indexOf(source)
	if feed < 0 {
		return false
	}
	delivers, subs := int(r.delivers[feed].Load()), r.now.Load().subs
	for i, l := range r.lines {
		if l.feed == feed && l.endpoint == delivers {
			return subs[i].Status().Connected
		}
	}
	return false
}

// Delivers is the number of the endpoint that delivers a source's messages; -1 where the source is not recorded.
func (r *Recorder) Delivers(source uint32) int {
	feed := r.indexOf(source)
	if feed < 0 {
		return -1
	}
	return int(r.delivers[feed].Load())
}

// Status returns the state of each socket.
func (r *Recorder) Status() []subscribe.Status {
	subs := r.now.Load().subs
	out := make([]subscribe.Status, len(subs))
	for i, s := range subs {
		out[i] = s.Status()
	}
	return out
}

// SourceOf is the source that the socket of that place in Status receives for.
func (r *Recorder) SourceOf(socket int) uint32 { return r.ids[r.lines[socket].feed] }

// Buffered is how many bytes wait for the journal, and how many may at most.
func (r *Recorder) Buffered() (bytes, most int64) {
	buf := r.now.Load().buf
	return buf.Bytes(), buf.Max()
}
