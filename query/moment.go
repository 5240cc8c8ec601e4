package query

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// moment is a place in a source's stream, and what can be claimed there.
type moment struct {
	source uint32
	// at: events at or before it count.
	at index.Position
	// unproven is not nil where nothing at all can be confirmed.
	unproven *Doubt
	// ofLoss: it is the position of a record that tells what the journal itself lost.
	ofLoss bool
	// last is the newest message at or before the moment; its offset is 0 where there is none.
	last index.Place
	// mark is the newest mark at or before the moment.
	mark    index.Mark
	hasMark bool
	asOf    AsOf
	// epoch is that of the newest batch at or before the moment, 0: none; flagged are the source's epochs whose master changes things
	// without an event (R11).
	epoch   uint64
	flagged map[uint64]bool
	// forgotten is the offset up to which objects that were removed may have been forgotten, 0: none.
	forgotten uint64
	// from is what is kept of the moment, nil: nothing.
	from *settled
	// standing is until when a moment of publisher time lies there.
	standing journal.Standing
	age      int64 // asOf.AgeMs
}

// silent reports whether an epoch's master changes things without an event.
func (m *moment) silent(epoch uint64) bool { return m.flagged[epoch] }

// leaveWindow makes a position that lies behind the end of a window of R5 proven again, though the last message before it lies within: the
// window's mark is there. The moment's mark must be known.
func (m *moment) leaveWindow() {
	if m.unproven != nil && m.unproven.Cause == DoubtWindow && m.hasMark && m.last.Offset < m.mark.End.Offset && m.mark.End.Offset <= m.at.Offset {
		m.unproven = nil // what stands behind that mark is what a reading says, and a reading is of one connection
	}
}

// cuts reports whether the moment lies directly behind a full batch whose last event is e (R8).
func (m *moment) cuts(e *index.Evidence) bool { return e.Cut && e.Position.Offset == m.last.Offset }

// place finds where a moment lies in a source's stream: the position, and the journal's records around it. It reads the journal
// only; need is the offset that must be indexed before the moment can be answered.
func (e *Engine) place(s *journal.Source, w When) (m moment, need uint64, err error) {
	m = moment{source: s.ID}
	switch w.Kind {
	case AtOffset:
		return e.placeOffset(s, w.Offset)
	case AtSeq:
		r, err := e.Journal.BySeq(s.ID, w.Epoch, w.Seq)
		if errors.Is(err, journal.ErrNotFound) {
			if pruned, err := e.seqPruned(s.ID, w.Epoch, w.Seq); pruned || err != nil {
				return m, 0, cmp.Or[error](err, &PrunedError{Horizon: e.Journal.Horizon()})
			}
			return m, 0, usagef("seq %d of epoch %d was never received from source %q, or lost with a part of the journal; `kvjournal gaps` shows what is missing and why", w.Seq, w.Epoch, s.Name)
		}
		if err != nil {
			return m, 0, err
		}
		return e.placeOffset(s, r.Offset)
	case AtTime:
		return e.placeTime(s, w.Ms)
	}
	return m, 0, nil
}

func (e *Engine) placeOffset(s *journal.Source, offset uint64) (m moment, need uint64, err error) {
	m = moment{source: s.ID, at: index.Behind(offset)}
	r, err := e.Journal.Record(offset)
	if err != nil {
		return m, 0, e.notThere(offset, err)
	}
	m.ofLoss = r.Kind == journal.TailLost
	m.asOf = AsOf{Offset: offset, Received: msTime(r.Received / 1e6)}
	if r.Source == s.ID && r.Applies() && r.HasTime {
		m.asOf.Time = msTime(r.Time)
	}
	last := r
	if r.Source != s.ID || !r.Counts() {
		last, err = e.lastBatch(s.ID, offset)
	}
	m.behind(last)
	return m, offset, err
}

// behind says what lies directly before a moment that is a position, last being the newest message there: it is proven by itself, but in an
// open window of R5.
func (m *moment) behind(last journal.Record) {
	m.last, m.epoch = placeOf(&last), last.Epoch
	if last.InWindow {
		m.unproven = recordDoubt(DoubtWindow, &last)
	}
}

