package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/cockroachdb/pebble/v2"
)

// ClearPage appends up to n clears of a scope behind from, up to to: the oldest first, or, with back, the newest. A caller that
// goes on behind the last one holds a page at a time, however many there are.
func (v *View) ClearPage(dst []Clear, s *Scope, from, to Position, back bool, n int) ([]Clear, error) {
	prefix := s.append([]byte{keyClear})
	low, high := appendPosition(bytes.Clone(prefix), to), appendPosition(bytes.Clone(prefix), from)
	if bytes.Compare(low, high) >= 0 {
		return dst, nil
	}
	it, err := v.rows(low, high)
	if err != nil {
		return dst, err
	}
	defer it.Close()
	first, next := it.Last, it.Prev // newer positions have smaller keys
	if back {
		first, next = it.First, it.Next
	}
	proof := s.append([]byte{keyProof})
	for ok := first(); ok && n > 0; ok, n = next(), n-1 {
		p, valid := cutPosition(it.Key()[len(prefix):])
		if !valid {
			return dst, errEvidence
		}
		e, err := decodeEvidence(it.Value(), p)
		if err != nil {
			return dst, err
		}
		c := Clear{Evidence: e}
		switch _, closer, err := v.snap.Get(appendPosition(bytes.Clone(proof), p)); err {
		case nil:
			c.Proof = true
			closer.Close()
		case pebble.ErrNotFound:
		default:
			return dst, err
		}
		dst = append(dst, c)
	}
	return dst, it.Error()
}

// MarkPage appends up to n marks of a source whose first record lies behind the offset after, up to to: the oldest first, or,
// with back, the newest.
func (v *View) MarkPage(dst []Mark, source uint32, after, to uint64, back bool, n int) ([]Mark, error) {
	if to <= after {
		return dst, nil
	}
	it, err := v.rows(markKey(source, after+1), markKey(source, to+1))
	if err != nil {
		return dst, err
	}
	defer it.Close()
	first, next := it.First, it.Next
	if back {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok && n > 0; ok, n = next(), n-1 {
		m, err := decodeMark(it.Key(), it.Value())
		if err != nil {
			return dst, err
		}
		dst = append(dst, m)
	}
	return dst, it.Error()
}

// GapPage appends up to n lines of gaps of a source that records at the offsets first to last showed, in their order.
func (v *View) GapPage(dst []Gap, source uint32, first, last uint64, n int) ([]Gap, error) {
	it, err := v.rows(gapKey(source, first, 0), gapKey(source, last, 0xff))
	if err != nil {
		return dst, err
	}
	defer it.Close()
	for ok := it.First(); ok && n > 0; ok, n = it.Next(), n-1 {
		g := Gap{}
		if len(it.Key()) != 14 || json.Unmarshal(it.Value(), &g) != nil {
			return dst, errEvidence
		}
		g.Source, g.After = source, binary.BigEndian.Uint64(it.Key()[5:])
		dst = append(dst, g)
	}
	return dst, it.Error()
}
