package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// Front answers questions about a directory whoever writes to it: while nobody does it reads the directory, while a recorder runs it
// passes them on to that one's socket, and in between it says so. It implements http.Handler with what httpapi.Handler serves; rights
// are checked before it. Of a recorder that is there and does not answer it says so (passer).
//
//	at rest ──a writer claims──▶ answers under way are given up ──▶ passed on, or refused where it is no recorder
//	   ▲                                                                │
//	   └──────────────────── opened anew ◀──── the writer is gone ──────┘
type Front struct {
	dir string
	o   Options
	// recorder is asked while one runs.
	recorder passer

	opening sync.Mutex // held while the directory is opened
	mu      sync.Mutex
	rest    *restedDir // nil: it is not open
	closed  bool
	stop    context.CancelFunc
	watch   sync.WaitGroup
}

// lookAtWriters is how often it looks whether a writer claimed the directory while answers are read from it.
const lookAtWriters = 50 * time.Millisecond

// NewFront opens nothing yet.
func NewFront(dir string, o Options) *Front {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Front{dir: dir, o: o, recorder: passer{log: o.Log, patience: SignPatience}, stop: stop}
	f.watch.Go(func() { f.watchWriters(ctx) })
	return f
}

// Close gives the directory up, when what is under way has ended.
func (f *Front) Close() error {
	f.stop()
	f.watch.Wait()
	f.opening.Lock()
	defer f.opening.Unlock()
	f.mu.Lock()
	f.closed = true
	d := f.rest
	f.mu.Unlock()
	f.drop(d)
	if d == nil {
		return nil
	}
	<-d.gone
	return d.err
}

// ServeHTTP answers, or passes on to whoever can.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, err := f.open(r.Context())
	var live *LiveError
	switch {
	case err == nil:
		defer d.release()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(d.ctx, cancel)()
		d.handler.ServeHTTP(w, r.WithContext(ctx))
	case errors.As(err, &live):
		socket, serr := FindSocket(r.Context(), f.dir, 0)
		if serr != nil {
			httpapi.Unavailable(w, r, fmt.Errorf("%w; ask again when it has ended", live))
			return
		}
		f.recorder.pass(w, r, socket, live.Who)
	default:
		httpapi.Unavailable(w, r, err)
	}
}

// open returns the directory open for reading, to be released; a *LiveError where a writer has it.
func (f *Front) open(ctx context.Context) (*restedDir, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	f.mu.Lock()
	d, closed := f.rest, f.closed
	f.mu.Unlock()
	if closed {
		return nil, net.ErrClosed
	}
	openIt := OpenAtRest
	if d != nil {
		hurt := d.hurt.Load()
		if d.hold() {
			if !hurt && d.Undisturbed() == nil {
				return d, nil
			}
			d.release()
		}
		f.drop(d)
		if hurt { // alone it can be computed anew on disk
			select {
			case <-d.gone:
			case <-ctx.Done():
			}
			openIt = HealAtRest
		}
	}
	a, err := openIt(ctx, f.dir, f.o)
	if err != nil {
		return nil, err
	}
	d = newRestedDir(a)
	d.hold()
	f.mu.Lock()
	f.rest = d
	f.mu.Unlock()
	return d, nil
}

// drop gives d up: answers under way from it end, and then it is closed.
func (f *Front) drop(d *restedDir) {
	f.mu.Lock()
	if d == nil || f.rest != d {
		f.mu.Unlock()
		return
	}
	f.rest = nil
	f.mu.Unlock()
	d.cancel()
	d.release() // Front's own
}

// watchWriters gives the directory up as soon as a writer claims it, so that none waits and none is answered from what it changes.
func (f *Front) watchWriters(ctx context.Context) {
	for pause.For(ctx, lookAtWriters) == nil {
		f.mu.Lock()
		d := f.rest
		f.mu.Unlock()
		if d != nil && d.Undisturbed() != nil {
			f.drop(d)
		}
	}
}

// Try opens the directory, as the first question would: what keeps it from being read is told at once, but for a writer.
func (f *Front) Try(ctx context.Context) error {
	d, err := f.open(ctx)
	if live := (*LiveError)(nil); errors.As(err, &live) {
		return nil
	}
	if err == nil {
		d.release()
	}
	return err
}
