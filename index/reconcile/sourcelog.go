package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// SourceLog is the Log of a source that a recorder records.
type SourceLog struct {
	Recorder *recorder.Recorder
	Source   uint32
	// Index is the open index; an error where there is none.
	Index func() (*index.Index, error)
	// From is the admin URL, for the records of polls; nil: not told.
	From func() string
}

// do has the writer call f with the source's feed, and returns the standing behind what it added.
func (l *SourceLog) do(ctx context.Context, f func(*recorder.Feed, *journal.Group) error) (recorder.Standing, error) {
	// Where ctx ends first, f may still be running: nothing that it writes is read then.
	var s recorder.Standing
	err := l.Recorder.Do(ctx, l.Source, func(feed *recorder.Feed, g *journal.Group) error {
		if f != nil {
			if err := f(feed, g); err != nil {
				return err
			}
		}
		s = feed.Standing()
		return nil
	})
	if errors.Is(err, recorder.ErrPaused) {
		err = ErrDisconnected
	}
	if err != nil {
		return recorder.Standing{}, err
	}
	return s, nil
}

// Stand implements Log.
func (l *SourceLog) Stand(ctx context.Context) (recorder.Standing, error) { return l.do(ctx, nil) }

// Begin implements Log.
func (l *SourceLog) Begin(ctx context.Context, b *reading.Begun) (recorder.Standing, error) {
	s, err := l.do(ctx, func(f *recorder.Feed, g *journal.Group) error {
		if now := f.Standing(); !now.Connected {
			return ErrDisconnected
		}
		_, err := f.Fact(g, journal.ReconciliationBegun, time.Now().UnixNano(), continuity.Verdict{}, b)
		return err
	})
	if err != nil {
		return s, err
	}
	return s, waitIndexed(ctx, l.Index, s.Offset)
}

// Await implements Log.
func (l *SourceLog) Await(ctx context.Context, n uint64, from recorder.Standing, d time.Duration) (recorder.Standing, bool, error) {
	var ends <-chan recorder.Standing
	now, err := l.do(ctx, func(f *recorder.Feed, _ *journal.Group) error {
		if now := f.Standing(); from.Unbroken(&now) {
			ends = f.Watch(n, from)
		}
		return nil
	})
	if err != nil || ends == nil {
		return now, err == nil, err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case s := <-ends:
		return s, true, nil
	case <-t.C:
	case <-ctx.Done():
		return recorder.Standing{}, false, ctx.Err()
	}
	if _, err := l.do(ctx, func(f *recorder.Feed, _ *journal.Group) error {
		f.Unwatch()
		return nil
	}); err != nil {
		return recorder.Standing{}, false, err
	}
	select {
	case s := <-ends:
		return s, true, nil
	default:
		return recorder.Standing{}, false, nil
	}
}

var errMoved = errors.New("a record came in between")

// Settled implements Log.
func (l *SourceLog) Settled(ctx context.Context, since recorder.Standing, poll, before *mooncake.Status) (recorder.Standing, bool, error) {
	s, err := l.do(ctx, func(f *recorder.Feed, g *journal.Group) error {
		if now := f.Standing(); now.Offset != since.Offset {
			return errMoved
		}
		return AppendPoll(f, g, l.from(), poll, before)
	})
	if errors.Is(err, errMoved) {
		return s, false, nil
	}
	return s, err == nil, err
}

func (l *SourceLog) from() string {
	if l.From == nil {
		return ""
	}
	return l.From()
}

// AppendPoll appends the second of two equal polls, which is e of a reading without traffic.
func AppendPoll(f *recorder.Feed, g *journal.Group, from string, poll, before *mooncake.Status) error {
	_, err := f.Fact(g, journal.PublisherStatus, time.Now().UnixNano(), continuity.Verdict{}, &reading.Status{From: from, Counters: counters(poll), Before: counters(before)})
	return err
}

func counters(s *mooncake.Status) *reading.Counters {
	return &reading.Counters{Batches: s.PublishedBatches, Events: s.PublishedEvents, Dropped: s.DroppedEvents, Polled: s.Sent.UnixMilli()}
}

// End implements Log.
func (l *SourceLog) End(ctx context.Context, h recorder.Standing, parts [][]byte, e *reading.Ended) (uint64, error) {
	var offset uint64
	_, err := l.do(ctx, func(f *recorder.Feed, g *journal.Group) (err error) {
		now := f.Standing()
		if err := mayGoOn(&h, &now, e.Scopes[0].Backend); err != nil {
			return err
		}
		offset, err = f.End(g, time.Now().UnixNano(), parts, e)
		return err
	})
	if err != nil {
		return 0, err
	}
	return offset, nil
}

// waitIndexed waits until an offset is indexed.
func waitIndexed(ctx context.Context, open func() (*index.Index, error), offset uint64) error {
	for {
		x, err := open()
		if err != nil {
			return err
		}
		if x.Applied() >= offset {
			return nil
		}
		if err := pause.For(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("%w: the index is at offset %d, and %d is waited for", err, x.Applied(), offset)
		}
	}
}