// lastBatch is the newest message of a source at or before offset; the zero Record where there is none.
func (e *Engine) lastBatch(source uint32, offset uint64) (journal.Record, error) {
	last, err := e.Journal.LastBatch(source, offset)
	if errors.Is(err, journal.ErrNotFound) {
		err = nil
	}
	return last, err
}

func (e *Engine) placeTime(s *journal.Source, ms int64) (m moment, need uint64, err error) {
	m = moment{source: s.ID}
	t, standing, err := e.Journal.AtStanding(s.ID, ms)
	if err != nil {
		return m, 0, err
	}
	m.standing = standing
	m.last, m.epoch = placeOf(&t.Last), t.Last.Epoch
	m.asOf = asOfPlace(m.last)
	m.at = index.Behind(t.Last.Offset)
	if t.Next.Offset != 0 && !t.Twice {
		m.at = index.Behind(t.Next.Offset - 1)
	}
	switch {
	case t.Last.Offset == 0, !t.Last.HasTime:
		// A batch whose time is not used takes its predecessor's (R8); the first of all has none to take.
		m.unproven = &Doubt{Cause: DoubtBeforeFirst}
	case t.Twice:
		m.unproven = recordDoubt(DoubtClock, &t.Last)
	case t.Next.Offset == 0:
		m.unproven = recordDoubt(DoubtBehindLast, &t.Last)
	case t.Last.InWindow:
		m.unproven = recordDoubt(DoubtWindow, &t.Last)
	case !t.Next.Follows:
		m.unproven = recordDoubt(nextDoubt(&t.Next), &t.Next)
	}
	return m, m.at.Offset, nil
}

// nextDoubt names why the batch behind a moment does not follow.
func nextDoubt(next *journal.Record) string {
	switch {
	case next.Gap.Cause != continuity.CauseNone:
		return next.Gap.Cause.String()
	case next.MarkCause != continuity.CauseNone:
		return next.MarkCause.String()
	case next.InWindow:
		return DoubtWindow
	}
	return DoubtBehindLast
}

func recordDoubt(cause string, r *journal.Record) *Doubt {
	return doubtAt(cause, r.Offset, r.HasTime, r.Time)
}

func placeOf(r *journal.Record) index.Place {
	p := index.Place{Offset: r.Offset, Seq: r.Seq, HasTime: r.HasTime, Time: r.Time, Received: r.Received / 1e6}
	if r.Applies() {
		p.Events = r.Events
	}
	return p
}

func asOfPlace(p index.Place) AsOf {
	if p.Offset == 0 {
		return AsOf{}
	}
	a := AsOf{Offset: p.Offset, Received: msTime(p.Received)}
	if p.HasTime {
		a.Time = msTime(p.Time)
	}
	return a
}

// tail is what proves the end of a source's stream: nothing was missing behind the record at offset at our clock's ns since (R8).
type tail struct {
	since  int64
	offset uint64
}

// prove makes the latest moment the strict `now`, if its end is proven and what was recorded since is in the answer too.
func (t tail) prove(m *moment, st index.SourceState) {
	switch {
	case m.unproven != nil:
	case t.since == 0, st.Last.Offset > t.offset, st.AsOf.Offset > t.offset, st.Window:
		m.unproven = &Doubt{Cause: DoubtNow}
	default:
		m.at, m.last = index.Behind(t.offset), st.Last
		m.asOf = AsOf{Offset: t.offset, Received: msTime(t.since / 1e6)}
	}
}

// moments places a question's moment in each source and opens a view in which all are indexed.
func (e *Engine) moments(ctx context.Context, sources []journal.Source, w When) (*index.View, []moment, error) {
	v, out := &index.View{}, make([]moment, len(sources))
	if err := e.momentsIn(ctx, v, out, sources, w); err != nil {
		return nil, nil, err
	}
	return v, out, nil
}

