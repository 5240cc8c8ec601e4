package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/kvjournal/kvjournal/index"
)

// InDoubt says what a loss put in doubt. The marks of a loss lie behind Before, the last message before it, so what counts is the
// state behind Before, judged by the marks up to there:
//
//   - Objects were present, as last known, on some medium, and sure: by a `stored` newer than the newest mark, or by a reading of the
//     master newer than it. They no longer are sure.
//   - AlreadyInDoubt were present too, but an older mark was newer than all that said so, or the master changes things without an
//     event.
//
// Of several losses behind the same message (a gap, and the damaged message that shows it) the first put all in doubt, and the others
// nothing anew. What was absent, or never seen, is not counted: there is no end to it.
type InDoubt struct {
	Objects        uint64 `json:"objects"`
	AlreadyInDoubt uint64 `json:"already_in_doubt"`
	// Scopes are those of Objects, the most first, 100 at most; ScopesTotal is how many there are.
	Scopes      []ScopeInDoubt `json:"scopes"`
	ScopesTotal uint64         `json:"scopes_total"`
}

// ScopeInDoubt is how many objects of a scope a loss put in doubt.
type ScopeInDoubt struct {
	Backend Bytes
	Tenant  Bytes
	Objects uint64
}

// AppendJSON writes the scope as the command-line contract has names.
func (s ScopeInDoubt) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendBytes(dst, "backend_id", s.Backend)
	dst = appendBytes(dst, "tenant_id", s.Tenant)
	return endObject(appendUint(dst, "objects", s.Objects))
}

