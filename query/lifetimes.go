package query

import (
	"context"

	"github.com/kvjournal/kvjournal/index"
)

// LifetimesQuery asks how long objects stayed on media.
type LifetimesQuery struct {
	Where
	Span
	// Prefix of the objects' keys; empty: all.
	Prefix Bytes
	// Medium; empty: all.
	Medium string
	// Group is the group_id that a lifetime began with; nil: all.
	Group Bytes
	// By says what has lines of its own on each medium: "tenant", "group" or "none".
	By string
	// Top is how many tenants or groups of each medium have a line of their own, those with the most lifetimes; the others share one.
	// 0: 20 groups, or all tenants up to a bound of 4,096 lines.
	Top int
	// Doubtful lets the durations of doubtful lifetimes count too.
	Doubtful bool
}

// defaultTopGroups is how many groups have a line of their own.
const defaultTopGroups = 20

// LifetimesOut is one line of lifetimes: those on one medium, of one tenant or group over all sources and backends asked for. A
// lifetime counts that ended in the span.
type LifetimesOut struct {
	// Medium is left out in the line of all media beyond the first 64.
	Medium       *string `json:"medium,omitempty"`
	Tenant       *string `json:"tenant_id,omitempty"`
	TenantBase64 *string `json:"tenant_id_base64,omitempty"`
	// Group is left out, by group, in the line of those without one.
	Group       *string `json:"group_id,omitempty"`
	GroupBase64 *string `json:"group_id_base64,omitempty"`
	// Others: the line is that of the tenants or groups without a line of their own, about so many.
	Others uint64 `json:"others,omitempty"`
	// Count is how many ended. Doubtful of them ended by a clear, which an object may survive, or have a mark between begin and
	// end, or one of them in a window of a broken connection: an end and a new begin may have been missed between. So are those of which
	// a reading of the master shows the begin or the end, for it happened at an unknown time before, and those of an epoch whose master
	// changes things without an event.
	Count    uint64 `json:"count"`
	Doubtful uint64 `json:"doubtful"`
	// Measured durations are those in the figures below; Untimed are those with no publisher time at one of their ends, or
	// whose publisher's clock went back.
	Measured uint64 `json:"measured"`
	Untimed  uint64 `json:"untimed"`
	// Open had not ended at the end of the span.
	Open         uint64      `json:"open"`
	OpenDoubtful uint64      `json:"open_doubtful"`
	EndedBy      EndedByOut  `json:"ended_by"`
	DurationOut              // how long they took
	StoredAgain  StoredAgain `json:"stored_again"`
}

// EndedByOut says how many lifetimes ended how.
type EndedByOut struct {
	EvictedCopyLeft uint64 `json:"evicted_copy_left"`
	Removed         uint64 `json:"removed"`
	Upsert          uint64 `json:"upsert"`
	Cleared         uint64 `json:"cleared"`
}

// DurationOut shows durations, in ms of publisher time: percentiles (of a value v, v to v + v/16; left out where there is none), and
// how many lie in each bucket.
type DurationOut struct {
	P50       *int64      `json:"p50_ms,omitempty"`
	P90       *int64      `json:"p90_ms,omitempty"`
	P99       *int64      `json:"p99_ms,omitempty"`
	Max       *int64      `json:"max_ms,omitempty"`
	Histogram []BucketOut `json:"histogram"`
}

// StoredAgain tells how long after the end of a lifetime the object was stored on the medium again. Ends by upsert are left out, since
// those are stored again at once.
type StoredAgain struct {
	// Count were stored again, Never were not by the end of the span, as far as was heard.
	Count uint64 `json:"count"`
	Never uint64 `json:"never"`
	// Doubtful of Count have a mark between, or ended by a clear: an earlier `stored` may have been missed.
	Doubtful uint64 `json:"doubtful"`
	Measured uint64 `json:"measured"`
	DurationOut
}

