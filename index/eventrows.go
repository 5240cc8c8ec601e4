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
	b = appendText(b, ev.Key)
	b = appendMedium(b, ev.Medium)
	row.object = len(b)
	b = appendPosition(b, e.Position)
	row.value = len(b)
	b = appendEvidence(b, e)
	row.end = len(b)
	var first [8]byte
	copy(first[:], b[text:row.value])
	row.first = binary.BigEndian.Uint64(first[:])
	r.arena = b
	r.rows = append(r.rows, row)
}

func (r *eventRows) compare(a, b eventRow) int {
	if a.scope == b.scope && a.first != b.first {
		return cmp.Compare(a.first, b.first)
	}
	return bytes.Compare(r.arena[a.key:a.value], r.arena[b.key:b.value])
}

// flush writes all rows to the batch and forgets them.
func (r *eventRows) flush(batch *pebble.Batch) error {
	slices.SortFunc(r.rows, r.compare)
	for i := range r.rows {
		row := &r.rows[i]
		if err := batch.Set(r.arena[row.key:row.value], r.arena[row.value:row.end], nil); err != nil {
			return err
		}
	}
	for i := range r.rows {
		// The newest event of an object and medium comes first; the others make no live row.
		if i > 0 && bytes.Equal(r.object(i), r.object(i-1)) {
			continue
		}
		if err := r.live(batch, &r.rows[i]); err != nil {
			return err
		}
	}
	r.rows, r.arena = r.rows[:0], r.arena[:0]
	return nil
}

// object is what row i's live key has behind its first byte.
func (r *eventRows) object(i int) []byte { return r.arena[r.rows[i].key+1 : r.rows[i].object] }

func (r *eventRows) live(batch *pebble.Batch, row *eventRow) error {
	key := r.arena[row.key:row.object]
	key[0] = keyLive
	if !row.stored {
		return batch.Delete(key, nil)
	}
	var p [2 * binary.MaxVarintLen64]byte
	position := binary.PutUvarint(p[:], row.position.Offset)
	position += binary.PutUvarint(p[position:], uint64(row.position.Event))
	d := batch.SetDeferred(len(key), position+row.end-row.value)
	copy(d.Key, key)
	copy(d.Value, p[:position])
	copy(d.Value[position:], r.arena[row.value:row.end])
	return d.Finish()
}
