package index

import (
	"context"
	"errors"
	"sync"

	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// View is the index at one moment: what is applied later does not show. It is not for concurrent use, and must be closed.
type View struct {
	x       *Index
	snap    *pebble.Snapshot
	applied uint64
	base    Base
	sources map[uint32]*SourceState
	scans   bool
	bounds  [][]byte // of tables, read once for Split
	bounded bool

	history *pebble.Iterator // over the history, reused
	clears  *pebble.Iterator // over clears and proofs, reused
	says    *Sayer
	key     []byte

	sayersMu sync.Mutex
	sayers   []*Sayer // to close
}

// View opens a view of what is applied now. It holds a lock that Rebuild waits for: a goroutine that has one open must
// not open another.
func (x *Index) View() (*View, error) {
	x.mu.RLock()
	if x.gone != nil {
		defer x.mu.RUnlock()
		return nil, x.gone
	}
	v := &View{x: x, snap: x.db.NewSnapshot()}
	var err error
	if v.applied, err = readApplied(v.snap); err == nil {
		v.sources, err = readSources(v.snap)
	}
	if err == nil {
		v.base, err = readBaseline(v.snap)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
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
	var err error
	if v.scans {
		v.x.scans.Add(-1)
	}
	for _, it := range []*pebble.Iterator{v.history, v.clears} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	for _, s := range v.sayers {
		err = errors.Join(err, s.close())
	}
	err = errors.Join(err, v.snap.Close())
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

// Medium is what is known of one medium of an object at a moment: its newest event, if there is one.
type Medium struct {
	Name string
	// Newest is the object's newest event on the medium; Has is false where there is none.
	Has    bool
	Newest Evidence
}

// Object names an object of a source by bytes.
type Object struct {
	Source               uint32
	Backend, Tenant, Key []byte
}

// Media appends the media that the object was ever seen on at or before the position, each with its newest event there. Cpu
// and disk are always listed, first.
func (v *View) Media(dst []Medium, o *Object, at Position) ([]Medium, error) {
	if v.history == nil {
		it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}, UseL6Filters: true})
		if err != nil {
			return dst, err
		}
		v.history = it
	}
	v.key = appendObject(appendScope(append(v.key[:0], keyHistory), o.Source, o.Backend, o.Tenant), o.Key)
	prefix := len(v.key)
	first := len(dst)
	dst = append(dst, Medium{Name: "cpu"}, Medium{Name: "disk"})

	it := v.history
	v.key = appendPosition(append(v.key[:prefix], mediumCPU), at)
	for ok := it.SeekPrefixGE(v.key); ok; {
		name, rest, valid := cutMedium(it.Key()[prefix:])
		if !valid {
			return dst, errEvidence
		}
		p, valid := cutPosition(rest)
		if !valid {
			return dst, errEvidence
		}
		v.key = appendMedium(v.key[:prefix], []byte(name))
		if at.Before(p) {
			// The first row of a medium, and newer than asked: go to the newest that is not.
			v.key = appendPosition(v.key, at)
			ok = it.SeekPrefixGE(v.key)
			continue
		}
		e, err := decodeEvidence(it.Value(), p)
		if err != nil {
			return dst, err
		}
		m := Medium{Name: name, Has: true, Newest: e}
		switch name {
		case "cpu":
			dst[first] = m
		case "disk":
			dst[first+1] = m
		default:
			dst = append(dst, m)
		}
		// The next medium: behind every position of this one.
		v.key = append(v.key, 0xff)
		ok = it.SeekPrefixGE(v.key)
	}
	return dst, it.Error()
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
	if v.clears == nil {
		it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyClear}, UpperBound: []byte{keyProof + 1}, UseL6Filters: true})
		if err != nil {
			return Evidence{}, false, err
		}
		v.clears = it
	}
	v.key = appendScope(append(v.key[:0], space), o.Source, o.Backend, o.Tenant)
	prefix := len(v.key)
	v.key = appendPosition(v.key, at)
	if !v.clears.SeekPrefixGE(v.key) {
		return Evidence{}, false, v.clears.Error()
	}
	p, ok := cutPosition(v.clears.Key()[prefix:])
	if !ok {
		return Evidence{}, false, errEvidence
	}
	e, err := decodeEvidence(v.clears.Value(), p)
	return e, err == nil, err
}

// Mark returns the newest mark of a source at or before the record at offset.
func (v *View) Mark(source uint32, offset uint64) (Mark, bool, error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: markKey(source, 0), UpperBound: sourceKey(keyMark, source+1)})
	if err != nil {
		return Mark{}, false, err
	}
	defer it.Close()
	if !it.SeekLT(markKey(source, offset+1)) {
		return Mark{}, false, it.Error()
	}
	m, err := decodeMark(it.Key(), it.Value())
	return m, err == nil, err
}

// Backends lists the backends of a source that have a scope of that tenant.
func (v *View) Backends(source uint32, tenant []byte) ([][]byte, error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: sourceKey(keyScope, source), UpperBound: sourceKey(keyScope, source+1)})
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
