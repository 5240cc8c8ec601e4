package index

import (
	"bytes"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Scope is what a `cleared` empties: the objects of one tenant of one backend of a source.
type Scope struct {
	Source          uint32
	Backend, Tenant []byte
}

func (s *Scope) append(dst []byte) []byte { return appendScope(dst, s.Source, s.Backend, s.Tenant) }

// Name is a text that no other scope has.
func (s *Scope) Name() string { return string(s.append(nil)) }

// Scopes calls f with each scope of a source that was ever seen, in the order of backends, then tenants. f may keep it.
func (v *View) Scopes(source uint32, f func(Scope) error) error {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: sourceKey(keyScope, source), UpperBound: sourceKey(keyScope, source+1)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		s, valid := cutScope(it.Key()[1:])
		if !valid {
			return errEvidence
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return it.Error()
}

// cutScope reads a whole key behind its first byte as a scope.
func cutScope(b []byte) (Scope, bool) {
	if len(b) < 4 {
		return Scope{}, false
	}
	s := Scope{Source: be32(b)}
	var ok, ok2 bool
	s.Backend, b, ok = cutText(b[4:])
	s.Tenant, b, ok2 = cutText(b)
	return s, ok && ok2 && len(b) == 0
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Clear is a `cleared` of a scope. Proof: it confirms absence (R7).
type Clear struct {
	Evidence
	Proof bool
}

// Clears calls f with each `cleared` of a scope behind from, up to to, the oldest first.
func (v *View) Clears(s *Scope, from, to Position, f func(*Clear) error) error {
	prefix := s.append([]byte{keyClear})
	if !from.Before(to) {
		return nil
	}
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: appendPosition(bytes.Clone(prefix), to), UpperBound: appendPosition(bytes.Clone(prefix), from)})
	if err != nil {
		return err
	}
	defer it.Close()
	proof := s.append([]byte{keyProof})
	for ok := it.Last(); ok; ok = it.Prev() {
		p, valid := cutPosition(it.Key()[len(prefix):])
		if !valid {
			return errEvidence
		}
		e, err := decodeEvidence(it.Value(), p)
		if err != nil {
			return err
		}
		c := Clear{Evidence: e}
		switch _, closer, err := v.snap.Get(appendPosition(bytes.Clone(proof), p)); err {
		case nil:
			c.Proof = true
			closer.Close()
		case pebble.ErrNotFound:
		default:
			return err
		}
		if err := f(&c); err != nil {
			return err
		}
	}
	return it.Error()
}

// Marks calls f with each mark of a source whose first record lies behind the offset after, up to to, the oldest first.
func (v *View) Marks(source uint32, after, to uint64, f func(*Mark) error) error {
	if after >= to {
		return nil
	}
	high := sourceKey(keyMark, source+1)
	if to < math.MaxUint64 {
		high = markKey(source, to+1)
	}
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: markKey(source, after+1), UpperBound: high})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		m, err := decodeMark(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if err := f(&m); err != nil {
			return err
		}
	}
	return it.Error()
}
