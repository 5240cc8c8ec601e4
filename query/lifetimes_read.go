package query

import (
	"slices"

	"github.com/kvjournal/kvjournal/index"
)

// sequence reads the events of one object after another in the order of their positions. It is used again and again: nothing is
// allocated for objects with few events.
type sequence struct {
	rows   []index.Event
	arena  []byte // groups of rows
	groups []int  // where each row's group ends in arena
}

// Bounds of what is held in memory. They are variables so that tests reach beyond them.
var (
	// sequenceRows is how many events of an object are sorted in memory; more come through an index.History.
	sequenceRows = 4096
	// clearsKept is how many clears of a scope are held; where there are more, each is sought.
	clearsKept = 1 << 16
	// marksKept is how many marks of a source are held; where there are more, each is sought.
	marksKept = 1 << 19
)

// each calls f with the events, at or before to, of the object that w stands at. What f is given is valid until the object's
// last event; wantGroups tells that Group is wanted.
func (p *sequence) each(v *index.View, s *index.Scope, w *index.Walk, to index.Position, wantGroups bool, f func(*index.Event) error) error {
	p.rows, p.arena, p.groups = p.rows[:0], p.arena[:0], p.groups[:0]
	oneMedium := true
	for w.NextRowAt(to) {
		r := w.Row()
		if len(p.rows) == sequenceRows {
			return eachOfMany(v, s, w.Key(), to, f)
		}
		oneMedium = oneMedium && (len(p.rows) == 0 || r.Medium == p.rows[0].Medium)
		p.rows = append(p.rows, index.Event{Medium: r.Medium, Evidence: r.Evidence})
		if wantGroups {
			var err error
			if p.arena, err = r.AppendGroup(p.arena, w.Key()); err != nil {
				return err
			}
			p.groups = append(p.groups, len(p.arena))
		}
	}
	begin := 0
	for i, end := range p.groups {
		if p.rows[i].HasGroup {
			p.rows[i].Group = p.arena[begin:end:end]
		}
		begin = end
	}
	if oneMedium {
		slices.Reverse(p.rows)
	} else {
		// Corrections of one reading share a position: they stay in the order of the media.
		slices.SortStableFunc(p.rows, func(a, b index.Event) int { return a.Position.Compare(b.Position) })
	}
	for i := range p.rows {
		if err := f(&p.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachOfMany reads an object with many events.
func eachOfMany(v *index.View, s *index.Scope, key []byte, to index.Position, f func(*index.Event) error) error {
	h, err := v.History(&index.Object{Source: s.Source, Backend: s.Backend, Tenant: s.Tenant, Key: key}, index.Position{}, to, false)
	if err != nil {
		return err
	}
	defer h.Close()
	for {
		e, err := h.Next()
		if err != nil || e == nil {
			return err
		}
		kept := *e // the page is overwritten
		if err := f(&kept); err != nil {
			return err
		}
	}
}

// clearList finds the clears of a scope by position. It may be used by many goroutines.
type clearList struct {
	list []index.Evidence // in order; nil where there are too many
	many bool
	view *index.View
	s    *index.Scope
	to   index.Position
}

// newClearList reads the clears of a scope up to a position.
func newClearList(v *index.View, s *index.Scope, to index.Position) (*clearList, error) {
	c := &clearList{view: v, s: s, to: to}
	err := v.Clears(s, index.Position{}, to, func(cl *index.Clear) error {
		if len(c.list) == clearsKept {
			c.list, c.many = nil, true
			return errEnough
		}
		c.list = append(c.list, cl.Evidence)
		return nil
	})
	if err != nil && err != errEnough {
		return nil, err
	}
	return c, nil
}

// behind returns the first clear behind a position.
func (c *clearList) behind(p index.Position) (found index.Evidence, ok bool, err error) {
	if !c.many {
		i, exact := slices.BinarySearchFunc(c.list, p, func(e index.Evidence, p index.Position) int { return e.Position.Compare(p) })
		if exact {
			i++
		}
		if i == len(c.list) {
			return found, false, nil
		}
		return c.list[i], true, nil
	}
	err = c.view.Clears(c.s, p, c.to, func(cl *index.Clear) error {
		found, ok = cl.Evidence, true
		return errEnough
	})
	if err == errEnough {
		err = nil
	}
	return found, ok, err
}

// markList finds the marks of a source. It may be used by many goroutines.
type markList struct {
	list   []keptMark
	many   bool
	view   *index.View
	source uint32
}

type keptMark struct {
	from uint64
	end  index.Position
}

// newMarkList reads the marks of a source up to an offset.
func newMarkList(v *index.View, source uint32, to uint64) (*markList, error) {
	l := &markList{view: v, source: source}
	err := v.Marks(source, 0, to, func(m *index.Mark) error {
		if len(l.list) == marksKept {
			l.list, l.many = nil, true
			return errEnough
		}
		l.list = append(l.list, keptMark{m.From, m.End})
		return nil
	})
	if err != nil && err != errEnough {
		return nil, err
	}
	return l, nil
}

// newest returns the newest mark at or before the record at offset; only From and End of it are set.
func (l *markList) newest(offset uint64) (index.Mark, bool, error) {
	if l.many {
		return l.view.Mark(l.source, offset)
	}
	i, _ := slices.BinarySearchFunc(l.list, offset, func(m keptMark, o uint64) int {
		if m.from <= o {
			return -1
		}
		return 1
	})
	if i == 0 {
		return index.Mark{}, false, nil
	}
	return index.Mark{From: l.list[i-1].from, End: l.list[i-1].end}, true, nil
}

// between reports whether a mark lies between two positions of different batches.
func (l *markList) between(a, b index.Position) (bool, error) {
	if a.Offset == b.Offset {
		return false, nil
	}
	m, ok, err := l.newest(b.Offset)
	return ok && !m.End.Before(a), err
}
