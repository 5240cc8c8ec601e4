package index

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// History reads the events of one object in the order of their positions, over all media, a page at a time: what it keeps does not
// grow with their number. Close it.
type History struct {
	it       *pebble.Iterator
	prefix   []byte // of the object's keys, up to the medium
	key      []byte // of the object
	from, to Position
	back     bool // the newest first
	media    []*track
	page     int
	buf      []byte

	past *objectPast // where not nil, all comes from there
	left []uint16    // what Next has to give of it
}

// track is one medium of an object.
type track struct {
	medium []byte // as in keys
	rows   []Event
	next   int  // in rows
	begun  bool // last is a row that was read
	done   bool // nothing is behind rows
	last   Position
}

// Event is one event of an object, as a History gives it.
type Event struct {
	Medium string
	Evidence
	// Group is the group_id, nil where the event had none.
	Group []byte
}

// historyRows is how many rows are kept at most, over all media.
const historyRows = 4096

// History opens the events of an object behind from, up to to; with back, the newest come first. Several of one view may be opened by goroutines of
// their own.
func (v *View) History(o *Object, from, to Position, back bool) (*History, error) {
	h := &History{key: bytes.Clone(o.Key), from: from, to: to, back: back}
	h.prefix = appendObject(appendScope([]byte{keyHistory}, o.Source, o.Backend, o.Tenant), o.Key)
	var err error
	if h.it, err = v.rows(h.prefix, successor(h.prefix)); err != nil {
		return nil, err
	}
	for ok := h.it.First(); ok; {
		b := h.it.Key()[len(h.prefix):]
		_, rest, valid := cutMedium(b)
		if !valid {
			h.it.Close()
			return nil, errEvidence
		}
		t := &track{medium: bytes.Clone(b[:len(b)-len(rest)]), last: from}
		if back {
			t.last = to
		}
		h.media = append(h.media, t)
		ok = h.it.SeekGE(append(h.at(t), 0xff))
	}
	h.page = max(1, min(64, historyRows/max(1, len(h.media))))
	return h, h.it.Error()
}

// at is the beginning of a medium's keys.
func (h *History) at(t *track) []byte {
	h.buf = append(append(h.buf[:0], h.prefix...), t.medium...)
	return h.buf
}

// Next returns the next event, nil behind the last. It is valid until the next call, and not changed.
func (h *History) Next() (*Event, error) {
	if h.past != nil {
		return h.past.next(&h.left), nil
	}
	var best *track
	for _, t := range h.media {
		if t.next == len(t.rows) && !t.done {
			if err := h.fill(t); err != nil {
				return nil, err
			}
		}
		if t.next < len(t.rows) && (best == nil || h.sooner(t.rows[t.next].Position, best.rows[best.next].Position)) {
			best = t
		}
	}
	if best == nil {
		return nil, nil
	}
	best.next++
	return &best.rows[best.next-1], nil
}

func (h *History) sooner(p, q Position) bool {
	if h.back {
		return q.Before(p)
	}
	return p.Before(q)
}

// fill reads the next page of a medium.
func (h *History) fill(t *track) error {
	t.rows, t.next = t.rows[:0], 0
	start := appendPosition(h.at(t), t.last)
	n := len(h.prefix) + len(t.medium)
	var ok bool
	switch {
	case !h.back:
		ok = h.it.SeekLT(start) // newer positions have smaller keys
	default:
		if ok = h.it.SeekGE(start); ok && t.begun && bytes.Equal(h.it.Key(), start) {
			ok = h.it.Next()
		}
	}
	for ok && len(t.rows) < h.page {
		k := h.it.Key()
		if len(k) < n || !bytes.Equal(k[:n], start[:n]) {
			break
		}
		p, valid := cutPosition(k[n:])
		if !valid {
			return errEvidence
		}
		if h.back && !h.from.Before(p) || !h.back && h.to.Before(p) {
			break
		}
		if err := h.row(t, p); err != nil {
			return err
		}
		t.last, t.begun = p, true
		if h.back {
			ok = h.it.Next()
		} else {
			ok = h.it.Prev()
		}
	}
	t.done = len(t.rows) < h.page
	return h.it.Error()
}

func (h *History) row(t *track, p Position) error {
	v, err := h.it.ValueAndErr()
	if err != nil {
		return err
	}
	name, _, _ := cutMedium(t.medium)
	evidence, group := cutEvidence(v, p)
	if group.Bad {
		return errEvidence
	}
	e := Event{Medium: name, Evidence: evidence}
	if e.HasGroup {
		if e.Group, err = appendGroupOf([]byte{}, group, h.key); err != nil {
			return err
		}
	}
	t.rows = append(t.rows, e)
	return nil
}

// Close ends the reading.
func (h *History) Close() error {
	if h.past != nil {
		h.past.users--
		return nil
	}
	return h.it.Close()
}
