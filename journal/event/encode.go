package event

import (
	"github.com/vmihailenco/msgpack/v5"
)

// EncodeOptions are the publisher's flags that change the wire format.
type EncodeOptions struct {
	// LegacyCompat adds the legacy fields type, block_hashes and parent_block_hash. It is the publisher's
	// kv_events_emit_legacy_compat, whose default is true.
	LegacyCompat bool
	// ObjectKey writes object_key. It is the publisher's kv_events_emit_object_key, whose default is true. A publisher
	// without it sends no stored and removed events at all; leaving them out is the caller's business.
	ObjectKey bool
}

// Fields is one event as a publisher writes it. A nil pointer and a BlockSize of 0 are nil on the wire.
type Fields struct {
	Type      Type   // must be Stored, Removed or Cleared
	ID        uint64 // monotonic per publisher process
	Timestamp int64  // Unix milliseconds

	ModelName, Salt, LoraName *string
	GroupID                   *string // left out for Cleared
	BlockSize, DPRank         uint32

	Tenant, Backend string
	Medium          string // ignored, and nil on the wire, for Cleared
	Key             string // left out for Cleared
}

// Encoder writes payloads byte for byte as the real publisher does: its order of fields, integers in their smallest
// encoding, strings as str. It may be reused, but not by several goroutines at once.
//
// Everything that does not differ between two events of one type, mostly the names of the fields, is encoded once, by
// NewEncoder, and then copied.
type Encoder struct {
	out    output
	values *msgpack.Encoder // writes to out
	parts  [Cleared + 1]constantParts
}

// constantParts is what lies between the values of an event of one type, already encoded: each part begins behind the
// value before it and ends with the name of the field after which it is called.
type constantParts struct {
	eventID, timestamp                                 []byte // eventID begins with the map's header
	modelName                                          []byte // begins with event_type and its value
	blockSize, salt, loraName, tenant, backend, medium []byte
	dpRank                                             []byte // for Cleared it begins with the nil of medium
	groupID, objectKey, tail                           []byte // empty for Cleared
}

// output is the writer behind the msgpack encoder: it appends.
type output struct{ bytes []byte }

func (o *output) Write(p []byte) (int, error) {
	o.bytes = append(o.bytes, p...)
	return len(p), nil
}

func (o *output) WriteByte(b byte) error {
	o.bytes = append(o.bytes, b)
	return nil
}

// NewEncoder returns an encoder for a publisher with the given flags.
func NewEncoder(o EncodeOptions) *Encoder {
	e := &Encoder{}
	e.values = msgpack.NewEncoder(&e.out)
	e.parts[Stored] = e.constants(o, Stored, legacyNameStored)
	e.parts[Removed] = e.constants(o, Removed, legacyNameRemoved)
	e.parts[Cleared] = e.constants(o, Cleared, legacyNameCleared)
	return e
}

// constants encodes the parts of an event that are the same for all events of one type.
func (e *Encoder) constants(o EncodeOptions, t Type, legacyName string) (parts constantParts) {
	fields := 0
	name := func(s string) {
		fields++
		e.values.EncodeString(s)
	}
	nothing := func(s string) {
		name(s)
		e.values.EncodeNil()
	}
	empty := func(s string) {
		name(s)
		e.values.EncodeArrayLen(0)
	}
	take := func() []byte {
		part := e.out.bytes
		e.out.bytes = nil
		return part
	}
	until := func(s string) []byte {
		name(s)
		return take()
	}

	first := until(FieldEventID)
	parts.timestamp = until(FieldTimestamp)
	name(FieldEventType)
	e.values.EncodeString(t.String())
	if o.LegacyCompat {
		name(FieldLegacyType)
		e.values.EncodeString(legacyName)
	}
	parts.modelName = until(FieldModelName)
	parts.blockSize = until(FieldBlockSize)
	parts.salt = until(FieldAdditionalSalt)
	parts.loraName = until(FieldLoraName)
	parts.tenant = until(FieldTenantID)
	parts.backend = until(FieldBackendID)
	parts.medium = until(FieldMedium)
	if t == Cleared {
		e.values.EncodeNil()
	}
	parts.dpRank = until(FieldDPRank)
	if t != Cleared {
		parts.groupID = until(FieldGroupID)
		if o.ObjectKey {
			parts.objectKey = until(FieldObjectKey)
		}
		empty(FieldSeqHashes)
		if o.LegacyCompat {
			empty(FieldBlockHashes)
		}
		nothing(FieldBaseBlockIdx)
		if t == Stored {
			nothing(FieldParentHash)
			nothing(FieldTokenIDs)
			if o.LegacyCompat {
				nothing(FieldParentBlockHash)
			}
		}
		parts.tail = take()
	}

	e.values.EncodeMapLen(fields)
	parts.eventID = append(take(), first...)
	return parts
}

// AppendPayload appends frame 2 of a message, [timeMS, events, dpRank], to dst and returns the longer slice. timeMS is
// the time of sending in Unix milliseconds. It allocates only to make dst longer. It panics if the type of an event is
// none of the three.
//
// The errors of the msgpack encoder are those of its writer, which has none.
func (e *Encoder) AppendPayload(dst []byte, timeMS int64, events []Fields, dpRank uint32) []byte {
	e.out.bytes = dst
	e.values.EncodeArrayLen(3)
	e.values.EncodeInt(timeMS)
	e.values.EncodeArrayLen(len(events))
	for i := range events {
		e.event(&events[i])
	}
	e.values.EncodeUint(uint64(dpRank))
	dst, e.out.bytes = e.out.bytes, nil
	return dst
}

func (e *Encoder) event(f *Fields) {
	if f.Type < Stored || f.Type > Cleared {
		panic("event: cannot encode an event of type " + f.Type.String())
	}
	parts := &e.parts[f.Type]
	e.constant(parts.eventID)
	e.values.EncodeUint(f.ID)
	e.constant(parts.timestamp)
	e.values.EncodeInt(f.Timestamp)
	e.constant(parts.modelName)
	e.optional(f.ModelName)
	e.constant(parts.blockSize)
	if f.BlockSize == 0 {
		e.values.EncodeNil()
	} else {
		e.values.EncodeUint(uint64(f.BlockSize))
	}
	e.constant(parts.salt)
	e.optional(f.Salt)
	e.constant(parts.loraName)
	e.optional(f.LoraName)
	e.constant(parts.tenant)
	e.values.EncodeString(f.Tenant)
	e.constant(parts.backend)
	e.values.EncodeString(f.Backend)
	e.constant(parts.medium)
	if f.Type != Cleared {
		e.values.EncodeString(f.Medium)
	}
	e.constant(parts.dpRank)
	e.values.EncodeUint(uint64(f.DPRank))
	if f.Type == Cleared {
		return
	}
	e.constant(parts.groupID)
	e.optional(f.GroupID)
	if len(parts.objectKey) > 0 {
		e.constant(parts.objectKey)
		e.values.EncodeString(f.Key)
	}
	e.constant(parts.tail)
}

func (e *Encoder) constant(part []byte) {
	e.out.bytes = append(e.out.bytes, part...)
}

func (e *Encoder) optional(s *string) {
	if s == nil {
		e.values.EncodeNil()
		return
	}
	e.values.EncodeString(*s)
}
