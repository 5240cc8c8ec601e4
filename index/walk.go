package index

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

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
// Several walks of one view may run on goroutines of their own.
type Walk struct {
	runs []*run // one, or one per form of key
	at   *run   // that of the current object
	row  Row
	err  error
}

// run is a walk over keys in the order in which they are stored.
type run struct {
	it     *pebble.Iterator
	scope  int    // length of the keyspace and scope in its keys
	prefix []byte // of the current object: everything up to the medium
	key    []byte // of the current object
	on     bool   // the iterator stands at a row that was not read yet
	medium []byte // of the row read last, as in keys
	buf    []byte
}

// aFew is how many rows are stepped over before a seek is cheaper.
const aFew = 8

// Objects walks the objects of a scope whose keys begin with prefix, in the order of their keys' bytes.
func (v *View) Objects(s *Scope, prefix []byte) (*Walk, error) {
	scope := s.append([]byte{keyHistory})
	w := &Walk{}
	for _, r := range keyRanges(prefix) {
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
		d := hexDigit(c)
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

// Object walks one object; Next is true once, also where it has no events.
func (v *View) Object(o *Object) (*Walk, error) {
	prefix := appendScope([]byte{keyHistory}, o.Source, o.Backend, o.Tenant)
	scope := len(prefix)
	prefix = appendObject(prefix, o.Key)
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix), UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	r := &run{it: it, scope: scope}
	r.on = it.SeekPrefixGE(prefix)
	r.prefix, r.key = prefix, bytes.Clone(o.Key)
	return &Walk{runs: []*run{r}, err: it.Error()}, nil
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
		if r.key != nil && (w.at == nil || bytes.Compare(r.key, w.at.key) < 0) {
			w.at = r
		}
	}
	return w.at != nil
}

// Key is the current object's; it is overwritten by Next.
func (w *Walk) Key() []byte { return w.at.key }

// NextRow moves to the next event of the object.
func (w *Walk) NextRow() bool {
	if w.err != nil {
		return false
	}
	ok, err := w.at.read(&w.row)
	w.fail(err)
	return ok && err == nil
}

// Row is the current event; it is overwritten by NextRow.
func (w *Walk) Row() *Row { return &w.row }

// SkipTo leaves out the events of the current row's medium that are newer than at. Before the first row it does nothing.
func (w *Walk) SkipTo(at Position) {
	if w.err == nil {
		w.fail(w.at.skip(func(p Position) bool { return at.Before(p) }, func(medium []byte) []byte { return appendPosition(medium, at) }))
	}
}

// SkipMedium leaves out what is left of the current row's medium.
func (w *Walk) SkipMedium() {
	if w.err == nil {
		w.fail(w.at.skip(func(Position) bool { return true }, func(medium []byte) []byte { return append(medium, 0xff) }))
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

// object takes the object of the row that the iterator stands at as the current one; nil where there is none.
func (r *run) object() error {
	if !r.on {
		r.key = nil
		return r.it.Error()
	}
	k := r.it.Key()
	end := split(k)
	r.prefix = append(r.prefix[:0], k[:end]...)
	key, rest, ok := cutObject(k[r.scope:])
	if !ok || len(rest) != len(k)-end {
		return errEvidence
	}
	r.key, r.medium = key, r.medium[:0]
	return nil
}

func (r *run) nextObject() error {
	for n := 0; r.on && bytes.HasPrefix(r.it.Key(), r.prefix); n++ {
		if n < aFew {
			r.on = r.it.Next()
			continue
		}
		r.buf = append(r.buf[:0], r.prefix...)
		r.buf[len(r.buf)-1]++ // a key ends in 00 01
		r.on = r.it.SeekGE(r.buf)
	}
	return r.object()
}

// read reads the row that the iterator stands at, if it is the current object's, and moves behind it.
func (r *run) read(row *Row) (bool, error) {
	if !r.on || !bytes.HasPrefix(r.it.Key(), r.prefix) {
		return false, r.it.Error()
	}
	b := r.it.Key()[len(r.prefix):]
	medium, rest, ok := cutMedium(b)
	if !ok {
		return false, errEvidence
	}
	p, ok := cutPosition(rest)
	if !ok {
		return false, errEvidence
	}
	r.medium = append(r.medium[:0], b[:len(b)-len(rest)]...)
	v, err := r.it.ValueAndErr()
	if err != nil {
		return false, err
	}
	row.Medium = medium
	row.Evidence, row.group = cutEvidence(v, p)
	if row.group.Bad {
		return false, errEvidence
	}
	if row.HasGroup {
		r.buf = append(r.buf[:0], row.group.B...) // the iterator moves on
		row.group.B = r.buf
	}
	r.on = r.it.Next()
	return true, nil
}

// skip moves over rows of the current row's medium as long as over says so: a few by steps, then by a seek to target.
func (r *run) skip(over func(Position) bool, target func(medium []byte) []byte) error {
	if len(r.medium) == 0 {
		return nil
	}
	for n := 0; r.on; n++ {
		k := r.it.Key()
		if len(k) < len(r.prefix)+len(r.medium) || !bytes.HasPrefix(k, r.prefix) || !bytes.HasPrefix(k[len(r.prefix):], r.medium) {
			return nil
		}
		p, ok := cutPosition(k[len(r.prefix)+len(r.medium):])
		if !ok {
			return errEvidence
		}
		if !over(p) {
			return nil
		}
		if n < aFew {
			r.on = r.it.Next()
			continue
		}
		b := append(append([]byte(nil), r.prefix...), r.medium...)
		r.on = r.it.SeekGE(target(b))
	}
	return r.it.Error()
}
