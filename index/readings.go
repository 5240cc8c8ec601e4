package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// readingAt is the position of what a reading says: directly behind the record that began it, h.
func readingAt(h uint64) Position { return Position{Offset: h, Event: 1} }

// Reading is what a reading of the master says of a scope: what was known at its position is so, but for the objects that are
// excepted, and those that had an event in (Position, Through].
type Reading struct {
	Evidence
	// Through is e of R9, Ended the offset of the record that ended the reading.
	Through, Ended uint64
	// Exceptions is how many objects it excepts, over all its scopes.
	Exceptions uint64
}

// TouchedBy reports whether an event at p lies in (h, e]: of its object the reading says nothing. It is false where r is nil.
func (r *Reading) TouchedBy(p Position) bool {
	return r != nil && r.Position.Before(p) && !Behind(r.Through).Before(p)
}

// SourceReading is a reading of a source as the record that ended it tells.
type SourceReading struct {
	reading.Ended
	// Offset is that of the record, Received its time on our clock, Unix ms.
	Offset   uint64 `json:"offset"`
	Received int64  `json:"received"`
}

var errReading = errors.New("a reading's record does not fit the one that began it")

// status applies what the master's counters or segments showed.
func (a *applier) status(b *journal.Block, i int, h *journal.Header, s *SourceState, place Place) error {
	var err error
	if a.frames, err = b.Frames(i, a.frames[:0], &a.seq); err != nil {
		return err
	}
	var st reading.Status
	if len(a.frames) != 1 || json.Unmarshal(a.frames[0], &st) != nil {
		return &journal.CorruptError{Offset: place.Offset, What: "a publisher's status does not decode"}
	}
	s.Epoch = max(s.Epoch, h.Epoch)
	v, err := json.Marshal(&SourceStatus{Status: st, Received: place.Received})
	if err != nil {
		return err
	}
	if err := a.batch.Set(offsetKey(keyStatus, h.Source, place.Offset), v, nil); err != nil {
		return err
	}
	if st.Silent {
		if err := a.silent(h.Source, h.Epoch, place.Offset); err != nil {
			return err
		}
	}
	if err := a.gaps(h, s, place); err != nil {
		return err
	}
	return a.mark(h, s, place)
}

// part applies one part of a reading: its corrections become events of the objects at h. Newer events of theirs may be in the index
// already, so this is the one place that reads what it is about to write; corrections are few.
func (a *applier) part(b *journal.Block, i int, h *journal.Header, s *SourceState, offset uint64) error {
	var err error
	if a.frames, err = b.Frames(i, a.frames[:0], &a.seq); err != nil {
		return err
	}
	if len(a.frames) != 1 {
		return &journal.CorruptError{Offset: offset, What: reading.ErrPart.Error()}
	}
	p, err := reading.DecodePart(a.frames[0])
	if err != nil {
		return &journal.CorruptError{Offset: offset, What: err.Error()}
	}
	if s.void(p.Begun) || p.Begun <= a.horizon {
		return nil // what it speaks of may be lost, or was pruned
	}
	if s.Reading == nil || s.Reading.Offset != p.Begun {
		return &journal.CorruptError{Offset: offset, What: errReading.Error()}
	}
	var it *pebble.Iterator
	if a.bulk == nil {
		if err := a.commit(offset - 1); err != nil { // what is read must be written
			return err
		}
		a.changed[h.Source] = true
		if it, err = a.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: []byte{keyHistory + 1}}); err != nil {
			return err
		}
		defer it.Close()
	}
	sc := &scope{prefix: appendScope(nil, h.Source, p.Backend, p.Tenant)}
	if err := a.batch.Set(append([]byte{keyScope}, sc.prefix...), nil, nil); err != nil {
		return err
	}
	evidence := s.readingEvidence()
	for {
		e, ok, err := p.Next()
		if err != nil {
			return &journal.CorruptError{Offset: offset, What: err.Error()}
		}
		if !ok {
			return nil
		}
		a.events++
		if err := a.correct(s, it, sc, &e, &evidence); err != nil {
			return err
		}
	}
}

