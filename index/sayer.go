package index

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Sayer asks of objects whether readings speak of them. It is fastest in the order of keys, and not for concurrent use; several of
// one view may be used by goroutines of their own. It is closed with its view.
type Sayer struct {
	v    *View
	rows *pebble.Iterator // over the history

	// exceptions stands at the first row from low on.
	exceptions *pebble.Iterator
	low        []byte

	key []byte
}

// Sayer returns a new one.
func (v *View) Sayer() *Sayer {
	s := &Sayer{v: v}
	v.sayersMu.Lock()
	defer v.sayersMu.Unlock()
	v.sayers = append(v.sayers, s)
	return s
}

func (s *Sayer) close() error {
	var err error
	for _, it := range []*pebble.Iterator{s.rows, s.exceptions} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}

// Says reports whether a reading speaks of an object: it is not excepted, and had no event of its own in (h, e]. Of a key with a newline it
// never does: the master's listing has one key a line and escapes nothing, so that such a key is not in it even where the object exists.
func (s *Sayer) Says(r *Reading, o *Object) (bool, error) {
	if ok, err := s.Untouched(r, o); !ok || err != nil {
		return false, err
	}
	touched, err := s.touched(r, o)
	return !touched && err == nil, err
}

// Untouched is Says for an object of which the caller knows that it had no event in (h, e]: it looks at nothing where the reading has
// no exceptions.
func (s *Sayer) Untouched(r *Reading, o *Object) (bool, error) {
	if bytes.IndexByte(o.Key, '\n') >= 0 {
		return false, nil
	}
	if r.Exceptions == 0 {
		return true, nil
	}
	s.key = appendObject(appendScope(append(s.key[:0], keyException), o.Source, o.Backend, o.Tenant), o.Key)
	s.key = appendPosition(s.key, r.Position)
	excepted, err := s.excepted()
	return !excepted && err == nil, err
}

// excepted reports whether key is a row. Between two rows of exceptions nothing is sought again.
func (s *Sayer) excepted() (bool, error) {
	it := s.exceptions
	if it == nil {
		var err error
		if it, err = s.v.rows([]byte{keyException}, []byte{keyException + 1}); err != nil {
			return false, err
		}
		s.exceptions = it
	}
	if len(s.low) == 0 || bytes.Compare(s.key, s.low) < 0 || it.Valid() && bytes.Compare(it.Key(), s.key) < 0 {
		it.SeekGE(s.key)
		s.low = append(s.low[:0], s.key...)
	}
	if !it.Valid() {
		return false, it.Error()
	}
	return bytes.Equal(it.Key(), s.key), nil
}

// Exceptions calls f with the position of each reading that excepts the object, the newest first.
func (s *Sayer) Exceptions(o *Object, f func(Position)) error {
	s.key = appendObject(appendScope(append(s.key[:0], keyException), o.Source, o.Backend, o.Tenant), o.Key)
	if _, err := s.excepted(); err != nil {
		return err
	}
	it, n := s.exceptions, len(s.key)
	if !it.Valid() || !bytes.HasPrefix(it.Key(), s.key) {
		return it.Error()
	}
	for ok := true; ok && bytes.HasPrefix(it.Key(), s.key); ok = it.Next() {
		p, valid := cutPosition(it.Key()[n:])
		if !valid {
			return errEvidence
		}
		f(p)
	}
	s.low = append(append(s.low[:0], s.key...), 0xff) // behind all of them
	return it.Error()
}

// touched reports whether an object has an event in (h, e].
func (s *Sayer) touched(r *Reading, o *Object) (bool, error) {
	if s.rows == nil {
		it, err := s.v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}, UseL6Filters: true})
		if err != nil {
			return false, err
		}
		s.rows = it
	}
	it, to := s.rows, Behind(r.Through)
	s.key = appendObject(appendScope(append(s.key[:0], keyHistory), o.Source, o.Backend, o.Tenant), o.Key)
	prefix := len(s.key)
	s.key = appendPosition(append(s.key, mediumCPU), to)
	for ok := it.SeekPrefixGE(s.key); ok; {
		medium, p, err := cutEvent(it.Key()[prefix:])
		if err != nil {
			return false, err
		}
		s.key = append(s.key[:prefix], medium...)
		switch {
		case to.Before(p): // the first row of a medium, and newer than asked: go to the newest that is not
			s.key = appendPosition(s.key, to)
		case r.Position.Before(p):
			return true, nil
		default: // the next medium
			s.key = append(s.key, 0xff)
		}
		ok = it.SeekPrefixGE(s.key)
	}
	return false, it.Error()
}
