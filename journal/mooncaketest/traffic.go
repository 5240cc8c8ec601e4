package mooncaketest

import (
	"iter"

	"github.com/kvjournal/kvjournal/journal/event"
)

// Traffic makes the messages that a publisher with an endless queue would send, without a socket or a clock, for benchmarks and
// tests of what lies behind the socket. It is a pure function of its arguments and the number of calls.
type Traffic struct {
	store   *Store
	batch   *batch
	pending []Change
	size    int
	seq     uint64
	seqBuf  [8]byte
	timeMS  int64
	sent    uint64
	// EventsPerMS is how fast the publisher's clock moves.
	EventsPerMS int
	frames      [3][]byte
}

// NewTraffic sends batches of batchEvents events, 1 to BatchEvents, beginning at publisher time timeMS (Unix ms) and with 100
// events a millisecond.
func NewTraffic(o StoreOptions, batchEvents int, timeMS int64) *Traffic {
	var po Options
	po.setDefaults()
	return &Traffic{store: NewStore(o), batch: newBatch(&po), size: min(max(batchEvents, 1), BatchEvents), timeMS: timeMS, EventsPerMS: 100}
}

// Next returns the next message's frames and its time, Unix ms. The frames are valid until the next call.
func (t *Traffic) Next() (frames [][]byte, timeMS int64) { return t.NextOf(t.size) }

// NextOf is Next with another number of events, 1 to BatchEvents.
func (t *Traffic) NextOf(events int) (frames [][]byte, timeMS int64) {
	for len(t.pending) < events {
		t.pending = t.store.Step(t.pending)
	}
	n := copy(t.batch.changes[:events], t.pending)
	t.pending = t.pending[:copy(t.pending, t.pending[n:])]
	timeMS = t.timeMS + int64(t.sent)/int64(t.EventsPerMS)
	t.sent += uint64(n)
	t.seq++
	t.seqBuf = event.SeqFrame(t.seq)
	t.frames = [3][]byte{{}, t.seqBuf[:], t.batch.encode(n, timeMS)}
	return t.frames[:], timeMS
}

// Rest is the number of events that the store has made and no message holds yet. Behind a message of that many, Objects is what
// was announced.
func (t *Traffic) Rest() int { return len(t.pending) }

// Objects lists what the store holds, in no order.
func (t *Traffic) Objects() iter.Seq[Object] { return t.store.Objects() }