// Lifetimes calls f for each line of the answer.
func (e *Engine) Lifetimes(ctx context.Context, q *LifetimesQuery, progress Progress, f func(*LifetimesOut) error) error {
	table, err := e.lifetimes(ctx, q, progress)
	if err != nil {
		return err
	}
	switch {
	case q.Top > 0:
		table.top(q.Top)
	case q.By == "group":
		table.top(defaultTopGroups)
	}
	for _, medium := range table.mediaInOrder() {
		m := table.media[medium]
		emit := func(name Bytes, c *lifetimeCount) error {
			if c == nil || c.weight() == 0 {
				return nil
			}
			out := c.out(q.Doubtful)
			if medium != "" {
				out.Medium = &medium
			}
			if q.By == "group" {
				out.Group, out.GroupBase64 = name.text(), name.base64()
			} else {
				out.Tenant, out.TenantBase64 = name.text(), name.base64()
			}
			return f(out)
		}
		for _, name := range m.largest() {
			if err := emit(Bytes(name), m.named[name]); err != nil {
				return err
			}
		}
		if err := emit(nil, m.unnamed); err != nil {
			return err
		}
		if err := emit(nil, m.others); err != nil {
			return err
		}
	}
	return nil
}

func (c *lifetimeCount) out(all bool) *LifetimesOut {
	a := &c.again
	return &LifetimesOut{
		Others: c.names, Count: c.count, Doubtful: c.doubtful, Measured: c.took.n, Untimed: c.untimed, Open: c.open, OpenDoubtful: c.openDoubtful,
		EndedBy:     EndedByOut{c.by[endedCopyLeft], c.by[endedRemoved], c.by[endedUpsert], c.by[endedCleared]},
		DurationOut: c.took.durations(),
		StoredAgain: StoredAgain{Count: a.count, Never: a.never, Doubtful: a.doubtful, Measured: a.after.n, DurationOut: a.after.durations()},
	}
}

func (h *histogram) durations() DurationOut {
	out := DurationOut{Histogram: h.out()}
	if h.n > 0 {
		at := func(p float64) *int64 { v := h.percentile(p); return &v }
		out.P50, out.P90, out.P99, out.Max = at(0.5), at(0.9), at(0.99), &h.max
	}
	return out
}

// lifetimeScope is a scope whose lifetimes are counted.
type lifetimeScope struct {
	index.Scope
	from, to index.Position
	clears   *clearList
	marks    *markList
	flagged  map[uint64]bool // epochs (R11)
}

