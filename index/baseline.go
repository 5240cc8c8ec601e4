package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Base is what the index of a pruned journal begins with: the rows of a baseline. The zero Base is that of a whole journal.
type Base struct {
	// Generation is the baseline's, Offset the horizon.
	Generation uint64 `json:"generation"`
	Offset     uint64 `json:"offset"`
	// Cuts are, by source, the offsets from which on what was so is known; absent: 0.
	Cuts map[uint32]uint64 `json:"cuts"`
	// Forgotten is the offset up to which objects that were removed may have been forgotten, 0: none.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

func readBaseline(db pebble.Reader) (b Base, err error) {
	v, err := get(db, []byte{keyBaseline})
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return b, nil
	case err != nil:
		return b, err
	case json.Unmarshal(v, &b) != nil:
		return b, errEvidence
	}
	return b, nil
}

// BaselineOptions say what a baseline keeps.
type BaselineOptions struct {
	// Generation of the baseline.
	Generation uint64
	// ForgetRemoved leaves out objects of which the last that is known is that they were removed. Answers about them are then uncertain.
	ForgetRemoved bool
}

// NewBase is what an index would begin with that was pruned up to a checkpoint.
func (v *View) NewBase(c *Checkpoint, o BaselineOptions) Base {
	b := Base{Generation: o.Generation, Offset: c.Offset, Cuts: map[uint32]uint64{}, Forgotten: v.base.Forgotten}
	for id := range c.Sources {
		b.Cuts[id] = c.Cut(id)
	}
	if o.ForgetRemoved {
		b.Forgotten = c.Offset
	}
	return b
}

