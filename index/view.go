package index

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// View is the index at one moment: what is applied later does not show. It is not for concurrent use, and must be closed.
type View struct {
	x      *Index
	*state // shared with other views
	*reader

	scans   bool
	bounds  [][]byte // of tables, read once for Split
	bounded bool

	says *Sayer

	sayersMu sync.Mutex
	sayers   []*Sayer // to close
}

// View opens a view of what is applied now. It holds a lock that Rebuild waits for: a goroutine that has one open must
// not open another.
func (x *Index) View() (*View, error) {
	v := &View{}
	if err := x.OpenView(v); err != nil {
		return nil, err
	}
	return v, nil
}

// OpenView is View in the caller's memory: v is the zero View, or one that was closed.
func (x *Index) OpenView(v *View) error {
	x.mu.RLock()
	if x.gone != nil {
		defer x.mu.RUnlock()
		return x.gone
	}
	s, err := x.fresh.open(x.db)
	if err != nil {
		x.mu.RUnlock()
		return err
	}
	*v = View{x: x, state: s, reader: s.reader()}
	return nil
}

// Scans tells that the view will be open for long, so that a rebuilt index is not exchanged in the middle if that can be had.
func (v *View) Scans() {
	if !v.scans {
		v.scans = true
		v.x.scans.Add(1)
	}
}

// Close gives the view up.
func (v *View) Close() error {
	if v.scans {
		v.x.scans.Add(-1)
	}
	err := v.state.giveBack(v.reader)
	for _, s := range v.sayers {
		err = errors.Join(err, s.close())
	}
	err = errors.Join(err, v.x.fresh.release(v.state))
	v.x.mu.RUnlock()
	return err
}

// Applied is the offset up to which the journal is in the view.
func (v *View) Applied() uint64 { return v.applied }

// Base is what the view's rows begin with; the zero Base where the journal is whole.
func (v *View) Base() Base { return v.base }

// Source returns where a source stands; the zero SourceState where nothing of it is indexed.
func (v *View) Source(id uint32) SourceState {
	if s := v.sources[id]; s != nil {
		return *s
	}
	return SourceState{}
}

// Kept is what Keep was told of a source, in this view or another of the same state; nil where it was told nothing.
func (v *View) Kept(source uint32) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.told[source]
}

// Keep keeps what a caller made of a source for the other views of the same state. It must follow from the view alone, or say what
// else it holds under, whoever asks; and it is shared.
func (v *View) Keep(source uint32, x any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state.told == nil {
		v.state.told = map[uint32]any{}
	}
	if len(v.state.told) < maxFound {
		v.state.told[source] = x
	}
}

// Cleared returns the newest `cleared` of the object's scope at or before the position.
func (v *View) Cleared(o *Object, at Position) (Evidence, bool, error) {
	return v.newest(keyClear, o, at)
}

// Proof returns the newest `cleared` that confirms absence.
func (v *View) Proof(o *Object, at Position) (Evidence, bool, error) {
	return v.newest(keyProof, o, at)
}

func (v *View) newest(space byte, o *Object, at Position) (Evidence, bool, error) {
	v.key = appendScope(append(v.key[:0], space), o.Source, o.Backend, o.Tenant)
	last, err := v.newestOf(v.key)
	if err != nil || !last.has || !at.Before(last.row.Position) {
		return last.row, err == nil && last.has, err
	}
	old, err := v.newestAt(appendPosition(v.key, at), len(v.key))
	return old.row, err == nil && old.has, err
}

// newestOf is the newest clear or proof of a scope; prefix is its keyspace and the scope.
func (v *View) newestOf(prefix []byte) (found[Evidence], error) {
	if len(prefix) > maxName {
		return v.newestAt(prefix, len(prefix))
	}
	if e, ok := getNamed(v.state.clears, prefix); ok {
		return e, nil
	}
	return v.state.clears.find(string(prefix), func() (found[Evidence], bool, error) {
		e, err := v.newestAt(prefix, len(prefix))
		return e, true, err
	})
}

// newestAt is the first clear or proof at key or behind it that has the same first prefix bytes.
func (v *View) newestAt(key []byte, prefix int) (e found[Evidence], err error) {
	it := v.reader.clears
	if it == nil {
		it, err = v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyClear}, UpperBound: []byte{keyProof + 1}, UseL6Filters: true})
		if err != nil {
			return e, err
		}
		v.reader.clears = it
	}
	if !it.SeekPrefixGE(key) {
		return e, it.Error()
	}
	p, ok := cutPosition(it.Key()[prefix:])
	if !ok {
		return e, errEvidence
	}
	e.row, err = decodeEvidence(it.Value(), p)
	e.has = err == nil
	return e, err
}

