package recorder

import (
	"bytes"
	"encoding/json"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Standing is where a source stands between two records. What happened between two standings is told by comparing them.
type Standing struct {
	// Offset is that of the newest record of the source.
	Offset uint64
	Epoch  uint64
	Seq    uint64
	// Marks, Links and Clears count marks, connection facts and `cleared` events of the tenant default since the feed began.
	Marks, Links, Clears uint64
	// Connected: the socket that delivers is connected.
	Connected bool
	// Backend is the backend_id of the current epoch's events; Backends how many there are: 0 where none is known yet.
	Backend  []byte
	Backends int
}

// Unbroken reports whether nothing came between two standings that a reading would be void for (R9): one connection, one epoch, no
// mark, no clear of what is read.
func (s *Standing) Unbroken(later *Standing) bool {
	return s.Epoch == later.Epoch && s.Marks == later.Marks && s.Links == later.Links && s.Clears == later.Clears && later.Connected
}

// stand follows a record.
func (f *Feed) stand(offset uint64, h *journal.Header) {
	s := &f.standing
	s.Offset = offset
	if h.Epoch != s.Epoch {
		s.Epoch, s.Backend, s.Backends = h.Epoch, nil, 0
	}
	if h.Mark != continuity.NoMark {
		s.Marks++
	}
	switch h.Kind {
	case journal.Connected:
		s.Links, s.Connected = s.Links+1, true
	case journal.Disconnected, journal.RecorderStarted:
		s.Links, s.Connected = s.Links+1, false
	}
}

// message follows a message that counts; before is the number of the one before it.
func (f *Feed) message(offset uint64, h *journal.Header, before uint64) {
	f.stand(offset, h)
	f.standing.Connected = f.pos.State.Connected
	f.lost = f.lost || h.Gap.Cause != continuity.CauseNone
	events := shortBatch
	if h.Applies() {
		f.standBatch(f.batch.Events)
		events = len(f.batch.Events)
	}
	f.look(before, events)
}

// standBatch follows a message that is applied.
func (f *Feed) standBatch(events []event.Event) {
	s := &f.standing
	for i := range events {
		e := &events[i]
		if s.Backends == 0 || !bytes.Equal(e.Backend, s.Backend) {
			s.Backend = append([]byte{}, e.Backend...)
			s.Backends++
		}
		if e.Type == event.Cleared && string(e.Tenant) == event.DefaultTenant {
			s.Clears++
		}
	}
}

// Standing is where the source stands behind the last record.
func (f *Feed) Standing() Standing {
	s := f.standing
	s.Seq = f.pos.State.Seq
	return s
}

// shortBatch is how many events a batch must stay below to show that the publisher's queue was empty.
const shortBatch = 64

// watch waits for e of R9.
type watch struct {
	n    uint64
	from Standing
	ends chan Standing
}

// Watch waits for the first batch of fewer than 64 events whose predecessor has a number above n + 1: all that the master had done
// when it counted n has been announced by then. The channel is given the standing there, or, as soon as the
// stretch since from is broken, the standing that broke it. Only one is waited for at a time.
func (f *Feed) Watch(n uint64, from Standing) <-chan Standing {
	ends := make(chan Standing, 1)
	f.watch = &watch{n, from, ends}
	f.look(0, shortBatch) // it may be broken already
	return ends
}

// Unwatch ends the waiting.
func (f *Feed) Unwatch() { f.watch = nil }

// look gives the watch its end, if it has come: behind a batch of so many events whose predecessor has the number before.
func (f *Feed) look(before uint64, events int) {
	w := f.watch
	if w == nil {
		return
	}
	now := f.Standing()
	if short := events < shortBatch && before > 0 && before-1 > w.n; short || !w.from.Unbroken(&now) {
		w.ends <- now
		f.watch = nil
	}
}

// Fact adds a record of the journal's own, with one frame of JSON, and the verdict given; its epoch and time are the source's.
func (f *Feed) Fact(g *journal.Group, kind journal.Kind, at int64, v continuity.Verdict, content any) (uint64, error) {
	b, err := json.Marshal(content)
	if err != nil {
		return 0, err
	}
	return f.Raw(g, kind, at, v, b), nil
}

// Raw is Fact with a frame of any bytes.
func (f *Feed) Raw(g *journal.Group, kind journal.Kind, at int64, v continuity.Verdict, frame []byte) uint64 {
	return f.own(g, kind, at, v, [][]byte{frame})
}

// End adds the parts and the end of a reading, in one group: they become durable together.
func (f *Feed) End(g *journal.Group, at int64, parts [][]byte, e *reading.Ended) (uint64, error) {
	for _, p := range parts {
		f.Raw(g, journal.ReconciliationPart, at, continuity.Verdict{}, p)
	}
	return f.Fact(g, journal.ReconciliationEnded, at, continuity.Verdict{}, e)
}
