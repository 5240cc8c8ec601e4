package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/pause"
)

// Engine answers questions from a journal and its index. It may be used from any number of goroutines at once.
type Engine struct {
	Journal *journal.Journal
	Index   *index.Index
	// Live reports whether a source is connected; nil where no recorder runs.
	Live func(source uint32) bool
	// Tail tells since when (our clock, Unix ns) it is proven that nothing of a source's stream is missing behind the record at offset, its
	// newest; since is 0 where nothing proves it (R8). nil: no master is asked.
	Tail func(ctx context.Context, source uint32) (since int64, offset uint64, err error)
	// Counted keeps the number of live objects for a while; nil: it is counted each time.
	Counted *CountCache
	// Credits keeps what losses were credited with; nil: each question about losses goes through all that lie before them.
	Credits *CreditCache
	// LostEnd are records that are gone from the end of a journal at rest; nil: none.
	LostEnd *LostEnd
	// Now is our clock; nil: time.Now.
	Now func() time.Time
	// Dir is the data directory, for those who are told commands; empty: it is not told.
	Dir string
}

// Clock is the time on our clock: the zero of "-5m".
func (e *Engine) Clock() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// indexPatience is how long a question about a recorded position waits for the index of a running recorder.
const indexPatience = 10 * time.Second

// viewAt opens a view in which offset is indexed.
func (e *Engine) viewAt(ctx context.Context, offset uint64) (*index.View, error) {
	v := &index.View{}
	return v, e.openView(ctx, v, offset)
}

// openView is viewAt in the caller's memory.
func (e *Engine) openView(ctx context.Context, v *index.View, offset uint64) error {
	var deadline time.Time
	for {
		if err := e.Index.OpenView(v); err != nil || v.Applied() >= offset {
			return err
		}
		applied := v.Applied()
		v.Close()
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(indexPatience)
		}
		if now.After(deadline) {
			return fmt.Errorf("offset %d is recorded but not indexed yet (the index is at %d); ask again, or see `kvjournal stats` for its lag", offset, applied)
		}
		e.Index.Hurry()
		if err := pause.For(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// sources returns the source of that name, or all.
func (e *Engine) sources(name string) ([]journal.Source, error) {
	if name == "" {
		return e.Journal.Sources(), nil
	}
	if s, ok := e.Journal.SourceNamed(name); ok {
		return []journal.Source{s}, nil
	}
	all := e.Journal.Sources()
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, all[i].Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, usagef("no source %q: nothing was recorded yet", name)
	}
	return nil, usagef("no source %q; there is %s", name, strings.Join(names, ", "))
}

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
	t, err := e.Journal.At(s.ID, ms)
	if err != nil {
		return m, 0, err
	}
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
	return m, t.Last.Offset, nil
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
func (e *Engine) momentsIn(ctx context.Context, v *index.View, out []moment, sources []journal.Source, w When) error {
	need := uint64(0)
	var tails []tail
	if w.Kind == Now {
		tails = make([]tail, len(sources))
	}
	for i := range sources {
		m, n, err := e.place(&sources[i], w)
		if err != nil {
			return err
		}
		if w.Kind == Now && e.Tail != nil {
			if tails[i].since, tails[i].offset, err = e.Tail(ctx, sources[i].ID); err != nil {
				return err
			}
			n = tails[i].offset
		}
		if m.ofLoss {
			if n, err = e.behindLoss(&m); err != nil {
				return err
			}
		}
		out[i], need = m, max(need, n)
	}
	if err := e.openView(ctx, v, need); err != nil {
		return err
	}
	for i := range sources {
		var end tail
		if w.Kind == Now {
			end = tails[i]
		}
		if err := e.settle(v, &sources[i], w, end, &out[i]); err != nil {
			v.Close()
			return err
		}
	}
	return nil
}

// settle completes a source's moment, which stays where it is, from the view that it is answered in.
func (e *Engine) settle(v *index.View, s *journal.Source, w When, end tail, m *moment) error {
	if w.Kind == Latest || w.Kind == Now {
		l, err := e.latest(v, s)
		if err != nil {
			return err
		}
		*m = l.moment
		m.latest = l
	}
	if w.Kind == Now {
		end.prove(m, v.Source(s.ID))
		m.latest = nil
	}
	if err := e.known(v, s.ID, m.at); err != nil {
		return err
	}
	if w.Kind != Latest {
		if err := m.readDoubts(v); err != nil {
			return err
		}
	}
	if w.Kind == AtOffset || w.Kind == AtSeq {
		m.leaveWindow()
	}
	if m.asOf.Received != nil {
		m.age = e.Clock().UnixMilli() - m.asOf.Received.UnixMilli()
		m.asOf.AgeMs = &m.age
	}
	m.asOf.Live = e.Live != nil && e.Live(s.ID)
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
