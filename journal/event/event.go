package event

import "encoding/binary"

// Type says what an event does to its object, or to its scope.
type Type uint8

// The three event types of the stream. The zero Type is none of them.
const (
	// Stored: the object is readable on the event's medium.
	Stored Type = iota + 1
	// Removed: the object is no longer readable on the event's medium; other media are not affected.
	Removed
	// Cleared: every object of the event's backend and tenant is gone.
	Cleared
)

// The names of the types in the event_type field and in the legacy type field (guide, "Legacy compatibility").
const (
	nameStored        = "stored"
	nameRemoved       = "removed"
	nameCleared       = "cleared"
	legacyNameStored  = "BlockStored"
	legacyNameRemoved = "BlockRemoved"
	legacyNameCleared = "AllBlocksCleared"
)

// String returns the name that the event_type field uses: stored, removed or cleared.
func (t Type) String() string {
	switch t {
	case Stored:
		return nameStored
	case Removed:
		return nameRemoved
	case Cleared:
		return nameCleared
	}
	return "unknown"
}

// DefaultTenant is the tenant of an event whose tenant_id is absent, nil or empty (R6).
const DefaultTenant = "default"

// defaultTenant is what Event.Tenant shares in that case.
var defaultTenant = []byte(DefaultTenant)

// Names of the fields of an event map (guide, "Event envelope", "Stored", "Legacy compatibility").
const (
	FieldEventID         = "event_id"
	FieldTimestamp       = "timestamp"
	FieldEventType       = "event_type"
	FieldLegacyType      = "type"
	FieldModelName       = "model_name"
	FieldBlockSize       = "block_size"
	FieldAdditionalSalt  = "additional_salt"
	FieldLoraName        = "lora_name"
	FieldTenantID        = "tenant_id"
	FieldBackendID       = "backend_id"
	FieldMedium          = "medium"
	FieldDPRank          = "dp_rank"
	FieldGroupID         = "group_id"
	FieldObjectKey       = "object_key"
	FieldSeqHashes       = "seq_hashes"
	FieldBlockHashes     = "block_hashes"
	FieldBaseBlockIdx    = "base_block_idx"
	FieldParentHash      = "parent_hash"
	FieldTokenIDs        = "token_ids"
	FieldParentBlockHash = "parent_block_hash"
)

// Frames of a message (guide, "Transport").
const (
	frameSeq     = 1 // the sequence number
	framePayload = 2 // the MessagePack payload
	frameCount   = 3 // topic, sequence number, payload

	seqFrameSize = 8 // bytes; an unsigned big-endian integer
)

// Event holds the parts of one event that the state of objects depends on. Its byte slices alias the scanned message:
// they must not be modified, and they are valid as long as the message is.
type Event struct {
	Type Type

	// HasID is false if event_id is absent or nil; ID is 0 then. IDs are monotonic per publisher process.
	HasID bool
	ID    uint64

	// Backend is empty if backend_id is absent or nil. Tenant is DefaultTenant if tenant_id is absent, nil or empty.
	Backend, Tenant []byte

	// Key and Medium are never empty, and Medium is valid UTF-8, except for Cleared, where both are nil.
	Key, Medium []byte

	// Group is nil if group_id is absent, nil, or neither str nor bin. An empty group_id is not nil.
	Group []byte
}

// DefaultLimit is how many events of one message are applied where nothing else is asked for; the publisher sends at most 64. A
// message with more is damaged (TooMany): else one of 64 MiB would make 3 million events, and half a GB of memory.
const DefaultLimit = 1 << 16

// Batch is one scanned message. It is meant to be reused: Scan resets it and keeps the capacity of Events. The zero
// Batch is ready for Scan.
type Batch struct {
	// Limit is how many events are read; a message with more is damaged. 0: any number, for whoever reads what was judged when
	// it was recorded. Scan leaves it as it is.
	Limit int

	// HasSeq says that the message had three frames and a sequence number of 8 bytes. Seq may be known although the
	// message is damaged.
	HasSeq bool
	Seq    uint64

	// HasTime is false if the message is damaged. Time is the batch timestamp, the publisher's clock at sending, in
	// Unix milliseconds; beyond the range of int64 it is the nearest int64. It is not compared with any other clock
	// here.
	HasTime bool
	Time    int64

	// Events is empty if the message is damaged: one bad event damages its whole batch (R6).
	Events []Event

	// Damage is None if the message can be applied. DamageAt is the position in the payload frame, in bytes, at which
	// the damage showed, for messages to people; it is 0 where the payload was not looked at.
	Damage   Cause
	DamageAt int
}

// SeqFrame returns frame 1 of a message: the sequence number as the publisher writes it.
func SeqFrame(seq uint64) [seqFrameSize]byte {
	var frame [seqFrameSize]byte
	binary.BigEndian.PutUint64(frame[:], seq)
	return frame
}