// Mark returns the newest mark of a source at or before the record at offset.
func (v *View) Mark(source uint32, offset uint64) (Mark, bool, error) {
	last, err := v.newestMark(source)
	if err == nil && last.has && offset < last.row.From {
		last, err = v.markBefore(source, offset+1)
	}
	return last.row, err == nil && last.has, err
}

// newestMark is the newest mark of a source.
func (v *View) newestMark(source uint32) (found[Mark], error) {
	return v.marks.find(source, func() (found[Mark], bool, error) {
		m, err := v.markBefore(source, math.MaxUint64)
		return m, true, err
	})
}

// markBefore is the newest mark of a source that began before the record at offset.
func (v *View) markBefore(source uint32, offset uint64) (m found[Mark], err error) {
	it, err := v.rows(markKey(source, 0), sourceKey(keyMark, source+1))
	if err != nil {
		return m, err
	}
	defer it.Close()
	if !it.SeekLT(markKey(source, offset)) {
		return m, it.Error()
	}
	m.row, err = decodeMark(it.Key(), it.Value())
	m.has = err == nil
	return m, err
}

// Backends lists the backends of a source that have a scope of that tenant. The list is shared: it is not changed.
func (v *View) Backends(source uint32, tenant []byte) ([][]byte, error) {
	if len(tenant) > maxName {
		return v.backends(source, tenant)
	}
	return v.known.find(string(append(sourceKey(keyScope, source), tenant...)), func() ([][]byte, bool, error) {
		all, err := v.backends(source, tenant)
		size := 0
		for _, b := range all {
			size += len(b) + 24
		}
		return all, size <= maxName, err
	})
}

func (v *View) backends(source uint32, tenant []byte) ([][]byte, error) {
	it, err := v.rows(sourceKey(keyScope, source), sourceKey(keyScope, source+1))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out [][]byte
	for ok := it.First(); ok; {
		backend, rest, valid := cutText(it.Key()[5:])
		if !valid {
			return nil, errEvidence
		}
		if t, _, valid := cutText(rest); valid && bytes.Equal(t, tenant) {
			out = append(out, backend)
		}
		// Go to this backend's scope of the tenant, or, from there on, to the next backend.
		want := appendScope([]byte{keyScope}, source, backend, tenant)
		if bytes.Compare(it.Key(), want) < 0 {
			ok = it.SeekGE(want)
			continue
		}
		next := appendText(sourceKey(keyScope, source), backend)
		next[len(next)-1]++
		ok = it.SeekGE(next)
	}
	return out, it.Error()
}

// CountLive counts the objects that are present on some medium now, by their newest events and clears.
func (v *View) CountLive(ctx context.Context) (uint64, error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyLive}, UpperBound: []byte{keyLive + 1}})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	var n uint64
	var scope, object []byte
	var cleared Position
	for rows, ok := 0, it.First(); ok; rows, ok = rows+1, it.Next() {
		if rows%(1<<16) == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		k := it.Key()
		end := split(k)
		if scopeEnd := scopeLength(k); !bytes.Equal(k[:scopeEnd], scope) {
			scope = append(scope[:0], k[:scopeEnd]...)
			if cleared, err = v.clearOf(scope); err != nil {
				return 0, err
			}
		}
		p, err := livePosition(it.Value())
		if err != nil {
			return 0, err
		}
		if p.Before(cleared) || bytes.Equal(k[:end], object) {
			continue
		}
		object = append(object[:0], k[:end]...)
		n++
	}
	return n, it.Error()
}

// scopeLength is where the scope ends in a key of history or live.
func scopeLength(k []byte) int {
	at := 5
	for range 2 {
		n := textEnd(k[at:])
		if n < 0 {
			return len(k)
		}
		at += n
	}
	return at
}

// clearOf is the position of the newest clear of the scope that a live key begins with.
func (v *View) clearOf(scope []byte) (Position, error) {
	k := append([]byte{keyClear}, scope[1:]...)
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: k, UpperBound: append(bytes.Clone(k), 0xff)})
	if err != nil {
		return Position{}, err
	}
	defer it.Close()
	if !it.First() {
		return Position{}, it.Error()
	}
	p, ok := cutPosition(it.Key()[len(k):])
	if !ok {
		return Position{}, errEvidence
	}
	return p, nil
}

func livePosition(value []byte) (Position, error) {
	c := varint.Cursor{B: value}
	p := Position{c.Uvarint(), uint32(c.Uvarint())}
	if c.Bad {
		return p, errEvidence
	}
	return p, nil
}