// momentsIn is moments in the caller's memory: a view that is not open, and as many moments as sources. After an error the view is closed.
func (e *Engine) momentsIn(ctx context.Context, v *index.View, out []moment, sources []journal.Source, w When) (err error) {
	open := false
	defer func() {
		if err != nil && open {
			v.Close()
		}
	}()
	if w.Kind == AtTime {
		if err := e.Index.OpenView(v); err != nil {
			return err
		}
		open = true
		if kept, err := e.pastIn(v, out, sources, w.Ms); kept || err != nil {
			return err
		}
	}
	need, tails, err := e.placeIn(ctx, out, sources, w)
	if err != nil {
		return err
	}
	if open && v.Applied() < need {
		open = false
		if err := v.Close(); err != nil {
			return err
		}
	}
	if !open {
		if err := e.openView(ctx, v, need); err != nil {
			return err
		}
		open = true
	}
	for i := range sources {
		var end tail
		if w.Kind == Now {
			end = tails[i]
		}
		if err := e.settle(v, &sources[i], w, end, &out[i]); err != nil {
			return err
		}
	}
	return nil
}

// placeIn places a moment in each source. need is the offset that must be indexed for all of them; tails are the ends of the sources, of Now.
func (e *Engine) placeIn(ctx context.Context, out []moment, sources []journal.Source, w When) (need uint64, tails []tail, err error) {
	if w.Kind == Now {
		tails = make([]tail, len(sources))
	}
	for i := range sources {
		m, n, err := e.place(&sources[i], w)
		if err != nil {
			return 0, nil, err
		}
		if w.Kind == Now && e.Tail != nil {
			if tails[i].since, tails[i].offset, err = e.Tail(ctx, sources[i].ID); err != nil {
				return 0, nil, err
			}
			n = tails[i].offset
		}
		if m.ofLoss {
			if n, err = e.behindLoss(&m); err != nil {
				return 0, nil, err
			}
		}
		out[i], need = m, max(need, n)
	}
	return need, tails, nil
}

// pastIn is momentsIn in a view that is open, for a publisher time whose moment is kept of each source: else false.
func (e *Engine) pastIn(v *index.View, out []moment, sources []journal.Source, ms int64) (bool, error) {
	for i := range sources {
		l := e.past(v, sources[i].ID, ms)
		if l == nil {
			return false, nil
		}
		m := &out[i]
		*m = l.moment
		m.from = l
		if err := e.known(v, m.source, m.at); err != nil {
			return false, err
		}
		e.today(m)
	}
	return true, nil
}

// today completes a moment, which stays where it is, by what depends on when it is asked about.
func (e *Engine) today(m *moment) {
	if m.asOf.Received != nil {
		m.age = e.Clock().UnixMilli() - m.asOf.Received.UnixMilli()
		m.asOf.AgeMs = &m.age
	}
	m.asOf.Live = e.Live != nil && e.Live(m.source)
}

// settle completes a source's moment, which stays where it is, from the view that it is answered in.
func (e *Engine) settle(v *index.View, s *journal.Source, w When, end tail, m *moment) error {
	if w.Kind == Latest || w.Kind == Now {
		l, err := e.latest(v, s)
		if err != nil {
			return err
		}
		*m = l.moment
		m.from = l
	}
	if w.Kind == Now {
		end.prove(m, v.Source(s.ID))
		m.from = nil
	}
	if err := e.known(v, s.ID, m.at); err != nil {
		return err
	}
	if w.Kind != Latest {
		if err := m.readDoubts(v); err != nil {
			return err
		}
	}
	switch w.Kind {
	case AtOffset, AtSeq:
		m.leaveWindow()
	case AtTime:
		e.keepPast(v, m, w.Ms)
	}
	e.today(m)
	return nil
}

// readDoubts reads what casts doubt on all of the source at the moment: its newest mark, and its flagged epochs.
func (m *moment) readDoubts(v *index.View) (err error) {
	if m.mark, m.hasMark, err = v.Mark(m.source, min(m.at.Offset, math.MaxUint64-1)); err != nil {
		return err
	}
	m.forgotten = v.Base().Forgotten
	m.flagged, err = v.Flagged(m.source)
	return err
}
