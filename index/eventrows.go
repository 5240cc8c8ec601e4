package index

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

// eventRows collects the history and live rows of many events and writes them in the order of their keys. The memtable
// is a skiplist that remembers where it inserted last, so sorted rows cost about a third of unsorted ones (doc.go); and of
// several events of one object and medium only the last makes a live row.
type eventRows struct {
	rows    []eventRow
	arena   []byte // keys and values of rows, one behind the other
	order   []rowOrder
	sorter  rowSorter
	scopes  []*scope // of the rows
	numbers map[*scope]uint32
	recent  uint32 // the scope of the row added last

	newest []uint32 // of those written last, the newest row of each object and medium
}

// eventRow is one event. Its history key is arena[key:value], arena[object:value] of it being the position; its value, the
// evidence, is arena[value:end].
type eventRow struct {
	first              uint64 // the first 8 bytes behind the scope, to decide most comparisons
	key, object, value int
	end                int
	scope              uint32 // its place among the scopes
}

func (r *eventRows) add(sc *scope, ev *event.Event, e *Evidence) {
	row := r.begin(sc, ev.Key, ev.Medium, e)
	if e.HasGroup {
		r.arena = appendGroup(r.arena, ev.Group, ev.Key)
	}
	r.finish(row)
}

// begin writes the key and the evidence of a row, which ends with finish.
func (r *eventRows) begin(sc *scope, key, medium []byte, e *Evidence) eventRow {
	row := eventRow{scope: r.number(sc), key: len(r.arena)}
	b := append(append(r.arena, keyHistory), sc.prefix...)
	text := len(b)
	b = appendObject(b, key)
	b = appendMedium(b, medium)
	row.object = len(b)
	b = appendPosition(b, e.Position)
	row.value = len(b)
	r.arena = appendEvidence(b, e)
	var first [8]byte
	copy(first[:], b[text:])
	row.first = binary.BigEndian.Uint64(first[:])
	return row
}

func (r *eventRows) finish(row eventRow) {
	row.end = len(r.arena)
	r.rows = append(r.rows, row)
}

// number is the scope's place among the scopes of the rows.
func (r *eventRows) number(sc *scope) uint32 {
	if len(r.scopes) > 0 && r.scopes[r.recent] == sc {
		return r.recent
	}
	n, known := r.numbers[sc]
	if !known {
		if r.numbers == nil {
			r.numbers = map[*scope]uint32{}
		}
		n = uint32(len(r.scopes))
		r.numbers[sc] = n
		r.scopes = append(r.scopes, sc)
	}
	r.recent = n
	return n
}

// ranks are the places of the scopes in the order of their prefixes.
func (r *eventRows) ranks() []uint32 {
	sorted := make([]uint32, len(r.scopes))
	for i := range sorted {
		sorted[i] = uint32(i)
	}
	prefix := func(i uint32) []byte { return r.scopes[i].prefix }
	slices.SortFunc(sorted, func(a, b uint32) int { return bytes.Compare(prefix(a), prefix(b)) })
	ranks := make([]uint32, len(sorted))
	rank := uint32(0)
	for i, n := range sorted {
		if i > 0 && !bytes.Equal(prefix(n), prefix(sorted[i-1])) { // a scope that was forgotten meanwhile has two
			rank++
		}
		ranks[n] = rank
	}
	return ranks
}

// size is how many bytes the rows have; half as many again are for the live rows.
func (r *eventRows) size() int { return len(r.arena) + len(r.arena)/2 }

func (r *eventRows) historyKey(i uint32) []byte { return r.arena[r.rows[i].key:r.rows[i].value] }

func (r *eventRows) evidence(i uint32) []byte { return r.arena[r.rows[i].value:r.rows[i].end] }

// object is what row i's live key has behind its first byte.
func (r *eventRows) object(i uint32) []byte { return r.arena[r.rows[i].key+1 : r.rows[i].object] }

// cut is row i's object, its scope first, how long that is, and its medium.
func (r *eventRows) cut(i uint32) (object []byte, scope int, medium []byte) {
	scope = len(r.scopes[r.rows[i].scope].prefix)
	b := r.object(i)
	end := scope + objectEnd(b[scope:])
	return b[:end], scope, b[end:]
}

// position is where row i's event stands.
func (r *eventRows) position(i uint32) (Position, bool) {
	return cutPosition(r.arena[r.rows[i].object:r.rows[i].value])
}

// flush writes all rows to the batch. They stay, for hot, until reset.
func (r *eventRows) flush(batch *pebble.Batch) error {
	r.newest = r.newest[:0]
	r.sort()
	for _, o := range r.order {
		if err := batch.Set(r.historyKey(o.row), r.evidence(o.row), nil); err != nil {
			return err
		}
	}
	for i, o := range r.order {
		// The newest event of an object and medium comes first; the others make no live row.
		if i > 0 && bytes.Equal(r.object(o.row), r.object(r.order[i-1].row)) {
			continue
		}
		r.newest = append(r.newest, o.row)
		if err := r.live(batch, o.row); err != nil {
			return err
		}
	}
	return nil
}

func (r *eventRows) reset() {
	r.rows, r.arena, r.newest = r.rows[:0], r.arena[:0], r.newest[:0]
	if cap(r.arena) > 2*max(batchBytes, runBytes) {
		r.arena = nil // one message made it so large
	}
	clear(r.scopes) // else those that are forgotten would be kept
	r.scopes, r.recent = r.scopes[:0], 0
	clear(r.numbers)
}

// live writes the live row of history row i, and overwrites the keyspace of that.
func (r *eventRows) live(batch *pebble.Batch, i uint32) error {
	p, ok := r.position(i)
	if !ok {
		return errEvidence
	}
	row := &r.rows[i]
	key := r.arena[row.key:row.object]
	key[0] = keyLive
	if r.arena[row.value]&evStored == 0 {
		return batch.Delete(key, nil)
	}
	var value [2 * binary.MaxVarintLen64]byte
	return batch.Set(key, appendLive(value[:0], p), nil)
}

// appendLive appends the value of a live row.
func appendLive(dst []byte, p Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, p.Offset), uint64(p.Event))
}
