package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"

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

// AppendName appends the bytes of Name.
func (s *Scope) AppendName(dst []byte) []byte { return s.append(dst) }

// Scopes calls f with each scope of a source that was ever seen, in the order of backends, then tenants. f may keep it.
func (v *View) Scopes(source uint32, f func(Scope) error) error {
	return v.each(sourceKey(keyScope, source), sourceKey(keyScope, source+1), false, func(key, _ []byte) error {
		s, valid := cutScope(key[1:])
		if !valid {
			return errEvidence
		}
		return f(s)
	})
}

// cutScope reads a whole key behind its first byte as a scope.
func cutScope(b []byte) (Scope, bool) {
	if len(b) < 4 {
		return Scope{}, false
	}
	s := Scope{Source: binary.BigEndian.Uint32(b)}
	var ok, ok2 bool
	s.Backend, b, ok = cutText(b[4:])
	s.Tenant, b, ok2 = cutText(b)
	return s, ok && ok2 && len(b) == 0
}

// Clear is a `cleared` of a scope. Proof: it confirms absence (R7).
type Clear struct {
	Evidence
	Proof bool
}

// Clears calls f with each `cleared` of a scope behind from, up to to, the oldest first.
func (v *View) Clears(s *Scope, from, to Position, f func(*Clear) error) error {
	return v.eachClear(s, from, to, false, f)
}

// ClearPage appends up to n clears of a scope behind from, up to to: the oldest first, or, with back, the newest. A caller that
// goes on behind the last one holds a page at a time, however many there are.
func (v *View) ClearPage(dst []Clear, s *Scope, from, to Position, back bool, n int) ([]Clear, error) {
	// Most scopes have none there, and which is the newest is remembered.
	v.key = s.append(append(v.key[:0], keyClear))
	if last, err := v.newestOf(v.key); err != nil || !last.has || !from.Before(last.row.Position) {
		return dst, err
	}
	return page(dst, n, func(f func(*Clear) error) error { return v.eachClear(s, from, to, back, f) })
}

func (v *View) eachClear(s *Scope, from, to Position, back bool, f func(*Clear) error) error {
	proof := s.append([]byte{keyProof})
	return v.eachAt(keyClear, s, from, to, back, func(p Position, value []byte) error {
		e, err := decodeEvidence(value, p)
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
		return f(&c)
	})
}

// Marks calls f with each mark of a source whose first record lies behind the offset after, up to to, the oldest first.
func (v *View) Marks(source uint32, after, to uint64, f func(*Mark) error) error {
	return v.eachMark(source, after, to, false, f)
}

// MarkPage appends up to n marks of a source whose first record lies behind the offset after, up to to: the oldest first, or,
// with back, the newest.
func (v *View) MarkPage(dst []Mark, source uint32, after, to uint64, back bool, n int) ([]Mark, error) {
	if last, err := v.newestMark(source); err != nil || !last.has || last.row.From <= after {
		return dst, err
	}
	return page(dst, n, func(f func(*Mark) error) error { return v.eachMark(source, after, to, back, f) })
}

func (v *View) eachMark(source uint32, after, to uint64, back bool, f func(*Mark) error) error {
	return v.eachOffset(keyMark, source, after, to, back, func(_ uint64, key, value []byte) error {
		m, err := decodeMark(key, value)
		if err != nil {
			return err
		}
		return f(&m)
	})
}

// Gaps calls f for each line of gaps of a source, in the order of their offsets.
func (v *View) Gaps(source uint32, f func(*Gap) error) error {
	return v.eachGap(source, sourceKey(keyGap, source), sourceKey(keyGap, source+1), f)
}

// GapsBetween calls f for each line of gaps of a source that records at the offsets first to last showed, in their order.
func (v *View) GapsBetween(source uint32, first, last uint64, f func(*Gap) error) error {
	return v.eachGap(source, gapKey(source, first, 0), gapKey(source, last, 0xff), f)
}

// GapBefore returns the last line of gaps of a source that a record before the offset showed; ok is false where there is none.
func (v *View) GapBefore(source uint32, offset uint64) (last Gap, ok bool, err error) {
	err = v.each(sourceKey(keyGap, source), gapKey(source, offset, 0), true, func(key, value []byte) error {
		if last, err = decodeGap(source, key, value); err != nil {
			return err
		}
		ok = true
		return errPage
	})
	if errors.Is(err, errPage) {
		err = nil
	}
	return last, ok, err
}

// GapPage appends up to n lines of gaps of a source that records at the offsets first to last showed, in their order.
func (v *View) GapPage(dst []Gap, source uint32, first, last uint64, n int) ([]Gap, error) {
	return page(dst, n, func(f func(*Gap) error) error { return v.GapsBetween(source, first, last, f) })
}

func (v *View) eachGap(source uint32, low, high []byte, f func(*Gap) error) error {
	return v.each(low, high, false, func(key, value []byte) error {
		g, err := decodeGap(source, key, value)
		if err != nil {
			return err
		}
		return f(&g)
	})
}

func decodeGap(source uint32, key, value []byte) (g Gap, err error) {
	if len(key) != 14 || json.Unmarshal(value, &g) != nil {
		return g, errEvidence
	}
	g.Source, g.After = source, binary.BigEndian.Uint64(key[5:])
	return g, nil
}
