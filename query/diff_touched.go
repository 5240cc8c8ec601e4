package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// touched collects the objects that events between two moments are about, and the scopes that are cleared. What it keeps is
// bounded: full tells when to look them up.
type touched struct {
	d       *differ
	scan    event.Batch
	scopes  []index.Scope
	numbers map[string]uint32 // of scopes, by source, backend and tenant
	named   int               // bytes of their names
	last    uint32            // number of the scope of the event before
	name    []byte
	entries []touchedKey
	arena   []byte
}

// touchedKey is one object, or, with an empty key, a scope that was cleared.
type touchedKey struct {
	first    uint64 // the first 8 bytes of the key, which decide most comparisons
	at, size uint32 // the key, in arena
	scope    uint32
}

// Bounds of what is collected: keys in bytes, and scopes for each object of a chunk.
const (
	touchedBytes  = 64 << 20
	scopesInChunk = 8
)

func newTouched(d *differ) *touched { return &touched{d: d, numbers: map[string]uint32{}} }

func (t *touched) forget() {
	clear(t.numbers)
	clear(t.scopes) // the names can go
	t.named = 0
	t.scopes, t.entries, t.arena = t.scopes[:0], t.entries[:0], t.arena[:0]
}

// record takes one record between the moments.
func (t *touched) record(ctx context.Context, r *record) error {
	t.d.sum.record(r)
	if r.Kind == journal.ReconciliationBegun {
		return t.corrections(ctx, r)
	}
	if !r.Applies() {
		return nil
	}
	frames, err := r.Frames()
	if err != nil {
		return err
	}
	t.scan.Scan(frames)
	if t.scan.Damage != event.None || uint32(len(t.scan.Events)) != r.Events {
		return &journal.CorruptError{Offset: r.Offset, What: "the message does not decode as it did when it was recorded"}
	}
	for i := range t.scan.Events {
		t.event(r, &t.scan.Events[i])
	}
	return nil
}

func (t *touched) event(r *record, ev *event.Event) {
	if !t.d.selects(ev.Backend, ev.Tenant) {
		return
	}
	t.d.sum.Events++
	if ev.Type == event.Cleared {
		t.d.sum.Clears++
	} else if !bytes.HasPrefix(ev.Key, t.d.q.Prefix) { // whatever the medium: looker.read asks whether there was any event
		return
	}
	t.add(r.Header.Source, ev.Backend, ev.Tenant, ev.Key)
}

// add takes an object, or, without a key, a scope.
func (t *touched) add(source uint32, backend, tenant, key []byte) {
	e := touchedKey{at: uint32(len(t.arena)), size: uint32(len(key)), scope: t.scope(source, backend, tenant)}
	t.arena = append(t.arena, key...)
	if len(key) >= 8 {
		e.first = binary.BigEndian.Uint64(key)
	} else {
		var b [8]byte
		copy(b[:], key)
		e.first = binary.BigEndian.Uint64(b[:])
	}
	t.entries = append(t.entries, e)
}

// corrections takes the objects that the reading which begins with a record corrected: that counts there, though it is written behind
// the reading's end, and maybe behind the second moment.
func (t *touched) corrections(ctx context.Context, r *record) error {
	one, ok, err := t.d.view.SourceReading(r.Header.Source, r.Offset)
	if err != nil || !ok || one.Corrections == 0 {
		return err
	}
	var last []byte // the object before
	split := false
	in := []stretch{{Source: journal.Source{ID: r.Header.Source, Name: r.Source}, from: index.Behind(one.Through), to: index.Behind(one.Offset)}}
	err = t.d.e.eachRecord(ctx, in, nil, func(p *record) error {
		if p.Kind != journal.ReconciliationPart {
			return nil
		}
		frames, err := p.Frames()
		if err != nil {
			return err
		}
		part, err := reading.DecodePart(bytes.Join(frames, nil))
		if err != nil {
			return &journal.CorruptError{Offset: p.Offset, What: err.Error()}
		}
		if part.Begun != r.Offset || !t.d.selects(part.Backend, part.Tenant) {
			return nil
		}
		for {
			e, ok, err := part.Next()
			if err != nil {
				return &journal.CorruptError{Offset: p.Offset, What: err.Error()}
			}
			switch {
			case !ok:
				return nil
			case e.What == reading.Unsaid, !bytes.HasPrefix(e.Key, t.d.q.Prefix):
				continue
			}
			t.d.sum.Corrections++
			if bytes.Equal(last, e.Key) { // another medium, or the first of the next scope
				t.add(p.Header.Source, part.Backend, part.Tenant, e.Key)
				continue
			}
			if t.full() {
				if err := t.d.look(ctx, t, index.Position{Offset: r.Offset}); err != nil {
					return err
				}
				split = true
			}
			last = append(last[:0], e.Key...)
			t.add(p.Header.Source, part.Backend, part.Tenant, e.Key)
		}
	})
	switch {
	case err != nil:
		return err
	case t.d.enough:
		return errEnough
	case split: // what comes behind must find these done with
		return t.d.look(ctx, t, index.Behind(r.Offset))
	}
	return nil
}

