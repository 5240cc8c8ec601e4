package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// Why a reading is discarded, or cannot be made.
var (
	// ErrBroken: a mark, a new connection, another process or a clear came while it was made. Another one is made.
	ErrBroken = errors.New("the reading was overtaken and is discarded")
	// ErrNoEnd: the publisher's queue was never seen empty after it: full batches all the time, or counters that never stood still.
	ErrNoEnd = errors.New("nothing showed that all the reading could see has been announced")
	// ErrDisconnected: the source is not connected.
	ErrDisconnected = errors.New("the source is not connected")
	// ErrBackend: which backend_id the master has is not known, or there are several.
	ErrBackend = errors.New("the backend of the source is not known")
	// ErrPublisherOff: the master runs without a publisher, so nothing tells how far the stream is.
	ErrPublisherOff = errors.New("the master runs without a publisher")
)

// AdminError: the master did not answer as it should. It is asked again after a while that grows.
type AdminError struct{ Err error }

func (e *AdminError) Error() string { return "asking the master: " + e.Err.Error() }
func (e *AdminError) Unwrap() error { return e.Err }

// mayGoOn says whether a reading that began at from may still end at now: one connection, one epoch, no mark, no clear, one backend.
func mayGoOn(from, now *recorder.Standing, backend []byte) error {
	switch {
	case !now.Connected:
		return fmt.Errorf("%w: the connection ended", ErrBroken)
	case from.Epoch != now.Epoch:
		return fmt.Errorf("%w: another publisher process", ErrBroken)
	case from.Links != now.Links:
		return fmt.Errorf("%w: another connection", ErrBroken)
	case from.Marks != now.Marks:
		return fmt.Errorf("%w: something was lost meanwhile", ErrBroken)
	case from.Clears != now.Clears:
		return fmt.Errorf("%w: the scope was cleared meanwhile", ErrBroken)
	case !from.Unbroken(now):
		return ErrBroken
	case now.Backends > 1, now.Backends == 1 && !bytes.Equal(now.Backend, backend):
		return fmt.Errorf("%w: another backend_id came, %.40q beside %.40q", ErrBroken, now.Backend, backend)
	}
	return nil
}

// polled says what the counters of a poll rule out; last is the number of the last message received before it was sent (R8).
func polled(s *mooncake.Status, last uint64) error {
	switch {
	case !s.Enabled:
		return &AdminError{ErrPublisherOff}
	case last > 0 && s.LastSeq() < last-1:
		return fmt.Errorf("%w: the master counts %d messages, %d were received: it was restarted", ErrBroken, s.LastSeq(), last)
	}
	return nil
}

// settled says whether two polls sent after a reading prove that all it could see has been announced: at least apart from each other,
// equal, and what they count is the last number. Nothing may have come in between; Log.Settled looks after that.
//
// base is where the source stood before the poll first, which was sent before the reading; now is where it stood before the first of the two
// polls. Messages may have been lost without a trace, so their sum says little by itself: if messages came since base, then in
// order, the last one must be the sum; if none came, none may have been sent: the sum is what it was before the reading.
func settled(base, now *recorder.Standing, first, p, q *mooncake.Status, apart time.Duration) bool {
	if q.Sent.Sub(p.Sent) < apart || !equal(p, q) {
		return false
	}
	if now.Seq != base.Seq && base.Unbroken(now) {
		return q.LastSeq() == now.Seq
	}
	return now.Seq == base.Seq && equal(first, q)
}

func equal(p, q *mooncake.Status) bool {
	return p.Enabled && q.Enabled && p.PublishedBatches == q.PublishedBatches && p.PublishedEvents == q.PublishedEvents && p.DroppedEvents == q.DroppedEvents
}
