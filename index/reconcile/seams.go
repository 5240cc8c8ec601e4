package reconcile

import (
	"context"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// Master is what a reading asks; a mooncake.Client is one. One reading asks one master only, the one whose endpoint delivers the
// source's messages.
type Master interface {
	// Keys calls f with each key of the tenant default. Only without an error has the listing come whole.
	Keys(ctx context.Context, f func(key []byte) error) (mooncake.Listing, error)
	// BatchQuery answers for all keys, in their order, or not at all.
	BatchQuery(ctx context.Context, keys [][]byte) (mooncake.Answers, error)
	Status(ctx context.Context) (mooncake.Status, error)
	// URL is where it is, for people.
	URL() string
}

// Log is the source's place in the journal, through the recorder's writer: SourceLog is one.
type Log interface {
	// Stand returns where the source stands, between two records.
	Stand(ctx context.Context) (recorder.Standing, error)
	// Begin appends that a reading begins, and returns the standing behind that record: its offset is h. When it returns the
	// record is indexed.
	Begin(ctx context.Context, b *reading.Begun) (recorder.Standing, error)
	// Await waits, at most for d, for the first batch of fewer than 64 events whose predecessor has a number above n + 1, and
	// returns the standing there, or, as soon as the stretch since from is broken, where it broke. A batch before the call does not count.
	Await(ctx context.Context, n uint64, from recorder.Standing, d time.Duration) (at recorder.Standing, came bool, err error)
	// Settled appends the poll that came back equal, and returns the standing behind it, if the source has no record behind the one at
	// since; else ok is false, and nothing was appended.
	Settled(ctx context.Context, since recorder.Standing, poll, before *mooncake.Status) (at recorder.Standing, ok bool, err error)
	// End appends the parts and the end of a reading, if nothing broke the stretch since h until now, else it returns ErrBroken. They
	// become durable together.
	End(ctx context.Context, h recorder.Standing, parts [][]byte, e *reading.Ended) (offset uint64, err error)
}

// Index is what was known of the objects of the source: SourceIndex is one.
type Index interface {
	// Objects calls f with each object of a scope that was known at h, in the order of the bytes of the keys, with what could be claimed
	// of it at h. What f gets is valid until it returns. h is indexed.
	Objects(ctx context.Context, scope reading.Scope, h uint64, f func(*Object) error) error
	// Touched sets touched[i] to whether the object of keys[i] had an event of its own in (h, e]. The keys ascend, mostly, and may
	// repeat. It waits until e is indexed.
	Touched(ctx context.Context, scope reading.Scope, keys [][]byte, h, e uint64, touched []bool) error
	// Cleared reports whether the scope was cleared in (h, e]. It waits until e is indexed.
	Cleared(ctx context.Context, scope reading.Scope, h, e uint64) (bool, error)
	// Doubt returns the source's newest mark, and whether it is connected. It is asked some ten times a second.
	Doubt(ctx context.Context) (Doubt, error)
}

// Doubt is the newest mark of a source.
type Doubt struct {
	// Mark is the offset of the newest record that set or extended it, 0 where there is none.
	Mark uint64
	// At is when that record was received, on our clock.
	At time.Time
	// Connected: the socket is connected, and where the connection begins is known.
	Connected bool
}

// Clock is our clock.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or when ctx ends, with its error.
	Sleep(ctx context.Context, d time.Duration) error
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error { return pause.For(ctx, d) }
