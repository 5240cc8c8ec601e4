package recorder

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// Tally counts what the feeds of a recorder take, of this run. One goroutine counts, which is the recorder's writer: a run of events
// of the same kind costs it a comparison each and one atomic addition. Any others may read.
type Tally struct {
	mu     sync.Mutex // held to read the maps, and to add to them; the writer reads them without
	events map[string]*EventCount
	media  map[string]string // their labels
	names  map[string]string // of tenants
	faults map[faultKey]*FaultCount

	last *EventCount // what was counted last; the writer's
	raw  struct{ medium, tenant []byte }
	key  []byte
}

// How many labels of their own media and tenants get: the first that come. What comes later is counted as Other, so that a publisher
// cannot make metrics without bound.
const (
	TalliedMedia   = 8
	TalliedTenants = 50
	Other          = "other"
)

// EventCount counts events of a source, type, medium and tenant. Of a `cleared` Medium is empty.
type EventCount struct {
	Source         uint32
	Type           event.Type
	Medium, Tenant string
	n              atomic.Uint64
}

// Count is how many there were.
func (c *EventCount) Count() uint64 { return c.n.Load() }

// FaultCount counts gaps and marks of a source and cause.
type FaultCount struct {
	Source uint32
	Cause  continuity.Cause
	// Gaps are lines of `gaps`; Missing sequence numbers, and the events that they had at least and at most, where that is known.
	Gaps, Missing, LostMin, LostMax uint64
	// Marks put what was known before in doubt.
	Marks uint64
}

type faultKey struct {
	source uint32
	cause  continuity.Cause
}

// SourceTally counts messages of one source.
type SourceTally struct {
	messages, bytes, duplicates, damaged, seq atomic.Uint64
	received, time                            atomic.Int64
}

// SourceCount is a SourceTally of a moment.
type SourceCount struct {
	Messages, Bytes, Duplicates, Damaged uint64
	// Seq is the number of the newest message in this epoch, 0: none in this run.
	Seq uint64
	// Received is our clock at the newest message, Unix ns, Time the publisher's, Unix ms; 0: none in this run.
	Received, Time int64
}

func newTally() *Tally {
	return &Tally{events: map[string]*EventCount{}, media: map[string]string{}, names: map[string]string{}, faults: map[faultKey]*FaultCount{}}
}

// longestLabel is how long a label is at most, in bytes.
const longestLabel = 128

// label is the label of a name among those known; beyond most, and where it is too long or no text, it is Other.
func label(known map[string]string, name []byte, most int) string {
	if l, ok := known[string(name)]; ok {
		return l
	}
	if len(known) >= most || len(name) > longestLabel || !utf8.Valid(name) {
		return Other
	}
	l := string(name)
	known[l] = l
	return l
}

// batch counts the events of a message that is applied.
func (t *Tally) batch(source uint32, events []event.Event) {
	n := uint64(0)
	for i := range events {
		ev := &events[i]
		if c := t.last; c == nil || c.Type != ev.Type || c.Source != source || string(t.raw.medium) != string(ev.Medium) || string(t.raw.tenant) != string(ev.Tenant) {
			if n > 0 {
				t.last.n.Add(n)
				n = 0
			}
			t.kind(source, ev)
		}
		n++
	}
	if n > 0 {
		t.last.n.Add(n)
	}
}

// appendKind appends what tells one count of events from another.
func appendKind[T string | []byte](dst []byte, source uint32, of event.Type, medium, tenant T) []byte {
	dst = append(binary.BigEndian.AppendUint32(dst, source), byte(of))
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(medium))), medium...)
	return append(dst, tenant...)
}

// kind makes the count of an event the one that was counted last.
func (t *Tally) kind(source uint32, ev *event.Event) {
	t.raw.medium = append(t.raw.medium[:0], ev.Medium...)
	t.raw.tenant = append(t.raw.tenant[:0], ev.Tenant...)
	t.key = appendKind(t.key[:0], source, ev.Type, ev.Medium, ev.Tenant)
	if c := t.events[string(t.key)]; c != nil {
		t.last = c
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	medium, tenant := "", label(t.names, ev.Tenant, TalliedTenants)
	if ev.Type != event.Cleared {
		medium = label(t.media, ev.Medium, TalliedMedia)
	}
	t.key = appendKind(t.key[:0], source, ev.Type, medium, tenant)
	c := t.events[string(t.key)]
	if c == nil {
		c = &EventCount{Source: source, Type: ev.Type, Medium: medium, Tenant: tenant}
		t.events[string(t.key)] = c
	}
	t.last = c
}

// fault counts the gap and the mark of a record.
func (t *Tally) fault(source uint32, v *continuity.Verdict) {
	if v.Gap.Cause == continuity.CauseNone && v.Mark == continuity.NoMark {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := func(cause continuity.Cause) *FaultCount {
		k := faultKey{source, cause}
		c := t.faults[k]
		if c == nil {
			c = &FaultCount{Source: source, Cause: cause}
			t.faults[k] = c
		}
		return c
	}
	if g := v.Gap; g.Cause != continuity.CauseNone {
		c := of(g.Cause)
		c.Gaps++
		c.Missing += g.Missing()
		if g.Lost != continuity.LostUnknown {
			c.LostMin += g.Min
			c.LostMax += max(g.Min, g.Max)
		}
	}
	if v.Mark != continuity.NoMark {
		of(v.MarkCause).Marks++
	}
}

// message counts a message of a source.
func (t *Tally) message(s *SourceTally, h *journal.Header, size int, events []event.Event) {
	s.messages.Add(1)
	s.bytes.Add(uint64(size))
	s.received.Store(h.Received)
	switch {
	case h.Stale:
		return
	case h.Duplicate:
		s.duplicates.Add(1)
		return
	case h.Damage != event.None:
		s.damaged.Add(1)
	default:
		t.batch(h.Source, events)
	}
	if h.HasSeq {
		s.seq.Store(h.Seq)
	}
	if h.HasTime {
		s.time.Store(h.Time)
	}
	t.fault(h.Source, &h.Verdict)
}

// Events are the counts of events, of a moment.
func (t *Tally) Events() []*EventCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*EventCount, 0, len(t.events))
	for _, c := range t.events {
		out = append(out, c)
	}
	return out
}

// Faults are the counts of gaps and marks, of a moment.
func (t *Tally) Faults() []FaultCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]FaultCount, 0, len(t.faults))
	for _, c := range t.faults {
		out = append(out, *c)
	}
	return out
}

func (s *SourceTally) count() SourceCount {
	return SourceCount{
		Messages: s.messages.Load(), Bytes: s.bytes.Load(), Duplicates: s.duplicates.Load(), Damaged: s.damaged.Load(),
		Seq: s.seq.Load(), Received: s.received.Load(), Time: s.time.Load(),
	}
}

// Tally returns what is counted of all sources.
func (r *Recorder) Tally() *Tally { return r.tally }

// Counted returns what is counted of a source's messages; the zero value where it is not recorded.
func (r *Recorder) Counted(source uint32) SourceCount {
	if i := r.indexOf(source); i >= 0 {
		return r.feeds[i].counted.count()
	}
	return SourceCount{}
}
