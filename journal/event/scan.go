package event

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

const (
	payloadDepth = 0
	eventDepth   = 2 // of an event map
	fieldDepth   = 3 // of its keys and values

	// firstRoom is how many events room is made for at first: of a full batch of the publisher, and some.
	firstRoom = 128
	// keptEvents is how many a Batch keeps room for, about 0.6 MB.
	keptEvents = 4096

	// smallestEvent is the size of the smallest event that can be applied, in bytes: {event_type: cleared}. It bounds
	// what a message can make Scan allocate.
	smallestEvent = 1 + 1 + len(FieldEventType) + 1 + len(nameCleared)

	// secondsBelow: a float batch timestamp below it is in seconds, from there on in milliseconds (R6). As seconds it
	// is the year 5138, as milliseconds March 1973.
	secondsBelow = 1e11
)

// Scan reads one message: topic, sequence number, payload. It resets the batch first. The events alias the payload.
//
// Whatever the frames hold, it does not panic, and it allocates nothing but room in Events, which grows with the events that
// are read, not with what a header promises. Room for more than keptEvents is given back with the next Scan.
func (b *Batch) Scan(frames [][]byte) {
	if cap(b.Events) > keptEvents {
		b.Events = nil
	}
	*b = Batch{Limit: b.Limit, Events: b.Events[:0]}
	if len(frames) != frameCount {
		b.Damage = FrameCount
		return
	}
	if len(frames[frameSeq]) != seqFrameSize {
		b.Damage = SeqFrameSize
		return
	}
	b.HasSeq, b.Seq = true, binary.BigEndian.Uint64(frames[frameSeq])
	s := scanner{payload: frames[framePayload]}
	s.batch(b)
	if s.damage != None {
		b.Damage, b.DamageAt = s.damage, s.at
		b.HasTime, b.Time = false, 0
		b.Events = b.Events[:0]
	}
}

// batch reads the payload array into b.
func (s *scanner) batch(b *Batch) {
	h, cause := readHeader(s.payload, 0)
	if cause != None {
		s.fail(cause, 0)
		return
	}
	if h.kind != KindArray || h.size < 2 {
		s.fail(Malformed, 0)
		return
	}
	i := h.body
	if b.Time, i = s.time(i); i < 0 {
		return
	}
	b.HasTime = true
	if i = s.events(i, b); i < 0 {
		return
	}
	for range h.size - 2 { // dp_rank, and what later versions may add
		if i = s.skip(i, payloadDepth+1); i < 0 {
			return
		}
	}
	if i != len(s.payload) {
		s.fail(Trailing, i)
	}
}

// time reads the batch timestamp at index i: Unix milliseconds, and the index behind it.
func (s *scanner) time(i int) (int64, int) {
	h, cause := readHeader(s.payload, i)
	if cause != None {
		return 0, s.fail(cause, i)
	}
	end := h.body + h.size
	switch h.kind {
	case KindUint:
		return int64(min(readBits(s.payload, i, h), math.MaxInt64)), end
	case KindInt:
		return readInt(s.payload, i, h), end
	case KindFloat:
		v := readFloat(s.payload, h)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, s.fail(Time, i)
		}
		if v < secondsBelow {
			v *= 1000
		}
		switch { // the constants are exact floats: 2^63 and -2^63
		case v >= math.MaxInt64:
			return math.MaxInt64, end
		case v <= math.MinInt64:
			return math.MinInt64, end
		}
		return int64(v), end
	}
	return 0, s.fail(Time, i)
}

