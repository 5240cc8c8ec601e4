package oracle

import (
	"bytes"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// Object names an object of the one source. All three are bytes, not text.
type Object struct{ Backend, Tenant, Key string }

// State is an answer about one object on one medium. When not confirmed, Present is the last known state.
type State struct{ Present, Confirmed bool }

type scope struct{ backend, tenant string }

func (o Object) scope() scope { return scope{o.Backend, o.Tenant} }

type placement struct {
	object Object
	medium string
}

// happening is an event at its place in the stream. An event at offset o of a mark at o-1 is newer than the mark, one at
// the offset of the mark itself is not.
type happening struct {
	offset uint64
	index  int // in its batch
	stored bool
	proof  bool // of a clear: it may prove absence (R7)
	read   bool // it is no event but what a reading found
}

func (h happening) before(g happening) bool {
	return h.offset < g.offset || h.offset == g.offset && h.index < g.index
}

// fact is what the oracle holds about the position behind one record.
type fact struct {
	// message is the offset of the newest message that is no duplicate, at or before this record.
	message uint64
	// doubt: evidence at or before this offset confirms nothing. It is the newest mark.
	doubt uint64
	// cut is the object whose change may be cut in two behind this record (R8).
	cut *Object
	// cutOn is the medium of that object's event.
	cutOn string
	// unproven: the position lies in a window of R5 that holds messages.
	unproven bool
	epoch    uint64
	links    int // how many connection records there were
}

// arrival is a message that is no duplicate.
type arrival struct {
	offset  uint64
	timed   bool  // time is its own
	time    int64 // ms; where it has none of its own, its predecessor's
	dated   bool  // false if no predecessor has a time either
	follows bool  // R3: nothing is missing between it and its predecessor
}

// Oracle holds one source. The zero Oracle is not ready: use New. It is not safe for concurrent use while Apply runs.
type Oracle struct {
	repairs Repairs

	facts    []fact // facts[o] is behind offset o; facts[0] is before everything
	arrivals []arrival
	events   map[placement][]happening
	clears   map[scope][]happening
	media    map[Object]map[string]bool
	gaps     []Gap
	readings []*Reading
	flagged  map[uint64]bool // epochs (R11)

	last   previous
	window struct {
		open    bool
		holds   bool   // a message lies in it
		resting uint64 // the offset of the last message before it
	}
}

// previous is what the next message is held against.
type previous struct {
	frames [][]byte
	seq    uint64 // 0: none yet
	known  bool   // id is known
	id     uint64 // of the last event
	epoch  uint64
	fresh  bool // the connection is new: no readable message came over it
	keyed  bool // this process has sent an event of an object (R7)
	whole  bool // every message of this process was heard, and could be read
}

// Repairs are stricter readings of rules that, as written, confirm what need not be so. They only withhold.
type Repairs struct {
	// Clears (R7): a cleared proves absence only if nothing of the process was missed before it, or if an earlier cleared
	// of its scope is newer than the newest mark. Else the remove-all may have begun before the mark, and what was stored
	// while it ran may have been announced in the part that was missed. It takes for granted that two remove-alls of one
	// scope do not overlap.
	Clears bool
	// Undated (R8): where messages without a time of their own lie behind the last batch with time <= T, T may lie behind
	// any of them. An answer is confirmed only if it is confirmed, and the same, behind each.
	Undated bool
}

// New returns an oracle of the rules as written. It knows no record.
func New() *Oracle { return NewRepaired(Repairs{}) }

// NewRepaired returns an oracle of the rules with repairs.
func NewRepaired(r Repairs) *Oracle {
	o := &Oracle{
		repairs: r,

		facts:  make([]fact, 1),
		events: map[placement][]happening{},
		clears: map[scope][]happening{},
		media:  map[Object]map[string]bool{},
	}
	o.last.epoch = 1
	o.last.known = true // a process numbers its events from 1
	return o
}

// Apply takes the next record. It keeps rec.Frames.
func (o *Oracle) Apply(rec capture.Record) {
	offset := uint64(len(o.facts))
	now := o.facts[offset-1]
	switch rec.Kind {
	case capture.Disconnected:
		now.links++
		o.last.fresh = true
		if !o.window.open {
			o.window.open, o.window.holds, o.window.resting = true, false, now.message
		}
	case capture.Connected:
		now.links++
		o.last.fresh = true
		if o.window.open && o.window.holds {
			now.doubt, now.cut, now.unproven = offset, nil, false
			o.last.whole = false
		}
		o.window.open = false
	case capture.Message:
		if sameFrames(rec.Frames, o.last.frames) {
			break
		}
		o.last.frames = rec.Frames
		now.message = offset
		o.message(offset, rec, &now)
		if o.window.open {
			o.window.holds, now.unproven = true, true
		}
	}
	now.epoch = o.last.epoch
	o.facts = append(o.facts, now)
}

func sameFrames(a, b [][]byte) bool {
	if a == nil || b == nil || len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

const (
	fullBatch = 64
	hourMS    = 3600 * 1000
)

// message takes a message that is no duplicate.
func (o *Oracle) message(offset uint64, rec capture.Record, now *fact) {
	var b event.Batch
	b.Scan(rec.Frames)
	now.cut = nil

	a := arrival{offset: offset}
	if n := len(o.arrivals); n > 0 {
		a.time, a.dated = o.arrivals[n-1].time, o.arrivals[n-1].dated
	}
	if b.HasTime && b.Time <= rec.Received/1e6+hourMS {
		a.timed, a.dated, a.time = true, true, b.Time
	}
	before := o.facts[offset-1].message
	if b.HasSeq {
		still := o.window.open && o.last.goesOn(&b)
		var v verdict
		if !still {
			v = o.last.judge(&b)
		}
		a.follows = v.follows
		now.doubt = max(now.doubt, v.doubt(offset))
		if v.gap != nil {
			v.gap.Before, v.gap.After = before, offset
			o.gaps = append(o.gaps, *v.gap)
		}
		o.last.advance(&b, v)
		o.last.fresh = o.last.fresh || still
	}
	o.arrivals = append(o.arrivals, a)
	if b.Damage != event.None {
		now.doubt, o.last.whole = offset, false
		o.gaps = append(o.gaps, damageLine(&b, o.last.epoch, before, offset))
		return
	}
	if n := len(b.Events); n >= fullBatch && b.Events[n-1].Type != event.Cleared {
		last := objectOf(&b.Events[n-1])
		now.cut, now.cutOn = &last, string(b.Events[n-1].Medium)
	}
	for i := range b.Events {
		o.event(offset, i, &b.Events[i], now.doubt)
	}
}

func objectOf(e *event.Event) Object {
	return Object{string(e.Backend), string(e.Tenant), string(e.Key)}
}

// clearedSince says whether a cleared of s is newer than the mark at doubt.
func (o *Oracle) clearedSince(s scope, doubt uint64) bool {
	list := o.clears[s]
	return len(list) > 0 && list[len(list)-1].offset > doubt
}

// event takes an event of a message behind which the newest mark is doubt.
func (o *Oracle) event(offset uint64, index int, e *event.Event, doubt uint64) {
	h := happening{offset: offset, index: index}
	if e.Type == event.Cleared {
		s := scope{string(e.Backend), string(e.Tenant)}
		h.proof = o.last.keyed && (!o.repairs.Clears || o.last.whole || o.clearedSince(s, doubt))
		o.clears[s] = append(o.clears[s], h)
		return
	}
	o.last.keyed = true
	h.stored = e.Type == event.Stored
	p := placement{objectOf(e), string(e.Medium)}
	o.events[p] = append(o.events[p], h)
	if o.media[p.object] == nil {
		o.media[p.object] = map[string]bool{}
	}
	o.media[p.object][p.medium] = true
}
