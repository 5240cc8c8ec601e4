package index

import (
	"bytes"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/digits"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// Row is one event of an object.
type Row struct {
	Medium string
	Evidence
	group varint.Cursor
}

// AppendGroup appends the event's group_id to dst; key is the object's. Nothing where HasGroup is false.
func (r *Row) AppendGroup(dst, key []byte) ([]byte, error) {
	if !r.HasGroup {
		return dst, nil
	}
	return appendGroupOf(dst, r.group, key)
}

// Walk goes over objects, and over the events of each: medium by medium, the newest first.
//
//	for w.Next() {
//		for w.NextRow() {
//			use(w.Key(), w.Row())
//		}
//	}
//	err := w.Close()
//
// It allocates nothing from one object to the next. Several walks of one view may run on goroutines of their own.
type Walk struct {
	runs []*run // one, or one per form of key
	at   *run   // that of the current object
	row  Row
	err  error
}

// Objects walks the objects of a scope whose keys begin with prefix, in the order of their keys' bytes.
func (v *View) Objects(s *Scope, prefix []byte) (*Walk, error) {
	return v.ObjectsBehind(s, prefix, nil)
}

// ObjectsBehind walks those objects of Objects whose keys lie behind the key after, nil: all.
func (v *View) ObjectsBehind(s *Scope, prefix, after []byte) (*Walk, error) {
	scope := s.append([]byte{keyHistory})
	w := &Walk{}
	for _, r := range keyRanges(prefix) {
		if after != nil {
			if low := behind(r.low[0], after); bytes.Compare(r.low, low) < 0 {
				r.low = low
			}
		}
		if bytes.Compare(r.low, r.high) >= 0 {
			continue
		}
		it, err := v.rows(append(bytes.Clone(scope), r.low...), append(bytes.Clone(scope), r.high...))
		if err != nil {
			w.Close()
			return nil, err
		}
		w.runs = append(w.runs, &run{it: it, scope: len(scope)})
	}
	for _, r := range w.runs {
		r.on = r.it.First()
		w.fail(r.object())
	}
	return w, nil
}

func (v *View) rows(low, high []byte) (*pebble.Iterator, error) {
	return v.snap.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
}

// keyRange bounds keys behind their scope.
type keyRange struct{ low, high []byte }

// keyRanges are where keys with that prefix lie: among those written as text, and among those that are packed.
func keyRanges(prefix []byte) []keyRange {
	text := appendText([]byte{objectPlain}, prefix)
	text = text[:len(text)-2]
	out := []keyRange{{text, successor(text)}}
	if len(prefix) == 0 {
		out[0] = keyRange{[]byte{objectPlain}, []byte{objectPacked}}
	}
	packed := []byte{objectPacked}
	for i, c := range prefix[:min(len(prefix), 2*packedBytes)] {
		d := digits.Value(c)
		switch {
		case d > 15:
			return out
		case i%2 == 0:
			packed = append(packed, d<<4)
		default:
			packed[len(packed)-1] |= d
		}
	}
	switch {
	case len(prefix) > 2*packedBytes:
		packed = appendText(packed, prefix[2*packedBytes:])
		packed = packed[:len(packed)-2]
		return append(out, keyRange{packed, successor(packed)})
	case len(prefix)%2 == 1:
		high := bytes.Clone(packed)
		high[len(high)-1] |= 0x0f
		return append(out, keyRange{packed, successor(high)})
	}
	return append(out, keyRange{packed, successor(packed)})
}

// successor is the smallest key behind all that begin with k. Keys begin with a byte below ff.
func successor(k []byte) []byte {
	k = bytes.Clone(k)
	for i := len(k) - 1; ; i-- {
		if k[i] < 0xff {
			k[i]++
			return k[:i+1]
		}
	}
}

// behind is the lowest that a key behind the key after can be written as, in the form that the byte names.
func behind(form byte, after []byte) []byte {
	if form == objectPlain {
		low := appendText([]byte{objectPlain}, after)
		low[len(low)-1]++ // all keys that go on lie above 00 01, those that do not below 00 02
		return low
	}
	values := make([]byte, 0, 2*packedBytes)
	for i, c := range after {
		if i == 2*packedBytes {
			low := appendText(pack(values), after[i:])
			low[len(low)-1]++
			return low
		}
		if d := digits.Value(c); d <= 15 {
			values = append(values, d)
			continue
		}
		switch {
		case c < '0':
			return pack(append(values, 0))
		case c < 'a': // above '9'
			return pack(append(values, 10))
		}
		// All keys that begin with these digits lie before it.
		for len(values) > 0 && values[len(values)-1] == 15 {
			values = values[:len(values)-1]
		}
		if len(values) == 0 {
			return []byte{objectPacked + 1}
		}
		values[len(values)-1]++
		return pack(values)
	}
	if len(values) == 2*packedBytes {
		low := appendText(pack(values), nil)
		low[len(low)-1]++
		return low
	}
	return pack(values)
}

// pack is the lowest packed key that begins with these hex digits.
func pack(values []byte) []byte {
	out := append(make([]byte, 0, 1+packedBytes), objectPacked)
	for i, d := range values {
		if i%2 == 0 {
			out = append(out, d<<4)
		} else {
			out[len(out)-1] |= d
		}
	}
	return out
}

// Object walks one object; Next is true once, also where it has no events.
func (v *View) Object(o *Object) (*Walk, error) {
	w, err := v.Picks()
	if err != nil {
		return nil, err
	}
	w.Pick(o)
	w.at = nil // Next comes to it
	return w, nil
}

// Picks is a walk that goes to the objects that Pick names.
func (v *View) Picks() (*Walk, error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}, UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	return &Walk{runs: []*run{{it: it, one: true}}}, nil
}

