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
	dst, hash, scope, known := v.lookUp(dst, o, at)
	if known {
		return dst, nil
	}
	h := v.x.hot
	first, n := len(dst)-2, len(v.key)
	present := h != nil && !at.Before(v.newestOfSource(o.Source))
	var events []byte
	var all bool
	var err error
	if h != nil && !present {
		if dst, events, all, err = v.wholeMedia(dst, at); err != nil {
			return dst, err
		}
		if all {
			h.keepEvents(hash, v.key[1:n], scope, events, true, v.state)
			return dst, nil
		}
	}
	if p := v.reader.past; p.isOf(v.key) && !p.many {
		dst, all = p.media(dst, at, present)
	} else {
		dst, all, err = v.newestRows(dst, at, present)
	}
	if all && err == nil {
		h.keep(hash, v.key[1:n], scope, dst[first:], v.state)
	}
	return dst, err
}

// wholeMedia is newestRows of an object that has few events: all of them are read, or were read just now for its history. Then whole is true, and
// events are as hot keeps them; else dst is as it was. events are valid until the next question.
func (v *View) wholeMedia(dst []Medium, at Position) (_ []Medium, events []byte, whole bool, err error) {
	p := v.reader.past
	if !p.isOf(v.key) {
		return v.allRows(dst, at)
	}
	if v.events, whole = p.whole(v.events[:0]); !whole {
		return dst, nil, false, nil
	}
	dst, _ = p.media(dst, at, false)
	return dst, v.events, true, nil
}

// KeptMedia is Media if that need not read the rows; else known is false, and dst stays as it is.
func (v *View) KeptMedia(dst []Medium, o *Object, at Position) (_ []Medium, known bool) {
	if v.x.hot == nil {
		return dst, false
	}
	out, _, _, known := v.lookUp(dst, o, at)
	if !known {
		return dst, false
	}
	return out, true
}

// lookUp appends cpu and disk, or all that is known of the object's media, if that is kept. v.key becomes the object's in the history; behind
// its first byte, scope long, is the scope.
func (v *View) lookUp(dst []Medium, o *Object, at Position) (_ []Medium, hash uint64, scope int, known bool) {
	v.key = appendScope(append(v.key[:0], keyHistory), o.Source, o.Backend, o.Tenant)
	scope = len(v.key) - 1
	v.key = appendObject(v.key, o.Key)
	dst = append(dst, Medium{Name: "cpu"}, Medium{Name: "disk"})
	if h := v.x.hot; h != nil {
		hash = h.hash(v.key[1:])
		dst, known = h.media(dst, hash, v.key[1:], scope, v.number, at)
	}
	return dst, hash, scope, known
}

// newestOfSource is the position behind what a source's answers speak of by default.
func (v *View) newestOfSource(source uint32) Position {
	if s := v.sources[source]; s != nil {
		return Behind(s.AsOf.Offset)
	}
	return Behind(0)
}

// wholeRows and wholeBytes bound the events of an object that are read, and kept, for a question about its past. Others are sought each time.
const (
	wholeRows  = 24
	wholeBytes = 3 * maxHot / 4
)

// allRows is wholeMedia that reads the rows.
func (v *View) allRows(dst []Medium, at Position) (_ []Medium, events []byte, whole bool, err error) {
	it, err := v.historyRows()
	if err != nil {
		return dst, nil, false, err
	}
	prefix, first, rows := len(v.key), len(dst)-2, 0
	v.medium, v.events = v.medium[:0], v.events[:0]
	for ok := it.SeekPrefixGE(v.key); ok; ok = it.Next() {
		if rows++; rows > wholeRows || len(v.events) > wholeBytes {
			clear(dst[first:])
			return append(dst[:first], Medium{Name: "cpu"}, Medium{Name: "disk"}), nil, false, nil
		}
		medium, p, err := cutEvent(it.Key()[prefix:])
		if err != nil {
			return dst, nil, false, err
		}
		e, err := decodeEvidence(it.Value(), p)
		if err != nil {
			return dst, nil, false, err
		}
		v.events = appendHot(append(v.events, medium...), &e)
		if !at.Before(p) && !bytes.Equal(medium, v.medium) {
			dst = putMedium(dst, first, medium, e)
			v.medium = append(v.medium[:0], medium...)
		}
	}
	return dst, v.events, true, it.Error()
}

// historyRows are the history, for whoever seeks an object by its prefix.
func (v *View) historyRows() (_ *pebble.Iterator, err error) {
	if v.history == nil {
		v.history, err = v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}, UseL6Filters: true})
	}
	return v.history, err
}

// newestRows adds to the media at the end of dst, cpu and disk, what the history has at or before a position of the object that v.key ends
// behind. With present nothing, or little, is expected to be newer; then all tells that none is newer.
func (v *View) newestRows(dst []Medium, at Position, present bool) (_ []Medium, all bool, err error) {
	it, err := v.historyRows()
	if err != nil {
		return dst, false, err
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
		medium, p, err := cutEvent(it.Key()[prefix:])
		if err != nil {
			return dst, false, err
		}
		older, newer := bytes.Equal(medium, v.medium), at.Before(p)
		if newer {
			all = false
		}
		switch {
		case !older && !newer:
			e, err := decodeEvidence(it.Value(), p)
			if err != nil {
				return dst, false, err
			}
			dst = putMedium(dst, first, medium, e)
			v.medium = append(v.medium[:0], medium...)
			steps = 0
		case steps < aFew:
			steps++
		default:
			key = append(v.key[:prefix], medium...)
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
	return dst, all, it.Error()
}

// putMedium sets the newest event of a medium, named as in keys, in the list that begins with cpu and disk at first.
func putMedium(dst []Medium, first int, medium []byte, e Evidence) []Medium {
	name, _, _ := cutMedium(medium)
	return putNamed(dst, first, name, e)
}

// putNamed is putMedium of a medium by its name.
func putNamed(dst []Medium, first int, name string, e Evidence) []Medium {
	m := Medium{Name: name, Has: true, Newest: e}
	switch name {
	case "cpu":
		dst[first] = m
	case "disk":
		dst[first+1] = m
	default:
		dst = append(dst, m)
	}
	return dst
}