// MarshalJSON writes what AppendJSON does.
func (s ScopeInDoubt) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *ScopeInDoubt) UnmarshalJSON(b []byte) error {
	var w struct {
		nameJSON
		Objects uint64 `json:"objects"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	var n Name
	if err := n.read(&w.nameJSON); err != nil {
		return err
	}
	*s = ScopeInDoubt{n.Backend, n.Tenant, w.Objects}
	return nil
}

// scopesInDoubt is how many scopes of a loss are named.
const scopesInDoubt = 100

// doubts counts, for many positions of one source at once, how many objects were present behind each, and how many of those
// surely. Each object adds to differences between neighbouring positions, so that the work grows with the events and not with objects ×
// positions.
type doubts struct {
	source uint32
	// at are offsets, ascending; ends where the newest mark at or before each ends, zero where there is none.
	at      []uint64
	ends    []index.Position
	flagged map[uint64]bool // epochs (R11)

	found  []foundInDoubt
	scopes []*index.Scope // that found names, by number
}

// foundInDoubt is what is counted behind one position.
type foundInDoubt struct {
	objects, already, scopes uint64
	top                      []scopeCount // the largest scopes, and a few more
}

type scopeCount struct{ scope, objects uint32 }

// newDoubts prepares to count behind the records at these offsets, which ascend.
func newDoubts(v *index.View, source uint32, at []uint64) (*doubts, error) {
	d := &doubts{source: source, at: at, ends: make([]index.Position, len(at)), found: make([]foundInDoubt, len(at))}
	var newest index.Position
	i := 0
	err := v.Marks(source, 0, at[len(at)-1], func(m *index.Mark) error {
		for ; i < len(at) && at[i] < m.From; i++ {
			d.ends[i] = newest
		}
		newest = m.End
		return nil
	})
	for ; i < len(at); i++ {
		d.ends[i] = newest
	}
	if err == nil {
		d.flagged, err = v.Flagged(source)
	}
	return d, err
}

// to is the last position that counts.
func (d *doubts) to() index.Position { return index.Behind(d.at[len(d.at)-1]) }

// first is the first of at from that offset on.
func (d *doubts) first(offset uint64) int {
	i, _ := slices.BinarySearch(d.at, offset)
	return i
}

// doubted is the first of at from i to j behind which evidence at p is in doubt, j where there is none.
func (d *doubts) doubted(i, j int, p index.Position) int {
	if i < j && !d.ends[i].Before(p) {
		return i
	}
	n, _ := slices.BinarySearchFunc(d.ends[i:j], p, func(end, p index.Position) int {
		if end.Before(p) {
			return -1
		}
		return 1
	})
	return i + n
}

// doubtScope is what is counted of one scope.
type doubtScope struct {
	*index.Scope
	clears   *clearList
	readings *doubtReadings

	mu         sync.Mutex
	sure, read steps
}

// steps are changes of a number along the positions of doubts: by[i] is added from position i on.
type steps struct{ by map[int]int64 }

func (s *steps) add(i, j int) {
	if s.by == nil {
		s.by = map[int]int64{}
	}
	s.by[i]++
	s.by[j]--
}

func (s *steps) merge(o *steps) {
	if s.by == nil {
		s.by = o.by
		return
	}
	for i, n := range o.by {
		s.by[i] += n
	}
}

// each calls f with each position where the number is not zero.
func (s *steps) each(f func(i int, n uint64)) {
	s.spans(func(i, j int, n uint64) {
		for ; i < j; i++ {
			f(i, n)
		}
	})
}

// spans calls f with each range of positions where the number is the same and not zero.
func (s *steps) spans(f func(i, j int, n uint64)) {
	at := make([]int, 0, len(s.by))
	for i := range s.by {
		at = append(at, i)
	}
	slices.Sort(at)
	n := int64(0)
	for k, i := range at {
		if n += s.by[i]; n != 0 && k+1 < len(at) {
			f(i, at[k+1], uint64(n))
		}
	}
}

// count counts over the objects of the source.
func (d *doubts) count(ctx context.Context, v *index.View, progress Progress) error {
	counters := make([]doubtCounter, scanners())
	for i := range counters {
		counters[i] = doubtCounter{doubts: d, view: v, present: make([]int64, len(d.at)+1)}
	}
	scopes := func(give func(*index.Scope, *doubtScope) error) error {
		return v.Scopes(d.source, func(s index.Scope) error {
			clears, err := newClearList(v, &s, d.to())
			if err != nil {
				return err
			}
			readings, err := d.readings(v, &s)
			if err != nil {
				return err
			}
			return give(&s, &doubtScope{Scope: &s, clears: clears, readings: readings})
		})
	}
	visit := func(ctx context.Context, worker int, s *doubtScope, w *index.Walk) error {
		return counters[worker].visit(ctx, s, w)
	}
	if err := scan(ctx, v, nil, progress, scopes, visit, d.ended); err != nil {
		return err
	}
	sum := int64(0)
	for i := range d.found {
		for n := range counters {
			sum += counters[n].present[i]
		}
		d.found[i].already = uint64(sum) - d.found[i].objects
	}
	return nil
}

// ended takes what was counted of a whole scope.
func (d *doubts) ended(s *doubtScope) {
	number := uint32(len(d.scopes))
	s.each(func(i int, n uint64) {
		if int(number) == len(d.scopes) {
			d.scopes = append(d.scopes, s.Scope)
		}
		f := &d.found[i]
		f.objects += n
		f.scopes++
		if f.top = append(f.top, scopeCount{number, uint32(min(n, math.MaxUint32))}); len(f.top) >= scopesInDoubt+scopesInDoubt/4 {
			d.trim(f)
		}
	})
}

// trim leaves the largest scopes, in order.
func (d *doubts) trim(f *foundInDoubt) {
	slices.SortFunc(f.top, func(a, b scopeCount) int {
		s, t := d.scopes[a.scope], d.scopes[b.scope]
		return cmp.Or(cmp.Compare(b.objects, a.objects), bytes.Compare(s.Backend, t.Backend), bytes.Compare(s.Tenant, t.Tenant))
	})
	f.top = f.top[:min(len(f.top), scopesInDoubt)]
}

// out is what was counted behind the record at an offset that is one of at.
func (d *doubts) out(offset uint64) *InDoubt {
	f := &d.found[d.first(offset)]
	d.trim(f)
	out := &InDoubt{Objects: f.objects, AlreadyInDoubt: f.already, Scopes: make([]ScopeInDoubt, len(f.top)), ScopesTotal: f.scopes}
	for i, t := range f.top {
		s := d.scopes[t.scope]
		out.Scopes[i] = ScopeInDoubt{s.Backend, s.Tenant, uint64(t.objects)}
	}
	return out
}

// doubtCounter counts on one goroutine.
type doubtCounter struct {
	doubts  *doubts
	view    *index.View
	present []int64 // differences

	scope      *doubtScope
	sure, read steps // of the part
	rows       sequence
	holds      holding
	since      index.Position // of the last change
	said       saidOf
}

// visit counts the objects of a part.
func (c *doubtCounter) visit(ctx context.Context, s *doubtScope, w *index.Walk) error {
	d := c.doubts
	c.scope, c.sure, c.read = s, steps{}, steps{}
	rows := 0
	event := func(e *index.Event) error {
		if rows++; rows%(1<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.event(e)
	}
	for n := 0; w.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.holds.reset()
		c.since = index.Position{}
		if err := c.said.object(c.view, s, w.Key()); err != nil {
			return err
		}
		if err := c.rows.each(c.view, s.Scope, w, d.to(), false, event); err != nil {
			return err
		}
		if err := c.clear(d.to()); err != nil {
			return err
		}
		if err := c.last(w.Key()); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sure.merge(&c.sure)
	s.read.merge(&c.read)
	return nil
}

// last counts behind the object's last change. An event behind all positions may still touch a reading before the last of them.
func (c *doubtCounter) last(key []byte) error {
	next := index.Behind(math.MaxUint64)
	if r := c.scope.readings; c.holds.n > 0 && r.beyond(c.doubts.to()) {
		o := index.Object{Source: c.scope.Source, Backend: c.scope.Backend, Tenant: c.scope.Tenant, Key: key}
		h, err := c.view.History(&o, c.doubts.to(), index.Behind(r.newest().Through), false)
		if err != nil {
			return err
		}
		e, err := h.Next()
		if e != nil {
			next = e.Position
		}
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	c.until(len(c.doubts.at), next, true)
	return nil
}

// event takes the object's next event.
func (c *doubtCounter) event(e *index.Event) error {
	if err := c.clear(e.Position); err != nil {
		return err
	}
	c.until(c.doubts.first(e.Position.Offset), e.Position, true)
	c.holds.remove(e.Medium)
	if e.Stored {
		c.holds.add(e.Medium, e.Position, c.doubts.flagged[e.Epoch])
	}
	c.since = e.Position
	return nil
}

// clear takes the first clear since the last change, if it lies before p.
func (c *doubtCounter) clear(p index.Position) error {
	if c.holds.n == 0 {
		return nil
	}
	e, ok, err := c.scope.clears.behind(c.since)
	if err == nil && ok && e.Position.Before(p) {
		c.until(c.doubts.first(e.Position.Offset), e.Position, false)
		c.holds.reset()
		c.since = e.Position
	}
	return err
}

// until counts the object behind all positions from the last change on, up to number j, which does not count. next is the next change,
// touches tells that it is an event of the object.
func (c *doubtCounter) until(j int, next index.Position, touches bool) {
	if c.holds.n == 0 {
		return
	}
	i := c.doubts.first(c.since.Offset)
	if i < j {
		c.present[i]++
		c.present[j]--
	}
	c.sureUntil(i, j, next, touches)
}
