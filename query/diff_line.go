package query

import (
	"encoding/json"
	"sync"

	"github.com/kvjournal/kvjournal/index"
)

// changes are what a task has found.
type changes struct {
	list    []change
	objects []changedObject
	arena   []byte
}

// changesPool holds changes that were taken.
var changesPool = sync.Pool{New: func() any { return &changes{} }}

func (c *changes) free() {
	c.list, c.objects, c.arena = c.list[:0], c.objects[:0], c.arena[:0]
	changesPool.Put(c)
}

// changedObject is an object with changes: its key and group are in the arena.
type changedObject struct {
	key, group, end int
	hasGroup        bool
}

// change is one medium of an object that it was gained on or lost from.
type change struct {
	object   int // in objects
	first    bool
	medium   string
	gained   bool
	from, to why
	// event is what it ended in; cleared: a clear, and nothing is known of an event of the object.
	event    index.Evidence
	hasEvent bool
	cleared  bool
}

// object takes the object whose changes follow.
func (c *changes) object(key []byte, at *standing) int {
	o := changedObject{key: len(c.arena), hasGroup: at.hasGroup}
	c.arena = append(c.arena, key...)
	o.group = len(c.arena)
	c.arena = append(c.arena, at.group...)
	o.end = len(c.arena)
	c.objects = append(c.objects, o)
	return len(c.objects) - 1
}

// add takes a change of a medium from one standing to another; after is the first moment, clears are those at the second.
func (c *changes) add(object int, a, b *mediumStanding, after index.Position, clears *scopeClears) {
	n := change{object: object, medium: b.name, gained: b.present, from: a.doubt, to: b.doubt}
	n.first = len(c.list) == 0 || c.list[len(c.list)-1].object != object
	switch {
	case b.has && b.newest.Stored == b.present && after.Before(b.newest.Position):
		n.event, n.hasEvent = b.newest, true
	case b.has && b.newest.Stored && !b.present:
		n.event, n.hasEvent, n.cleared = clears.newest, true, true
	case b.evidence != nil:
		n.event, n.hasEvent, n.cleared = *b.evidence, true, b.cleared
	}
	c.list = append(c.list, n)
}

// Gained and Lost are what a change can be.
const (
	Gained = "gained"
	Lost   = "lost"
)

// ChangeLine is one change. It writes its JSON itself.
type ChangeLine struct {
	pair   *scopePair
	batch  *changes
	change *change
	second secondText
}

func (l *ChangeLine) key() []byte {
	o := &l.batch.objects[l.change.object]
	return l.batch.arena[o.key:o.group]
}

// group is nil where the object has none.
func (l *ChangeLine) group() Bytes {
	o := &l.batch.objects[l.change.object]
	if !o.hasGroup {
		return nil
	}
	return l.batch.arena[o.group:o.end:o.end]
}

// certain reports whether what is known at the second moment is confirmed.
func (l *ChangeLine) certain() bool { return l.change.to == sure }

func (l *ChangeLine) name() Name {
	return Name{Source: l.pair.a.source, Backend: notNil(l.pair.Backend), Tenant: notNil(l.pair.Tenant), Key: l.key()}
}

// AppendJSON appends the change as ChangeOut's JSON.
func (l *ChangeLine) AppendJSON(dst []byte) []byte {
	if l.pair.name == nil {
		n := l.name()
		n.Key = nil
		l.pair.name = n.appendJSON(nil)
	}
	dst = append(append(dst, '{'), l.pair.name...)
	dst = appendBytes(dst, "object_key", l.key())
	c := l.change
	dst = append(append(append(dst, `"change":"`...), changeName(c.gained)...), `","medium":`...)
	dst = append(appendString(dst, c.medium), ',')
	dst = l.appendCertainty(dst, "from", c.from, 0, l.pair.a)
	dst = l.appendCertainty(dst, "to", c.to, 1, l.pair.b)
	dst = appendBytes(dst, "group_id", l.group())
	if c.hasEvent {
		cause := eventCause(&c.event)
		if c.cleared {
			cause = "cleared"
		}
		dst = append(l.second.appendEvidence(append(dst, `"event":{`...), &c.event, cause), ',')
	}
	return endObject(dst)
}

func (l *ChangeLine) appendCertainty(dst []byte, end string, w why, n int, at *scopeAt) []byte {
	dst = append(append(append(dst, `"certainty_`...), end...), `":"`...)
	dst = append(append(dst, certaintyName(w == sure)...), `",`...)
	if w == sure {
		return dst
	}
	text := &l.pair.text[n][w]
	if *text == nil {
		d := decision{doubt: w}
		if at.clears.hasNewest {
			d.evidence = &at.clears.newest
		}
		*text = mustJSON(d.out(at.moment).Doubt)
	}
	dst = append(append(append(dst, `"doubt_`...), end...), `":`...)
	return append(append(dst, *text...), ',')
}

func changeName(gained bool) string {
	if gained {
		return Gained
	}
	return Lost
}

// ChangeOut is one change of a diff.
type ChangeOut struct {
	Name Name
	// Change is Gained or Lost.
	Change string
	Medium string
	// CertaintyFrom and CertaintyTo are of the medium at the two moments; the doubts are nil where it is confirmed.
	CertaintyFrom, CertaintyTo string
	DoubtFrom, DoubtTo         *Doubt
	// Group is nil where the object has none.
	Group Bytes
	// Event is what it ended in, nil where that is not known.
	Event *EvidenceOut
}

type changeJSON struct {
	nameJSON
	Change        string       `json:"change"`
	Medium        string       `json:"medium"`
	CertaintyFrom string       `json:"certainty_from"`
	CertaintyTo   string       `json:"certainty_to"`
	DoubtFrom     *Doubt       `json:"doubt_from"`
	DoubtTo       *Doubt       `json:"doubt_to"`
	Event         *EvidenceOut `json:"event"`
	groupJSON
}

// UnmarshalJSON reads what ChangeLine.AppendJSON wrote.
func (c *ChangeOut) UnmarshalJSON(b []byte) error {
	var w changeJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*c = ChangeOut{Change: w.Change, Medium: w.Medium, CertaintyFrom: w.CertaintyFrom, CertaintyTo: w.CertaintyTo, DoubtFrom: w.DoubtFrom, DoubtTo: w.DoubtTo, Event: w.Event}
	var err error
	if c.Group, err = w.groupJSON.bytes(); err != nil {
		return err
	}
	return c.Name.read(&w.nameJSON)
}
