package index

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// each calls f with each row from low on and before high, in the order of the keys, or, with back, the last first. What f gets is valid
// until it returns.
func (v *View) each(low, high []byte, back bool, f func(key, value []byte) error) error {
	if bytes.Compare(low, high) >= 0 {
		return nil
	}
	it, err := v.rows(low, high)
	if err != nil {
		return err
	}
	defer it.Close()
	first, next := it.First, it.Next
	if back {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := f(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// eachAt is each for the rows of a scope at positions behind from, up to to: the oldest first, or, with back, the newest.
func (v *View) eachAt(space byte, s *Scope, from, to Position, back bool, f func(p Position, value []byte) error) error {
	prefix := s.append([]byte{space})
	low, high := appendPosition(bytes.Clone(prefix), to), appendPosition(bytes.Clone(prefix), from)
	return v.each(low, high, !back, func(key, value []byte) error { // newer positions have smaller keys
		p, ok := cutPosition(key[len(prefix):])
		if !ok {
			return errEvidence
		}
		return f(p, value)
	})
}

// eachOffset is each for the rows of a source whose keys end in an offset behind after, up to to: the oldest first, or, with back, the
// newest.
func (v *View) eachOffset(space byte, source uint32, after, to uint64, back bool, f func(offset uint64, key, value []byte) error) error {
	return v.each(append(offsetKey(space, source, after), 0), append(offsetKey(space, source, to), 0), back, func(key, value []byte) error {
		if len(key) != 13 {
			return errEvidence
		}
		return f(binary.BigEndian.Uint64(key[5:]), key, value)
	})
}

// errPage ends a reading whose page is full.
var errPage = errors.New("the page is full")

// page appends up to n of what read gives to dst.
func page[T any](dst []T, n int, read func(f func(*T) error) error) ([]T, error) {
	if n <= 0 {
		return dst, nil
	}
	err := read(func(one *T) error {
		dst = append(dst, *one)
		if n--; n == 0 {
			return errPage
		}
		return nil
	})
	if errors.Is(err, errPage) {
		err = nil
	}
	return dst, err
}