// correct writes one entry of a reading; it, over the history, is nil where a bulk takes the rows, which finds out by itself what is there.
func (a *applier) correct(s *SourceState, it *pebble.Iterator, sc *scope, e *reading.Entry, evidence *Evidence) error {
	if e.What == reading.Unsaid {
		s.Excepted++
		k := appendObject(append(append(a.key[:0], keyException), sc.prefix...), e.Key)
		a.key = appendPosition(k, evidence.Position)
		return a.batch.Set(a.key, nil, nil)
	}
	evidence.Stored = e.What == reading.Present
	if it == nil {
		a.rows.finish(a.rows.begin(sc, e.Key, e.Medium, evidence))
		return nil
	}
	k := appendObject(append(append(a.key[:0], keyHistory), sc.prefix...), e.Key)
	a.touch(k[1:])
	k = appendMedium(k, e.Medium)
	medium := len(k)
	k = appendPosition(k, evidence.Position)
	a.key = k
	a.value = appendEvidence(a.value[:0], evidence)
	if err := a.batch.Set(k, a.value, nil); err != nil {
		return err
	}
	if it.SeekGE(k[:medium]) && bytes.HasPrefix(it.Key(), k[:medium]) && bytes.Compare(it.Key(), k) < 0 {
		return nil // a newer event decides what is there now
	}
	if err := it.Error(); err != nil {
		return err
	}
	k = k[:medium]
	k[0] = keyLive
	if !evidence.Stored {
		return a.batch.Delete(k, nil)
	}
	return a.batch.Set(k, appendLive(nil, evidence.Position), nil)
}

// readingEvidence is what the reading that was begun last says, as evidence.
func (s *SourceState) readingEvidence() Evidence {
	r := s.Reading
	return Evidence{Position: readingAt(r.Offset), Reading: true, Epoch: s.Epoch, Seq: r.Seq, HasTime: r.HasTime, Time: r.Time, Received: r.Received}
}

// ended writes what a reading covers.
func (a *applier) ended(b *journal.Block, i int, h *journal.Header, s *SourceState, place Place) error {
	var err error
	if a.frames, err = b.Frames(i, a.frames[:0], &a.seq); err != nil {
		return err
	}
	r := SourceReading{Offset: place.Offset, Received: place.Received}
	if len(a.frames) != 1 || json.Unmarshal(a.frames[0], &r.Ended) != nil {
		return &journal.CorruptError{Offset: place.Offset, What: "the end of a reading does not decode"}
	}
	if s.void(r.Begun) {
		if r.Contradictions > 0 {
			return a.silent(h.Source, h.Epoch, place.Offset)
		}
		return nil
	}
	if r.Begun <= a.horizon {
		return nil
	}
	if s.Reading == nil || s.Reading.Offset != r.Begun {
		return &journal.CorruptError{Offset: place.Offset, What: errReading.Error()}
	}
	e := s.readingEvidence()
	value := appendEvidence(nil, &e)
	value = binary.AppendUvarint(value, r.Through)
	value = binary.AppendUvarint(value, place.Offset)
	value = binary.AppendUvarint(value, s.Excepted)
	for _, sc := range r.Scopes {
		scope := appendScope(nil, h.Source, sc.Backend, sc.Tenant)
		if err := a.batch.Set(append([]byte{keyScope}, scope...), nil, nil); err != nil {
			return err
		}
		if err := a.batch.Set(appendPosition(append([]byte{keyReading}, scope...), e.Position), value, nil); err != nil {
			return err
		}
	}
	if r.Contradictions > 0 {
		if err := a.silent(h.Source, h.Epoch, place.Offset); err != nil {
			return err
		}
	}
	v, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	s.Reading, s.Excepted = nil, 0
	s.Readings++
	s.Evidence = s.Evidence || s.MarkEnd.Before(e.Position)
	s.AsOf, s.Batch = place, false
	return a.batch.Set(offsetKey(keySourceReading, h.Source, r.Begun), v, nil)
}

// silent flags an epoch of a source (R11).
func (a *applier) silent(source uint32, epoch, offset uint64) error {
	return flag(&a.batch, source, epoch, offset)
}

