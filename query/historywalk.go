package query

import (
	"github.com/kvjournal/kvjournal/index"
)

// historyTouch is one thing that touched an object: exactly one of own, clear and mark is not nil, or of these only reading is. A mark
// stands before the first event of its first record.
type historyTouch struct {
	at    index.Position
	own   *index.Event
	clear *index.Clear
	mark  *index.Mark
	// reading speaks of the object, and agrees with what was known. Beside own it is the reading that corrected the object; says is
	// whether it speaks of the rest.
	reading *index.Reading
	says    bool
	// silent are readings before it that say nothing of the object, since the touch before, maxReadings at most.
	silent []index.Reading
}

// read reports whether it is what a reading of the master said.
func (o *historyTouch) read() bool { return o.reading != nil || o.own != nil && o.own.Reading }

// historyBounds are what a walk goes over: events and clears behind after, up to to; marks whose first record lies behind marksAfter, up to
// to.
type historyBounds struct {
	after, to  index.Position
	marksAfter uint64
	// skip is how many of the first touches are left out: those of one reading share a position.
	skip int
}

// bounds are those of a stretch, from the object's first event on.
func (p *historyOf) bounds(from, to index.Position) historyBounds {
	b := historyBounds{after: from, to: to, marksAfter: max(p.marksAfter, from.Offset)}
	if before := justBefore(p.first.Position); from.Before(before) {
		b.after = before
	}
	if end := p.end(); end.Before(to) {
		b.to = end
	}
	return b
}

// justBefore is the position that everything before p lies at or before.
func justBefore(p index.Position) index.Position {
	if p.Event == 0 {
		return index.Behind(p.Offset - 1)
	}
	return index.Position{Offset: p.Offset, Event: p.Event - 1}
}

// from are the bounds that begin with what lies at a position.
func (b historyBounds) from(at index.Position) historyBounds {
	before := justBefore(at)
	if b.after.Before(before) {
		b.after = before
	}
	if b.marksAfter = max(b.marksAfter, at.Offset); at.Event == 0 {
		b.marksAfter = at.Offset - 1
	}
	b.skip = 0
	return b
}

// or is b, or otherwise where b is nothing.
func (b historyBounds) or(otherwise historyBounds) historyBounds {
	if b == (historyBounds{}) {
		return otherwise
	}
	return b
}

// historyPageRows is how many clears or marks are held at once; tests make it small.
var historyPageRows = 256

// historyWalk merges an object's events, the clears of its scope and the marks of its source.
type historyWalk struct {
	p      *historyOf
	b      historyBounds
	back   bool
	own    *index.History
	event  index.Event // the next of own, where hasOwn
	hasOwn bool

	clears, marks, readings historyPage
	clearRows               []index.Clear
	markRows                []index.Mark
	readingRows             []index.Reading
	silent                  []index.Reading
	out                     historyTouch
	owns                    [2]index.Event // what out and the touch before it point to, in turn
	turn                    int
}

// historyPage says how far a page of rows was read.
type historyPage struct {
	next int
	done bool // nothing is behind the page
}