func (e *Engine) lifetimes(ctx context.Context, q *LifetimesQuery, progress Progress) (*lifetimeTable, error) {
	sources, err := e.sources(q.Source)
	if err != nil {
		return nil, err
	}
	pieces, err := e.stretches(sources, q.Span, e.Journal.Durable())
	if err != nil {
		return nil, err
	}
	v, err := e.viewOf(ctx, pieces, q.Span)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if err := e.knownFrom(v, pieces); err != nil {
		return nil, err
	}
	v.Scans()
	counters := make([]lifetimeCounter, scanners())
	for i := range counters {
		counters[i].init(v, q)
	}
	scopes := func(give func(*index.Scope, *lifetimeScope) error) error {
		for i := range pieces {
			p := &pieces[i]
			marks, err := newMarkList(v, p.ID, p.to.Offset)
			if err != nil {
				return err
			}
			flagged, err := v.Flagged(p.ID)
			if err != nil {
				return err
			}
			err = q.scopes(v, p.ID, func(s *index.Scope) error {
				clears, err := newClearList(v, s, p.to)
				if err != nil {
					return err
				}
				return give(s, &lifetimeScope{*s, p.from, p.to, clears, marks, flagged})
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	visit := func(ctx context.Context, worker int, s *lifetimeScope, w *index.Walk) error {
		return counters[worker].visit(ctx, s, w)
	}
	if err := scan(ctx, v, q.Prefix, progress, scopes, visit, nil); err != nil {
		return nil, err
	}
	out := &lifetimeTable{}
	for i := range counters {
		out.merge(&counters[i].table)
	}
	return out, nil
}

// viewOf opens a view in which the pieces of a span are indexed, and ends those without an end where the view ends.
func (e *Engine) viewOf(ctx context.Context, pieces []stretch, span Span) (*index.View, error) {
	open := span.To.Kind == Latest || span.To.Kind == Now
	need := uint64(0)
	for i := range pieces {
		if !open {
			need = max(need, pieces[i].to.Offset)
		}
	}
	v, err := e.viewAt(ctx, need)
	if err != nil {
		return nil, err
	}
	if open {
		for i := range pieces {
			pieces[i].to = index.Behind(v.Applied())
		}
	}
	return v, nil
}

// lifetimeCounter counts on one goroutine.
type lifetimeCounter struct {
	q     *LifetimesQuery
	view  *index.View
	table lifetimeTable
	track tracker
	read  sequence
	scope *lifetimeScope
	err   error
}

func (c *lifetimeCounter) init(v *index.View, q *LifetimesQuery) {
	c.q, c.view = q, v
	c.track.clear = func(p index.Position) (index.Evidence, bool) {
		e, ok, err := c.scope.clears.behind(p)
		c.fail(err)
		return e, ok
	}
	c.track.marked = func(a, b index.Position) bool {
		ok, err := c.scope.marks.between(a, b)
		c.fail(err)
		return ok
	}
	c.track.emit = c.count
}

func (c *lifetimeCounter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// visit counts the objects of a part.
func (c *lifetimeCounter) visit(ctx context.Context, s *lifetimeScope, w *index.Walk) error {
	c.scope = s
	groups := c.q.By == "group" || c.q.Group != nil
	for n := 0; w.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.track.reset()
		rows := 0
		err := c.read.each(c.view, &s.Scope, w, s.to, groups, func(e *index.Event) error {
			if rows++; rows%(1<<16) == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c.track.event(e.Medium, &e.Evidence, e.Group)
			return c.err
		})
		if err != nil {
			return err
		}
		if c.track.finish(); c.err != nil {
			return c.err
		}
	}
	return nil
}

// count counts one lifetime, if it is asked for.
func (c *lifetimeCounter) count(l *lifetime) {
	q, s := c.q, c.scope
	if q.Medium != "" && q.Medium != l.medium || q.Group != nil && (l.group == nil || string(q.Group) != string(l.group)) {
		return
	}
	if l.how != stillOpen && !s.from.Before(l.end.Position) {
		return
	}
	var name []byte
	switch q.By {
	case "tenant":
		name = s.Tenant
	case "group":
		name = l.group
	}
	line := c.table.line(l.medium, name)
	if l.how == stillOpen {
		line.open++
		if !c.sure(&l.begin, s.to.Offset, l.begin.Window, nil) {
			line.openDoubtful++
		}
		return
	}
	line.count++
	line.by[l.how]++
	var cleared *index.Evidence
	if l.how == endedCleared {
		cleared = &l.end
	}
	sure := !l.end.Reading && c.sure(&l.begin, l.end.Position.Offset, l.begin.Window || l.end.Window, cleared)
	if !sure {
		line.doubtful++
	}
	if sure || q.Doubtful {
		measure(&line.took, &line.untimed, &l.begin, &l.end)
	}
	if l.how == endedUpsert {
		return
	}
	a := &line.again
	if l.next == nil {
		a.never++
		return
	}
	a.count++
	sure = cleared == nil && !l.next.Reading && c.sure(&l.end, l.next.Position.Offset, l.end.Window || l.next.Window, nil)
	if !sure {
		a.doubtful++
	}
	if sure || q.Doubtful {
		measure(&a.after, &a.untimed, &l.end, l.next)
	}
}

// sure reports whether what an event said stands unquestioned up to the record at offset, by the rules for answers: no mark is newer.
// window tells that one of the ends lies where nothing is proven, cleared is a clear that ended it.
func (c *lifetimeCounter) sure(e *index.Evidence, offset uint64, window bool, cleared *index.Evidence) bool {
	if e.Reading {
		return false // when it happened is not known
	}
	m := moment{source: c.scope.Source, at: index.Behind(offset)}
	if window {
		m.unproven = &inWindow
	}
	var err error
	m.mark, m.hasMark, err = c.scope.marks.newest(offset)
	c.fail(err)
	var clears scopeClears
	if cleared != nil {
		clears.newest, clears.hasNewest = *cleared, true
	}
	d := decide(&m, e, &clears, false)
	return d.confirmed() && !(d.present && c.scope.flagged[e.Epoch])
}

var inWindow = Doubt{Cause: DoubtWindow}

// measure counts a duration, where both ends have a time.
func measure(h *histogram, untimed *uint64, begin, end *index.Evidence) {
	if !begin.HasTime || !end.HasTime || end.Time < begin.Time {
		*untimed++
		return
	}
	h.add(end.Time - begin.Time)
}
