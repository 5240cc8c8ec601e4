package index

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// run is a walk over objects in the order in which they are stored.
type run struct {
	it     *pebble.Iterator
	one    bool   // it goes to single objects, by filters
	scope  int    // length of the keyspace and scope in its keys
	prefix []byte // of the current object: everything up to the medium
	live   bool   // there is a current object
	key    []byte // of the current object, where keyed
	keyed  bool
	on     bool              // the iterator stands at a row
	read   bool              // it is the row read last, whose bytes are still in use
	medium []byte            // of the row read last, as in keys
	names  map[string]string // of media that are neither cpu nor disk, by what they are in keys
	buf    []byte
}

// aFew is how many rows are stepped over before a seek is cheaper.
const aFew = 8

// object takes the object of the row that the iterator stands at as the current one.
func (r *run) object() error {
	r.live, r.keyed, r.read, r.medium = r.on, false, false, r.medium[:0]
	if !r.on {
		return r.it.Error()
	}
	k := r.it.Key()
	n := objectEnd(k[r.scope:])
	if n < 0 || k[r.scope] != objectPlain && k[r.scope] != objectPacked {
		return errEvidence
	}
	r.prefix = append(r.prefix[:0], k[:r.scope+n]...)
	return nil
}

// objectKey decodes the current object's key.
func (r *run) objectKey() []byte {
	if !r.keyed {
		r.keyed, r.key = true, appendObjectKey(r.key[:0], r.prefix[r.scope:])
	}
	return r.key
}

// step moves behind the row read last, if the iterator still stands there.
func (r *run) step() {
	if r.read {
		r.read, r.on = false, r.it.Next()
	}
}

// seek moves to target or behind it; it lies in the current object.
func (r *run) seek(target []byte) {
	if r.one {
		r.on = r.it.SeekPrefixGE(target)
	} else {
		r.on = r.it.SeekGE(target)
	}
}

func (r *run) nextObject() error {
	if r.one {
		r.on = false
		return r.object()
	}
	r.step()
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

// next reads the next row of the current object that is not newer than at.
func (r *run) next(row *Row, at Position) (bool, error) {
	r.step()
	for n := 0; ; n++ {
		if !r.on {
			return false, r.it.Error()
		}
		k := r.it.Key()
		if !bytes.HasPrefix(k, r.prefix) {
			return false, nil
		}
		medium, p, err := cutEvent(k[len(r.prefix):])
		if err != nil {
			return false, err
		}
		if !at.Before(p) {
			return true, r.take(row, medium, p)
		}
		if n < aFew {
			r.on = r.it.Next()
			continue
		}
		r.buf = append(append(r.buf[:0], r.prefix...), medium...)
		r.buf = appendPosition(r.buf, at)
		r.seek(r.buf)
		n = 0
	}
}

// take reads the row that the iterator stands at.
func (r *run) take(row *Row, medium []byte, p Position) error {
	switch medium[0] {
	case mediumCPU:
		row.Medium = "cpu"
	case mediumDisk:
		row.Medium = "disk"
	default:
		row.Medium = r.mediumName(medium)
	}
	r.medium = append(r.medium[:0], medium...)
	v, err := r.it.ValueAndErr()
	if err != nil {
		return err
	}
	row.Evidence, row.group = cutEvidence(v, p)
	if row.group.Bad {
		return errEvidence
	}
	r.read = true
	return nil
}

// maxNames bounds the names remembered.
const maxNames = 256

func (r *run) mediumName(medium []byte) string {
	if name, known := r.names[string(medium)]; known {
		return name
	}
	if r.names == nil || len(r.names) >= maxNames {
		r.names = map[string]string{}
	}
	name, _, _ := cutMedium(medium)
	r.names[string(medium)] = name
	return name
}

// mediumEnd is the index behind the medium that b begins with, -1 where there is none.
func mediumEnd(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case mediumCPU, mediumDisk:
		return 1
	case mediumOther:
		if n := textEnd(b[1:]); n >= 0 {
			return 1 + n
		}
	}
	return -1
}

// cutEvent cuts what follows the object in a key of the history: the medium, as in keys, and the position.
func cutEvent(b []byte) (medium []byte, p Position, err error) {
	end := mediumEnd(b)
	if end < 0 {
		return nil, p, errEvidence
	}
	p, ok := cutPosition(b[end:])
	if !ok {
		return nil, p, errEvidence
	}
	return b[:end], p, nil
}

// ofMedium reports whether the iterator stands at a row of the same object and medium as the row read last.
func (r *run) ofMedium() bool {
	if !r.on || len(r.medium) == 0 {
		return false
	}
	k := r.it.Key()
	return len(k) >= len(r.prefix)+len(r.medium) && bytes.HasPrefix(k, r.prefix) && bytes.HasPrefix(k[len(r.prefix):], r.medium)
}

// skip moves over rows of the current row's medium that are newer than at, nil: over all: a few by steps, then by a seek.
func (r *run) skip(at *Position) error {
	if len(r.medium) == 0 {
		return nil
	}
	r.step()
	for n := 0; r.ofMedium(); n++ {
		if at != nil {
			p, ok := cutPosition(r.it.Key()[len(r.prefix)+len(r.medium):])
			if !ok {
				return errEvidence
			}
			if !at.Before(p) {
				return nil
			}
		}
		if n < aFew {
			r.on = r.it.Next()
			continue
		}
		r.buf = append(append(r.buf[:0], r.prefix...), r.medium...)
		if at != nil {
			r.buf = appendPosition(r.buf, *at)
		} else {
			r.buf = append(r.buf, 0xff)
		}
		r.seek(r.buf)
	}
	return r.it.Error()
}