// Baseline calls add with the rows, in the order of their keys, that stand for all that was recorded up to a checkpoint (PruneTo): with them and the
// records behind it, each answer at a moment from it on is the same. What add gets is valid until it returns. progress is told rows
// of about so many.
//
// What is kept (H is the checkpoint, K the source's Cut):
//
//	h      all behind K. Of each object and medium: the newest; where it is `stored`, that with which its stay began (lifetimes); the newest
//	       of the object with a group; for each reading that may be asked for, one that lies in its (h, e] (Sayer); and the `removed`
//	       behind a `stored` of those that an older stay left
//	       None of an object that is gone by all of these where its scope's newest proof of absence says the same of every object never seen
//	       (or, with ForgetRemoved, in any case), unless a reading's (h, e] holds one
//	c, e   all behind K, the newest clear, the newest proof, and the newest clear before each of those readings
//	x      all behind K, and those of these readings
//	f, g, k, m, q, r, u   all
//	s, v   as of H
//	l      follow from h
//
// The readings that may be asked for are the 16 newest of the scope behind the newest mark.
func (v *View) Baseline(ctx context.Context, c *Checkpoint, o BaselineOptions, add func(key, value []byte) error, progress func(done, total uint64)) error {
	t := trimmer{ctx: ctx, v: v, c: c, base: v.NewBase(c, o), forget: o.ForgetRemoved, add: add, progress: progress}
	row, err := json.Marshal(&t.base)
	if err != nil {
		return err
	}
	if err := add([]byte{keyBaseline}, row); err != nil {
		return err
	}
	upTo := func(key, value []byte) error { // keys that end in an offset, behind the source
		if len(key) < 13 {
			return errEvidence
		}
		if binary.BigEndian.Uint64(key[5:]) > c.Offset {
			return nil
		}
		return add(key, value)
	}
	silent := func(key, value []byte) error {
		cur := varint.Cursor{B: value}
		if offset := cur.Uvarint(); cur.Bad {
			return errEvidence
		} else if offset > c.Offset {
			return nil
		}
		return add(key, value)
	}
	for _, f := range []struct {
		space byte
		row   func(key, value []byte) error
	}{
		{keyClear, t.clear}, {keyProof, t.clear}, {keySilent, silent}, {keyGap, upTo}, {keyHistory, t.history}, {keyScope, add}, {keyMark, upTo},
		{keySourceReading, upTo}, {keyReading, t.reading}, {keyState, nil}, {keyStatus, upTo}, {keyCheckpoint, nil}, {keyException, t.exception},
	} {
		switch f.space {
		case keyState:
			err = t.states()
		case keyCheckpoint:
			err = v.each(checkpointKey(c.Offset), append(checkpointKey(c.Offset), 0), false, add)
		default:
			err = v.each([]byte{f.space}, []byte{f.space + 1}, false, func(key, value []byte) error {
				if err := t.tell(); err != nil {
					return err
				}
				return f.row(key, value)
			})
		}
		if err == nil && f.space == keyHistory {
			err = t.objectEnds()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trimmer leaves out the rows that no answer from a checkpoint on needs.
type trimmer struct {
	ctx      context.Context
	v        *View
	c        *Checkpoint
	base     Base
	forget   bool
	add      func(key, value []byte) error
	progress func(done, total uint64)
	rows     uint64

	scopeKey []byte // of scope, without the keyspace
	scope    scopeTrim
	object   objectTrim
}

// tell counts a row, and looks at ctx now and then.
func (t *trimmer) tell() error {
	if t.rows++; t.rows%(1<<14) != 0 {
		return nil
	}
	if t.progress != nil {
		t.progress(min(t.rows, t.c.Events), t.c.Events)
	}
	return t.ctx.Err()
}

// states adds where the sources stood.
func (t *trimmer) states() error {
	for _, id := range slices.Sorted(maps.Keys(t.c.Sources)) {
		value, err := t.c.Sources[id].encode()
		if err != nil {
			return err
		}
		if err := t.add(sourceKey(keyState, id), value); err != nil {
			return err
		}
	}
	return nil
}

// scopeTrim is what decides about the rows of a scope.
type scopeTrim struct {
	// cut: all rows behind it stay.
	cut Position
	// clear and proof are the newest up to cut, the zero Position: none.
	clear, proof Position
	// clears are the positions up to cut of the clears that stay.
	clears []Position
	// readings are those up to cut that may be asked for.
	readings []Reading
}

// readingsAsked is how many readings of a scope a question looks at.
const readingsAsked = 16

// enter reads what decides about the scope that a key behind its keyspace begins with; n is its length.
func (t *trimmer) enter(key []byte, n int) error {
	if bytes.Equal(t.scopeKey, key[:n]) {
		return nil
	}
	t.scopeKey = append(t.scopeKey[:0], key[:n]...)
	sc, ok := cutScope(t.scopeKey)
	if !ok {
		return errEvidence
	}
	s := &t.scope
	*s = scopeTrim{cut: Behind(t.base.Cuts[sc.Source]), clears: s.clears[:0], readings: s.readings[:0]}
	o := Object{Source: sc.Source, Backend: sc.Backend, Tenant: sc.Tenant}
	stays := func(find func(*Object, Position) (Evidence, bool, error), at Position) (Position, error) {
		e, ok, err := find(&o, at)
		if ok && err == nil {
			s.clears = append(s.clears, e.Position)
		}
		return e.Position, err
	}
	var err error
	if s.clear, err = stays(t.v.Cleared, s.cut); err != nil {
		return err
	}
	if s.proof, err = stays(t.v.Proof, s.cut); err != nil {
		return err
	}
	from := Position{}
	m, ok, err := t.v.Mark(sc.Source, s.cut.Offset)
	if err != nil {
		return err
	}
	if ok {
		from = m.End
	}
	if s.readings, err = t.v.ReadingPage(s.readings, &sc, from, s.cut, true, readingsAsked); err != nil {
		return err
	}
	for i := range s.readings {
		if _, err := stays(t.v.Cleared, s.readings[i].Position); err != nil {
			return err
		}
	}
	return nil
}

// at enters the scope of a row whose key ends in a position, behind tail more bytes of its prefix, and returns the position.
func (t *trimmer) at(key []byte, scope int) (Position, error) {
	if scope > len(key) {
		return Position{}, errEvidence
	}
	if err := t.enter(key[1:], scope-1); err != nil {
		return Position{}, err
	}
	p, ok := cutPosition(key[split(key):])
	if !ok {
		return p, errEvidence
	}
	return p, nil
}

func (t *trimmer) clear(key, value []byte) error {
	p, err := t.at(key, split(key))
	if err != nil || p.Offset > t.c.Offset || !t.scope.cut.Before(p) && !slices.Contains(t.scope.clears, p) {
		return err
	}
	return t.add(key, value)
}

func (t *trimmer) reading(key, value []byte) error {
	p, ok := cutPosition(key[split(key):])
	if !ok {
		return errEvidence
	}
	if p.Offset > t.c.Offset {
		return nil
	}
	return t.add(key, value)
}

func (t *trimmer) exception(key, value []byte) error {
	p, err := t.at(key, scopeLength(key))
	if err != nil || p.Offset > t.c.Offset {
		return err
	}
	if !t.scope.cut.Before(p) && !slices.ContainsFunc(t.scope.readings, func(r Reading) bool { return r.Position == p }) {
		return nil
	}
	return t.add(key, value)
}
