package index

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

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
	v.key = appendObject(appendScope(append(v.key[:0], keyHistory), o.Source, o.Backend, o.Tenant), o.Key)
	object := v.key[1:]
	dst = append(dst, Medium{Name: "cpu"}, Medium{Name: "disk"})
	h := v.x.hot
	if h == nil {
		dst, _, err := v.newestRows(dst, at, false)
		return dst, err
	}
	hash := h.hash(object)
	dst, known := h.media(dst, hash, object, v.number, at)
	if known {
		return dst, nil
	}
	first, n := len(dst)-2, len(v.key)
	present := !at.Before(Behind(v.Source(o.Source).AsOf.Offset))
	dst, all, err := v.newestRows(dst, at, present)
	if all && err == nil {
		h.keep(hash, v.key[1:n], dst[first:], v.state)
	}
	return dst, err
}

// newestRows adds to the media at the end of dst, cpu and disk, what the history has at or before a position of the object that v.key ends
// behind. With present nothing, or little, is expected to be newer; then all tells that the object has events, and none that is newer.
func (v *View) newestRows(dst []Medium, at Position, present bool) (_ []Medium, all bool, err error) {
	it := v.history
	if it == nil {
		it, err = v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}, UseL6Filters: true})
		if err != nil {
			return dst, false, err
		}
		v.history = it
	}
	prefix, first := len(v.key), len(dst)-2
	v.medium = v.medium[:0]
	all = present
	key := v.key
	if !present {
		key = appendPosition(append(key, mediumCPU), at)
	}
	steps := 0
	for ok := it.SeekPrefixGE(key); ok; {
		b := it.Key()[prefix:]
		end := mediumEnd(b)
		if end < 0 {
			return dst, false, errEvidence
		}
		p, valid := cutPosition(b[end:])
		if !valid {
			return dst, false, errEvidence
		}
		older, newer := bytes.Equal(b[:end], v.medium), at.Before(p)
		if newer {
			all = false
		}
		switch {
		case !older && !newer:
			e, err := decodeEvidence(it.Value(), p)
			if err != nil {
				return dst, false, err
			}
			dst = putMedium(dst, first, b[:end], e)
			v.medium = append(v.medium[:0], b[:end]...)
			steps = 0
		case steps < aFew:
			steps++
		default:
			key = append(v.key[:prefix], b[:end]...)
			if older {
				key = append(key, 0xff) // the next medium: behind every position of this one
			} else {
				key = appendPosition(key, at)
			}
			steps, ok = 0, it.SeekPrefixGE(key)
			continue
		}
		ok = it.Next()
	}
	return dst, all && len(v.medium) > 0, it.Error()
}

// putMedium sets the newest event of a medium, named as in keys, in the list that begins with cpu and disk at first.
func putMedium(dst []Medium, first int, medium []byte, e Evidence) []Medium {
	m := Medium{Has: true, Newest: e}
	switch medium[0] {
	case mediumCPU:
		m.Name = "cpu"
		dst[first] = m
	case mediumDisk:
		m.Name = "disk"
		dst[first+1] = m
	default:
		m.Name, _, _ = cutMedium(medium)
		dst = append(dst, m)
	}
	return dst
}
