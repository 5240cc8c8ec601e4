package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
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
)

// Options of a Recorder.
type Options struct {
	// BufferBytes bounds what was received and is not in the journal yet. 0: DefaultBuffer. More rides out longer stalls of
	// the disk; when it is full nothing is read, and the publisher drops at its own mark.
	BufferBytes int64
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
	// Subscribe are the options of every socket; source, endpoint and logger are set by the recorder.
	Subscribe subscribe.Options
}

// Recorder receives from the sockets of its sources and appends to the journal. While it runs it is the journal's one
// appending goroutine.
type Recorder struct {
	j     *journal.Journal
	log   *slog.Logger
	buf   *subscribe.Buffer
	zctx  *zmq.Context
	feeds []*Feed
	group *journal.Group // being filled; the writer's
	after []func(error)  // to be called when it is committed; the writer's
	done  chan struct{}  // closed when the writer has ended
	subs  []*subscribe.Subscriber
	ids   []uint32
}

// New prepares a recorder of the sources, each with exactly one endpoint.
func New(j *journal.Journal, sources []journal.Source, o Options) (*Recorder, error) {
	if o.BufferBytes == 0 {
		o.BufferBytes = DefaultBuffer
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	zctx, err := zmq.NewContext()
	if err != nil {
		return nil, fmt.Errorf("starting ZeroMQ: %w", err)
	}
	r := &Recorder{j: j, log: o.Log, buf: subscribe.NewBuffer(o.BufferBytes), zctx: zctx, done: make(chan struct{})}
	for i, s := range sources {
		if err := r.add(i, s, o); err != nil {
			return nil, errors.Join(err, zctx.Term())
		}
	}
	return r, nil
}

func (r *Recorder) add(i int, s journal.Source, o Options) error {
	if len(s.Endpoints) != 1 {
		return fmt.Errorf("source %q has %d endpoints; this version records one endpoint a source", s.Name, len(s.Endpoints))
	}
	feed, err := NewFeed(r.j, s.ID)
	if err != nil {
		return err
	}
	so := o.Subscribe
	so.Source, so.Endpoint, so.Logger = i, s.Endpoints[0], o.Log.With("source", s.Name)
	sub, err := subscribe.New(r.zctx, r.buf, so)
	if err != nil {
		return fmt.Errorf("source %q: %w", s.Name, err)
	}
	r.feeds, r.subs, r.ids = append(r.feeds, feed), append(r.subs, sub), append(r.ids, s.ID)
	return nil
}

// Run records until ctx ends or the journal fails. When it returns nil, all that was received is durable.
func (r *Recorder) Run(ctx context.Context) error {
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
	var subs sync.WaitGroup
	failures := make([]error, len(r.subs))
	for i, s := range r.subs {
		subs.Go(func() {
			if err := s.Run(receiving); err != nil {
				failures[i] = fmt.Errorf("receiving from %s: %w", s.Status().Endpoint, err)
				stopReceiving()
			}
		})
	}
	// What the sockets gave is in the buffer when they return; the writer ends when it is empty.
	go func() {
		subs.Wait()
		r.buf.Close()
	}()
	err := r.write()
	close(r.done)
	stopReceiving()
	if err != nil {
		r.buf.Close() // nobody empties it any more
	}
	subs.Wait()
	if err == nil {
		err = r.finish()
	}
	return errors.Join(append([]error{err, r.zctx.Term()}, failures...)...)
}

// write moves items from the buffer into the journal until the buffer is closed and empty. One commit takes all that
// arrived during the one before: so groups are small when little comes, and large under load.
func (r *Recorder) write() error {
	touched := make([]bool, len(r.feeds))
	for {
		items, err := r.buf.Pop(context.Background(), commitBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		g := r.j.NewGroup()
		r.group = g
		clear(touched)
		for i := range items {
			it := &items[i]
			if it.Call != nil {
				it.Call()
				it.Call, touched[it.Source] = nil, true
				continue
			}
			if _, err := r.feeds[it.Source].Add(g, &it.Record, it.Slow || it.Backlog); err != nil {
				return err
			}
			touched[it.Source] = true
			it.Record = capture.Record{} // the frames can go
		}
		for i, t := range touched {
			if t {
				r.feeds[i].Save(g)
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

// Connected reports whether the source has a connection that messages are proven to come from.
func (r *Recorder) Connected(source uint32) bool {
	for i, id := range r.ids {
		if id == source {
			return r.subs[i].Status().Connected
		}
	}
	return false
}

// Status returns the state of each socket.
func (r *Recorder) Status() []subscribe.Status {
	out := make([]subscribe.Status, len(r.subs))
	for i, s := range r.subs {
		out[i] = s.Status()
	}
	return out
}

// Buffered is how many bytes wait for the journal, and how many may at most.
func (r *Recorder) Buffered() (bytes, most int64) { return r.buf.Bytes(), r.buf.Max() }
