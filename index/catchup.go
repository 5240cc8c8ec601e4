package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal"
)

// CatchUp applies the journal up to its durable offset, or until ctx ends. progress, if not nil, is told the offset
// after each write.
func (x *Index) CatchUp(ctx context.Context, progress func(applied uint64)) error {
	to := x.j.Durable()
	for {
		x.writing.Lock()
		more, err := x.catchUp(ctx, to, progress)
		x.writing.Unlock()
		if err != nil || !more {
			return err
		}
	}
}

// take locks writing before the index has caught up, however far it is behind.
func (x *Index) take() {
	x.wanted.Add(1)
	defer x.wanted.Add(-1)
	x.writing.Lock()
}

// catchUp applies the journal up to an offset; more tells that somebody wanted to write before it was there. After an error nothing of what was
// not committed is remembered, so that it can be asked for again.
func (x *Index) catchUp(ctx context.Context, to uint64, progress func(applied uint64)) (more bool, err error) {
	if x.gone != nil {
		return false, x.gone
	}
	if more, err = x.applyTo(ctx, to, progress); err != nil {
		a, rerr := newApplier(x.db, x.opts)
		if rerr != nil {
			return false, errors.Join(err, rerr)
		}
		x.a.batch.Close()
		x.applyWith(a)
	}
	return more, err
}

func (x *Index) applyTo(ctx context.Context, to uint64, progress func(applied uint64)) (more bool, err error) {
	at := x.applied.Load()
	fetching, stop := context.WithCancel(ctx)
	blocks := x.fetch(fetching, at, to)
	defer func() {
		stop()
		for range blocks { // the journal may be closed once this returns
		}
	}()
	write := func(upTo uint64) (more bool, err error) {
		if err := x.commit(upTo); err != nil {
			return false, err
		}
		if progress != nil {
			progress(upTo)
		}
		return upTo < to && x.wanted.Load() > 0, nil
	}
	for f := range blocks {
		if f.err != nil {
			return false, f.err
		}
		if h := x.j.Horizon(); at < h.Offset {
			return false, fmt.Errorf("the journal was pruned up to offset %d, and the index is at %d: %w", h.Offset, at, ErrRebuild)
		}
		x.giveWay(ctx)
		for i := range f.b.Len() {
			o := f.b.First + uint64(i)
			if o <= at || o > to {
				continue
			}
			if err := x.a.record(f.b, i); err != nil {
				return false, err
			}
			if x.a.full() && i+1 < f.b.Len() {
				if more, err := write(o); more || err != nil {
					return more, err
				}
			}
		}
		at = min(f.b.Last(), to)
		x.free <- f.b
		if x.a.full() || at >= to {
			if more, err := write(at); more || err != nil {
				return more, err
			}
		}
	}
	if at > x.applied.Load() {
		if err := x.commit(at); err != nil {
			return false, err
		}
	}
	return false, ctx.Err()
}

// giveWay waits while a receiver is behind. Then no second compaction begins either: the processor is the receiver's.
func (x *Index) giveWay(ctx context.Context) {
	if x.opts.Pause == nil {
		return
	}
	begun := time.Now()
	if x.opts.Pause(ctx); time.Since(begun) > time.Millisecond {
		x.opts.deep.Store(false)
	}
}

// fetched is a block, unpacked, or why there is none.
type fetched struct {
	b   *journal.Block
	err error
}

// prefetch is how many blocks are held at once: one being applied, the others read and unpacked meanwhile.
const prefetch = 3

// fetch reads the blocks behind at, up to the one that holds to, ahead of the one being applied. A block goes back to
// x.free when it is done with. The channel is closed at the end, or when ctx ends.
func (x *Index) fetch(ctx context.Context, at, to uint64) <-chan fetched {
	x.free = make(chan *journal.Block, prefetch)
	for range prefetch {
		x.free <- nil
	}
	out := make(chan fetched, prefetch)
	free := x.free
	go func() {
		defer close(out)
		for at < to {
			var b *journal.Block
			select {
			case b = <-free:
			case <-ctx.Done():
				return
			}
			b, err := x.j.NextBlock(b, at)
			if errors.Is(err, journal.ErrNotFound) {
				return
			}
			if err == nil {
				err = b.Load()
			}
			out <- fetched{b, err} // there is room: no more than prefetch are under way
			if err != nil {
				return
			}
			at = b.Last()
		}
	}()
	return out
}

func (x *Index) commit(offset uint64) error {
	x.unflushed += x.a.events
	if err := x.a.commit(offset); err != nil {
		return err
	}
	x.applied.Store(offset)
	if x.a.bulk != nil {
		return nil // what is not whole is not kept
	}
	due := x.opts.FlushEvents
	if offset < x.j.Durable() {
		// Behind the journal, what a crash would repeat is little beside what is still to do, and larger tables cost less.
		due *= 4
	}
	if x.unflushed >= due {
		return x.startFlush()
	}
	return nil
}

func (x *Index) startFlush() error {
	x.unflushed, x.flushedAt = 0, time.Now()
	x.opts.deep.Store(x.db.Metrics().Levels[0].Sublevels >= l0Deep)
	_, err := x.db.AsyncFlush()
	return err
}

// Follow keeps the index behind the journal until ctx ends, by Options.Beat at most but where it cannot keep up. It returns ctx's error, or what
// went wrong.
func (x *Index) Follow(ctx context.Context) error {
	var begun time.Time
	for {
		wait, cancel := context.WithTimeout(ctx, x.opts.FlushEvery)
		_, err := x.j.WaitDurable(wait, x.Applied())
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := x.rest(ctx, x.opts.Beat-time.Since(begun)); err != nil {
			return err
		}
		begun = time.Now()
		if err := x.CatchUp(ctx, nil); err != nil {
			return err
		}
		if err := x.flushIfDue(); err != nil {
			return err
		}
	}
}

// rest waits for so long, or until somebody cannot.
func (x *Index) rest(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-over.C:
	case <-x.hurry:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Hurry tells Follow that a question waits for what is durable already.
func (x *Index) Hurry() {
	select {
	case x.hurry <- struct{}{}:
	default: // it was told
	}
}

func (x *Index) flushIfDue() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.gone != nil {
		return nil
	}
	if err := x.fresh.drop(); err != nil { // where nothing is applied it would hold tables that are compacted away
		return err
	}
	if x.unflushed == 0 || time.Since(x.flushedAt) < x.opts.FlushEvery {
		return nil
	}
	return x.startFlush()
}

// Flush writes everything applied into tables, so that nothing must be replayed.
func (x *Index) Flush() error {
	x.take()
	defer x.writing.Unlock()
	if x.gone != nil {
		return x.gone
	}
	x.unflushed, x.flushedAt = 0, time.Now()
	return x.db.Flush()
}
