package recorder

import (
	"fmt"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// Feed turns what one source's socket, or a capture of one, delivered into records of a journal. It is the only way by
// which messages get into a journal, so that a live stream and its capture are judged alike. Not for concurrent use.
type Feed struct {
	source   uint32
	pos      journal.Position
	batch    event.Batch
	standing Standing
	watch    *watch
	polls    []continuity.Polls // of the endpoints by number
	lost     bool               // a loss was seen since the last poll that was answered
	proof    Proof
	moved    bool   // what it knows is other than what was saved
	tally    *Tally // nil: nothing is counted
	counted  SourceTally
	due      continuity.Cause // a mark that Begin found due; the next fact carries it, if no message sets one before
}

// NewFeed goes on where the journal's records of the source end.
func NewFeed(j *journal.Journal, source uint32) (*Feed, error) {
	pos, err := j.Position(source)
	if err != nil {
		return nil, fmt.Errorf("where source %d stands: %w", source, err)
	}
	f := &Feed{source: source, pos: pos}
	f.LimitEvents(0)
	return f, nil
}

// LimitEvents bounds the events of one message: with more it is damaged (event.TooMany), which is marked and counted as all damage
// is. 0: event.DefaultLimit; negative: no bound.
func (f *Feed) LimitEvents(n int) {
	if n == 0 {
		n = event.DefaultLimit
	}
	f.batch.Limit = max(n, 0)
}

// Begin tells that what comes next was not received right behind what the journal has: a recorder or an import starts.
func (f *Feed) Begin(why continuity.Break) {
	if mark := f.pos.State.RecorderStarts(why); mark != continuity.CauseNone {
		f.due = mark
	}
}

// Add is AddFrom of the source's first endpoint.
func (f *Feed) Add(g *journal.Group, rec *capture.Record, slow bool) (uint64, error) {
	return f.AddFrom(g, 0, rec, slow)
}

// AddFrom judges rec, which came by an endpoint of the source (journal.Source.Number), and adds it to the group; it returns the
// record's offset, 0 for connection events of an endpoint that does not deliver: they are no record. A message's frames must not change
// before the next call. slow tells that the recorder's own buffer was full since the source's last message.
func (f *Feed) AddFrom(g *journal.Group, endpoint int, rec *capture.Record, slow bool) (uint64, error) {
	s := &f.pos.State
	f.moved = true
	switch rec.Kind {
	case capture.Message:
		f.batch.Scan(rec.Frames)
		before := s.Seq
		h := journal.Header{
			Kind: journal.Message, Source: f.source, Received: rec.Received,
			HasSeq: f.batch.HasSeq, Seq: f.batch.Seq, Events: uint32(len(f.batch.Events)),
			Verdict: s.MessageFrom(endpoint, &f.batch, rec.Frames, rec.Received, slow),
		}
		if h.Mark != continuity.NoMark {
			f.due = continuity.CauseNone
		}
		offset := g.Add(&h, rec.Frames)
		if f.tally != nil {
			f.tally.message(&f.counted, &h, size(rec.Frames), f.batch.Events)
		}
		if h.Stale {
			return offset, nil
		}
		if endpoint == s.Endpoint {
			f.pos.Last = offset
		}
		f.message(offset, &h, before)
		return offset, nil
	case capture.Connected, capture.Disconnected:
		return f.connection(g, endpoint, rec), nil
	}
	return 0, fmt.Errorf("record of unknown kind %d", rec.Kind)
}

func size(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f)
	}
	return n
}

// connection adds a connection event. A standby's is no doubt, and no record.
func (f *Feed) connection(g *journal.Group, endpoint int, rec *capture.Record) uint64 {
	s := &f.pos.State
	kind, mark := journal.Disconnected, continuity.CauseNone
	if rec.Kind == capture.Connected {
		kind, mark = journal.Connected, s.ConnectsFrom(endpoint)
	} else {
		s.DisconnectsFrom(endpoint)
	}
	if endpoint != s.Endpoint {
		return 0
	}
	return f.fact(g, kind, rec.Received, mark)
}

// Started adds the fact that a recorder begins to listen.
func (f *Feed) Started(g *journal.Group, at int64) {
	f.Begin(continuity.RecorderWasDown)
	f.fact(g, journal.RecorderStarted, at, continuity.CauseNone)
}

// Stopped adds the fact that the recorder ends in good order.
func (f *Feed) Stopped(g *journal.Group, at int64) {
	f.fact(g, journal.RecorderStopped, at, continuity.CauseNone)
}

func (f *Feed) fact(g *journal.Group, kind journal.Kind, at int64, mark continuity.Cause) uint64 {
	if mark == continuity.CauseNone {
		mark = f.due
	}
	f.due = continuity.CauseNone
	var v continuity.Verdict
	if mark != continuity.CauseNone {
		v.Mark, v.MarkCause = continuity.MarkBehind, mark
	}
	return f.own(g, kind, at, v, nil)
}

// own adds a record that is no message; the verdict's epoch and time become the source's.
func (f *Feed) own(g *journal.Group, kind journal.Kind, at int64, v continuity.Verdict, frames [][]byte) uint64 {
	s := &f.pos.State
	v.Epoch, v.HasTime, v.Time = max(s.Epoch, 1), s.HasTime, s.Time
	h := journal.Header{Kind: kind, Source: f.source, Received: at, Verdict: v}
	offset := g.Add(&h, frames)
	if f.tally != nil {
		f.tally.fault(f.source, &v)
	}
	f.moved = true
	f.stand(offset, &h)
	f.look(0, shortBatch)
	return offset
}

// Save keeps where the source stands behind the group. Call it once per group that holds records of the source.
func (f *Feed) Save(g *journal.Group) {
	f.moved = false
	g.State(f.source, &f.pos)
}

// State is the continuity state behind the last record.
func (f *Feed) State() *continuity.State { return &f.pos.State }