// Suspect flags the newest epoch of a source, and these, as a record does that tells that its master changes things without an event. It is
// for an index whose changes are thrown away (datadir.Overlay), before anything is asked of it.
func (x *Index) Suspect(source uint32, epochs ...uint64) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return x.gone
	}
	x.fresh.begin(allKeyspaces)
	defer x.fresh.end()
	s := x.a.source(source)
	for _, epoch := range append([]uint64{max(s.Epoch, 1)}, epochs...) {
		if err := flag(x.db, source, epoch, s.Last.Offset); err != nil {
			return err
		}
	}
	return nil
}

// SourceStatus is what the master's counters said, as the record at Offset has it; Received is our clock, Unix ms.
type SourceStatus struct {
	reading.Status
	Offset   uint64 `json:"-"`
	Received int64  `json:"received"`
}

// Statuses calls f with each status of a source at offsets behind after, up to to, the oldest first, or, with back, the newest.
func (v *View) Statuses(source uint32, after, to uint64, back bool, f func(*SourceStatus) error) error {
	return v.eachOffset(keyStatus, source, after, to, back, func(offset uint64, _, value []byte) error {
		s := SourceStatus{Offset: offset}
		if json.Unmarshal(value, &s) != nil {
			return errEvidence
		}
		return f(&s)
	})
}

// Flagged returns the epochs of a source whose master changes things without an event (R11); nil: none.
// The map is shared: it is not changed.
func (v *View) Flagged(source uint32) (map[uint64]bool, error) {
	return v.flags.find(source, func() (map[uint64]bool, bool, error) {
		epochs, err := v.flagged(source)
		return epochs, len(epochs) <= maxName, err
	})
}

func (v *View) flagged(source uint32) (map[uint64]bool, error) {
	var out map[uint64]bool
	err := v.eachOffset(keySilent, source, 0, math.MaxUint64, false, func(epoch uint64, _, _ []byte) error {
		if out == nil {
			out = map[uint64]bool{}
		}
		out[epoch] = true
		return nil
	})
	return out, err
}

// Readings calls f with each reading of a scope whose position lies behind from, up to to, the newest first.
func (v *View) Readings(s *Scope, from, to Position, f func(*Reading) error) error {
	return v.eachReading(s, from, to, true, f)
}

// ReadingPage appends up to n readings of a scope behind from, up to to: the oldest first, or, with back, the newest.
func (v *View) ReadingPage(dst []Reading, s *Scope, from, to Position, back bool, n int) ([]Reading, error) {
	if !v.hasReadings(s.Source) {
		return dst, nil
	}
	return page(dst, n, func(f func(*Reading) error) error { return v.eachReading(s, from, to, back, f) })
}

func (v *View) hasReadings(source uint32) bool {
	st := v.sources[source]
	return st != nil && st.Readings > 0
}

func (v *View) eachReading(s *Scope, from, to Position, back bool, f func(*Reading) error) error {
	if !v.hasReadings(s.Source) {
		return nil
	}
	return v.eachAt(keyReading, s, from, to, back, func(p Position, value []byte) error {
		e, rest := cutEvidence(value, p)
		r := Reading{Evidence: e, Through: rest.Uvarint(), Ended: rest.Uvarint(), Exceptions: rest.Uvarint()}
		if !rest.Done() {
			return errEvidence
		}
		return f(&r)
	})
}

// SourceReadings calls f with each reading of a source that began behind the offset after, up to to, the oldest first.
func (v *View) SourceReadings(source uint32, after, to uint64, f func(*SourceReading) error) error {
	return v.eachOffset(keySourceReading, source, after, to, false, func(_ uint64, _, value []byte) error {
		var r SourceReading
		if err := json.Unmarshal(value, &r); err != nil {
			return errEvidence
		}
		return f(&r)
	})
}

// SourceReading returns the reading of a source that began at h, if it ended.
func (v *View) SourceReading(source uint32, h uint64) (r SourceReading, ok bool, err error) {
	err = v.SourceReadings(source, h-1, h, func(one *SourceReading) error {
		r, ok = *one, true
		return nil
	})
	return r, ok, err
}

// Says reports whether a reading speaks of an object: see Sayer.
func (v *View) Says(r *Reading, o *Object) (bool, error) {
	if v.says == nil {
		v.says = v.Sayer()
	}
	return v.says.Says(r, o)
}
