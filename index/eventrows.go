package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

// eventRows collects the history and live rows of many events and writes them in the order of their keys. The memtable
// is a skiplist that remembers where it inserted last, so sorted rows cost about a third of unsorted ones (doc.go); and of
// several events of one object and medium only the last makes a live row.
type eventRows struct {
	rows  []eventRow
	arena []byte // keys and values of rows, one behind the other
	order []rowOrder
	ranks map[*scope]uint32

	touched touched // by the rows since the last commit
}

// rowOrder is what is moved about when rows are sorted.
type rowOrder struct {
	first uint64
	scope uint32 // its rank among the scopes of the rows
	row   uint32
}

// eventRow is one event. Its history key is arena[key:object:value], object being where the position begins; its value,
// the evidence, is arena[value:end].
type eventRow struct {
	scope              *scope
	first              uint64 // the first 8 bytes behind the scope, to decide most comparisons
	key, object, value int
	end                int
	position           Position
	stored             bool
}

func (r *eventRows) add(sc *scope, ev *event.Event, e *Evidence) {
	row := eventRow{scope: sc, key: len(r.arena), position: e.Position, stored: e.Stored}
	b := append(append(r.arena, keyHistory), sc.prefix...)
	text := len(b)
	b = appendObject(b, ev.Key)
	r.touched.add(b[row.key+1:])
	b = appendMedium(b, ev.Medium)
	row.object = len(b)
	b = appendPosition(b, e.Position)
	row.value = len(b)
	b = appendEvidence(b, e)
	if e.HasGroup {
		b = appendGroup(b, ev.Group, ev.Key)
	}
	row.end = len(b)
	var first [8]byte
	copy(first[:], b[text:row.value])
	row.first = binary.BigEndian.Uint64(first[:])
	r.arena = b
	r.rows = append(r.rows, row)
}

// sort fills order.
func (r *eventRows) sort() {
	if r.ranks == nil {
		r.ranks = map[*scope]uint32{}
	}
	clear(r.ranks)
	var scopes []*scope
	var last *scope
	for i := range r.rows {
		if sc := r.rows[i].scope; sc != last {
			last = sc
			if _, known := r.ranks[sc]; !known {
				r.ranks[sc] = 0
				scopes = append(scopes, sc)
			}
		}
	}
	slices.SortFunc(scopes, func(a, b *scope) int { return bytes.Compare(a.prefix, b.prefix) })
	rank := uint32(0)
	for i, sc := range scopes {
		if i > 0 && !bytes.Equal(sc.prefix, scopes[i-1].prefix) { // a scope that was forgotten meanwhile has two
			rank++
		}
		r.ranks[sc] = rank
	}
	r.order = r.order[:0]
	last = nil
	for i := range r.rows {
		if sc := r.rows[i].scope; sc != last {
			last, rank = sc, r.ranks[sc]
		}
		r.order = append(r.order, rowOrder{r.rows[i].first, rank, uint32(i)})
	}
	slices.SortFunc(r.order, func(a, b rowOrder) int {
		switch {
		case a.scope != b.scope:
			return cmp.Compare(a.scope, b.scope)
		case a.first != b.first:
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(r.historyKey(a.row), r.historyKey(b.row))
	})
}

// size is how many bytes the rows have; half as many again are for the live rows.
func (r *eventRows) size() int { return len(r.arena) + len(r.arena)/2 }

func (r *eventRows) historyKey(i uint32) []byte { return r.arena[r.rows[i].key:r.rows[i].value] }

// object is what row i's live key has behind its first byte.
func (r *eventRows) object(i uint32) []byte { return r.arena[r.rows[i].key+1 : r.rows[i].object] }

// flush writes all rows to the batch and forgets them.
func (r *eventRows) flush(batch *pebble.Batch) error {
	r.sort()
	for _, o := range r.order {
		row := &r.rows[o.row]
		if err := batch.Set(r.historyKey(o.row), r.arena[row.value:row.end], nil); err != nil {
			return err
		}
	}
	for i, o := range r.order {
		// The newest event of an object and medium comes first; the others make no live row.
		if i > 0 && bytes.Equal(r.object(o.row), r.object(r.order[i-1].row)) {
			continue
		}
		if err := r.live(batch, &r.rows[o.row]); err != nil {
			return err
		}
	}
	r.rows, r.arena = r.rows[:0], r.arena[:0]
	if cap(r.arena) > 2*batchBytes {
		r.arena = nil // one message made it so large
	}
	return nil
}

func (r *eventRows) live(batch *pebble.Batch, row *eventRow) error {
	key := r.arena[row.key:row.object]
	key[0] = keyLive
	if !row.stored {
		return batch.Delete(key, nil)
	}
	var p [2 * binary.MaxVarintLen64]byte
	return batch.Set(key, appendLive(p[:0], row.position), nil)
}

// appendLive appends the value of a live row.
func appendLive(dst []byte, p Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, p.Offset), uint64(p.Event))
}