func (p *historyOf) walk(b historyBounds, back bool) (*historyWalk, error) {
	w := &historyWalk{p: p, b: b, back: back}
	var err error
	if w.own, err = p.view.Events(&p.object, b.after, b.to, back); err != nil {
		return nil, err
	}
	if err = w.step(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *historyWalk) close() error { return w.own.Close() }

// step reads the next own event.
func (w *historyWalk) step() error {
	ev, err := w.own.Next()
	if w.hasOwn = ev != nil; w.hasOwn {
		w.event = *ev
	}
	return err
}

// next returns what comes next, nil behind the last. It is valid until the next call, what it points to until the one behind that.
func (w *historyWalk) next() (*historyTouch, error) {
	w.silent = nil
	for {
		o, err := w.one()
		if err != nil || o == nil {
			return nil, err
		}
		if o.reading == nil {
			o.silent = w.silent
			return o, nil
		}
		if o.says, err = w.p.view.Says(o.reading, &w.p.object); err != nil {
			return nil, err
		}
		if o.own != nil || o.says {
			o.silent = w.silent
			return o, nil
		}
		if len(w.silent) == maxReadings {
			w.silent = append(w.silent[:0:0], w.silent[1:]...)
		}
		w.silent = append(w.silent, *o.reading)
	}
}

// one returns what comes next, readings that say nothing of the object too.
func (w *historyWalk) one() (*historyTouch, error) {
	if err := w.fill(); err != nil {
		return nil, err
	}
	var best historyTouch
	found := false
	take := func(o historyTouch) {
		if !found || w.back && best.at.Before(o.at) || !w.back && o.at.Before(best.at) {
			best, found = o, true
		}
	}
	if w.hasOwn {
		take(historyTouch{at: w.event.Position, own: &w.event})
	}
	if w.clears.next < len(w.clearRows) {
		c := &w.clearRows[w.clears.next]
		take(historyTouch{at: c.Position, clear: c})
	}
	if w.marks.next < len(w.markRows) {
		m := &w.markRows[w.marks.next]
		take(historyTouch{at: index.Position{Offset: m.From}, mark: m})
	}
	if w.readings.next < len(w.readingRows) {
		r := &w.readingRows[w.readings.next]
		take(historyTouch{at: r.Position, reading: r})
	}
	if !found {
		return nil, nil
	}
	switch {
	case best.own != nil:
		w.turn = 1 - w.turn
		w.owns[w.turn] = w.event
		best.own = &w.owns[w.turn]
		if w.readings.next < len(w.readingRows) && w.readingRows[w.readings.next].Position == best.at {
			reading := w.readingRows[w.readings.next]
			best.reading = &reading
			w.readings.next++
		}
		if err := w.step(); err != nil {
			return nil, err
		}
	case best.clear != nil:
		clear := *best.clear
		best.clear = &clear
		w.clears.next++
	case best.reading != nil:
		reading := *best.reading
		best.reading = &reading
		w.readings.next++
	default:
		mark := *best.mark
		best.mark = &mark
		w.marks.next++
	}
	w.out = best
	return &w.out, nil
}

// fill reads the next pages of clears, marks and readings, where the last are used up.
func (w *historyWalk) fill() error {
	var err error
	if w.clears.next == len(w.clearRows) && !w.clears.done {
		after, to := w.b.after, w.b.to
		if n := len(w.clearRows); n > 0 {
			if last := w.clearRows[n-1].Position; w.back {
				to = justBefore(last)
			} else {
				after = last
			}
		}
		if w.clearRows, err = w.p.view.ClearPage(w.clearRows[:0], w.p.scope(), after, to, w.back, historyPageRows); err != nil {
			return err
		}
		w.clears = historyPage{done: len(w.clearRows) < historyPageRows}
	}
	if w.marks.next == len(w.markRows) && !w.marks.done {
		after, to := w.b.marksAfter, w.b.to.Offset
		if n := len(w.markRows); n > 0 {
			if last := w.markRows[n-1].From; w.back {
				to = last - 1
			} else {
				after = last
			}
		}
		if w.markRows, err = w.p.view.MarkPage(w.markRows[:0], w.p.object.Source, after, to, w.back, historyPageRows); err != nil {
			return err
		}
		w.marks = historyPage{done: len(w.markRows) < historyPageRows}
	}
	if w.readings.next == len(w.readingRows) && !w.readings.done {
		after, to := w.b.after, w.b.to
		if n := len(w.readingRows); n > 0 {
			if last := w.readingRows[n-1].Position; w.back {
				to = justBefore(last)
			} else {
				after = last
			}
		}
		if w.readingRows, err = w.p.view.ReadingPage(w.readingRows[:0], w.p.scope(), after, to, w.back, historyPageRows); err != nil {
			return err
		}
		w.readings = historyPage{done: len(w.readingRows) < historyPageRows}
	}
	return nil
}

func (p *historyOf) scope() *index.Scope {
	return &index.Scope{Source: p.object.Source, Backend: p.object.Backend, Tenant: p.object.Tenant}
}