// Pick goes to an object, which may have no events. Of many, it is fastest in the order of scopes and keys.
func (w *Walk) Pick(o *Object) {
	r := w.runs[0]
	r.prefix = appendScope(append(r.prefix[:0], keyHistory), o.Source, o.Backend, o.Tenant)
	r.scope = len(r.prefix)
	r.prefix = appendObject(r.prefix, o.Key)
	r.medium, r.read, r.live, r.keyed = r.medium[:0], false, true, false
	r.on = r.it.SeekPrefixGE(r.prefix)
	w.at = r
	w.fail(r.it.Error())
}

// Next moves to the next object.
func (w *Walk) Next() bool {
	if w.at != nil {
		w.fail(w.at.nextObject())
	}
	w.at = nil
	if w.err != nil {
		return false
	}
	for _, r := range w.runs {
		if r.live && (w.at == nil || bytes.Compare(r.objectKey(), w.at.objectKey()) < 0) {
			w.at = r
		}
	}
	return w.at != nil
}

// Key is the current object's; it is overwritten by Next.
func (w *Walk) Key() []byte { return w.at.objectKey() }

// NextRow moves to the next event of the object.
func (w *Walk) NextRow() bool { return w.NextRowAt(anyTime) }

// anyTime is a position behind all others.
var anyTime = Position{math.MaxUint64, endOfBatch}

// NextRowAt moves to the next event of the object that is not newer than at.
func (w *Walk) NextRowAt(at Position) bool {
	if w.err != nil {
		return false
	}
	ok, err := w.at.next(&w.row, at)
	w.fail(err)
	return ok && err == nil
}

// NextOfMedium moves to the next event of the current one's medium, if there is one: else Row means nothing until the next move.
func (w *Walk) NextOfMedium() bool { return w.NextOfMediumAt(anyTime) }

// NextOfMediumAt is NextOfMedium for events that are not newer than at.
func (w *Walk) NextOfMediumAt(at Position) bool {
	if w.SkipTo(at); w.err != nil || !w.at.ofMedium() {
		return false
	}
	return w.NextRow()
}

// Row is the current event; it is overwritten by NextRow.
func (w *Walk) Row() *Row { return &w.row }

// SkipTo leaves out the events of the current row's medium that are newer than at. Before the first row it does nothing.
func (w *Walk) SkipTo(at Position) {
	if w.err == nil {
		w.fail(w.at.skip(&at))
	}
}

// SkipMedium leaves out what is left of the current row's medium.
func (w *Walk) SkipMedium() {
	if w.err == nil {
		w.fail(w.at.skip(nil))
	}
}

func (w *Walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Close ends the walk and returns what went wrong in it.
func (w *Walk) Close() error {
	for _, r := range w.runs {
		if err := r.it.Error(); w.err == nil {
			w.err = err
		}
		if err := r.it.Close(); w.err == nil {
			w.err = err
		}
	}
	w.runs = nil
	return w.err
}