func (t *touched) scope(source uint32, backend, tenant []byte) uint32 {
	if int(t.last) < len(t.scopes) {
		if s := &t.scopes[t.last]; s.Source == source && bytes.Equal(s.Backend, backend) && bytes.Equal(s.Tenant, tenant) {
			return t.last
		}
	}
	t.name = binary.BigEndian.AppendUint32(t.name[:0], source)
	t.name = binary.AppendUvarint(t.name, uint64(len(backend)))
	t.name = append(append(t.name, backend...), tenant...)
	n, known := t.numbers[string(t.name)]
	if !known {
		n = uint32(len(t.scopes))
		t.numbers[string(t.name)] = n
		t.named += 2 * len(t.name)
		t.scopes = append(t.scopes, index.Scope{Source: source, Backend: bytes.Clone(backend), Tenant: bytes.Clone(tenant)})
	}
	t.last = n
	return n
}

// full reports whether as much is collected as is looked up at once, after it has tried whether many events are about few objects.
func (t *touched) full() bool {
	if len(t.scopes) >= max(1, t.d.chunk/scopesInChunk) || t.named >= touchedBytes {
		return true
	}
	if len(t.entries) < 2*t.d.chunk && len(t.arena) < 2*touchedBytes {
		return false
	}
	t.compact()
	return len(t.entries) >= t.d.chunk || len(t.arena) >= touchedBytes
}

func (t *touched) key(e *touchedKey) []byte { return t.arena[e.at:][:e.size:e.size] }

// compact sorts and leaves each object once.
func (t *touched) compact() {
	ranks := make([]uint32, len(t.scopes)) // by number
	order := make([]uint32, len(t.scopes))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return t.d.compareScopes(&t.scopes[a], &t.scopes[b]) })
	for rank, n := range order {
		ranks[n] = uint32(rank)
	}
	compare := func(a, b touchedKey) int {
		switch {
		case a.scope != b.scope:
			return cmp.Compare(ranks[a.scope], ranks[b.scope])
		case a.first != b.first:
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(t.key(&a), t.key(&b))
	}
	slices.SortFunc(t.entries, compare)
	t.entries = slices.CompactFunc(t.entries, func(a, b touchedKey) bool { return compare(a, b) == 0 })
	size := 0
	for i := range t.entries {
		size += int(t.entries[i].size)
	}
	if size > len(t.arena)/2 {
		return
	}
	arena := make([]byte, 0, 2*size)
	for i := range t.entries {
		e := &t.entries[i]
		key := t.key(e)
		e.at = uint32(len(arena))
		arena = append(arena, key...)
	}
	t.arena = arena
}

// scopeTouches are the objects of one scope.
type scopeTouches struct {
	index.Scope
	keys touchedKeys
}

// touchedKeys are keys in their order.
type touchedKeys struct {
	t       *touched
	entries []touchedKey
}

// byScope lists what compact has sorted.
func (t *touched) byScope() []scopeTouches {
	var out []scopeTouches
	for from := 0; from < len(t.entries); {
		to := from + 1
		for to < len(t.entries) && t.entries[to].scope == t.entries[from].scope {
			to++
		}
		entries := t.entries[from:to]
		if entries[0].size == 0 { // that it was cleared
			entries = entries[1:]
		}
		out = append(out, scopeTouches{t.scopes[t.entries[from].scope], touchedKeys{t, entries}})
		from = to
	}
	return out
}