// events reads the array of events at index i and returns the index behind it.
func (s *scanner) events(i int, b *Batch) int {
	h, cause := readHeader(s.payload, i)
	if cause != None {
		return s.fail(cause, i)
	}
	if h.kind != KindArray {
		return s.fail(Malformed, i)
	}
	if b.Limit > 0 && h.size > b.Limit {
		return s.fail(TooMany, i)
	}
	// However many events the header promises, only so many that can be applied fit into the bytes that follow, and the
	// first one that cannot be applied ends the loop.
	room := min(h.size, (len(s.payload)-i)/smallestEvent+1)
	i = h.body
	for n := range h.size {
		if n == cap(b.Events) {
			grown := make([]Event, n, min(room, max(firstRoom, 2*n)))
			copy(grown, b.Events)
			b.Events = grown
		}
		b.Events = b.Events[:n+1]
		e := &b.Events[n]
		next := knownEvent(s.payload, i, e)
		if next < 0 {
			if next = s.anyEvent(i, e); next < 0 {
				return -1
			}
		}
		i = next
	}
	return i
}

// anyEvent reads the event map at index i, whatever its fields and their order, and returns the index behind it.
func (s *scanner) anyEvent(start int, e *Event) int {
	h, cause := readHeader(s.payload, start)
	if cause != None {
		return s.fail(cause, start)
	}
	if h.kind != KindMap {
		return s.fail(Malformed, start)
	}
	*e = Event{Tenant: defaultTenant}
	var (
		eventType, legacyType              Type // 0: absent or nil; unknownType: neither, nor a known name
		badID, badTenant, badBackend, isID bool
	)
	i := h.body
	for range h.size {
		name, at := s.shortKey(i)
		if at < 0 {
			if name, at = s.mapKey(i, fieldDepth); at < 0 {
				return -1
			}
		}
		v, cause := readHeader(s.payload, at)
		if cause != None {
			return s.fail(cause, at)
		}
		i = v.body + v.size
		if v.kind == KindArray || v.kind == KindMap {
			if i = s.skipContent(v, fieldDepth); i < 0 {
				return -1
			}
		}
		// The last of duplicate fields counts, so each case sets all that an earlier one may have set.
		switch string(name) {
		case FieldEventType:
			eventType = typeOf(s.text(v), v.kind, nameStored, nameRemoved, nameCleared)
		case FieldLegacyType:
			legacyType = typeOf(s.text(v), v.kind, legacyNameStored, legacyNameRemoved, legacyNameCleared)
		case FieldEventID:
			e.ID, isID = readUint(s.payload, at, v)
			e.HasID, badID = isID, !isID && v.kind != KindNil
		case FieldTenantID:
			e.Tenant, badTenant = s.text(v), !v.kind.isText() && v.kind != KindNil
			if len(e.Tenant) == 0 {
				e.Tenant = defaultTenant
			}
		case FieldBackendID:
			e.Backend, badBackend = s.text(v), !v.kind.isText() && v.kind != KindNil
		case FieldObjectKey:
			e.Key = s.text(v)
		case FieldMedium:
			e.Medium = s.text(v)
		case FieldGroupID:
			e.Group = s.text(v)
		}
	}
	if e.Type = eventType; e.Type == 0 {
		e.Type = legacyType
	}
	switch {
	case e.Type == 0 || e.Type == unknownType:
		return s.fail(EventType, start)
	case badTenant || badBackend:
		return s.fail(Scope, start)
	case badID:
		return s.fail(EventID, start)
	case e.Type == Cleared:
		e.Key, e.Medium = nil, nil
	case len(e.Key) == 0:
		return s.fail(Key, start)
	case len(e.Medium) == 0 || !utf8.Valid(e.Medium):
		return s.fail(Medium, start)
	}
	return i
}

// text returns the bytes of a str or bin, never nil, or nil for any other kind.
func (s *scanner) text(h header) []byte {
	if !h.kind.isText() {
		return nil
	}
	end := h.body + h.size
	return s.payload[h.body:end:end]
}

// unknownType stands for a type field with a value that names no type.
const unknownType Type = math.MaxUint8

// typeOf returns the type that a field of the given kind and text names, 0 if the field is nil, else unknownType.
func typeOf(text []byte, kind Kind, stored, removed, cleared string) Type {
	switch {
	case kind == KindNil:
		return 0
	case !kind.isText():
		return unknownType
	}
	switch string(text) {
	case stored:
		return Stored
	case removed:
		return Removed
	case cleared:
		return Cleared
	}
	return unknownType
}
