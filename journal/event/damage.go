package event

import "fmt"

// Cause says why a message is damaged (R6). The journal stores it: the values are part of its format and must never be
// renumbered; new causes are added at the end.
type Cause uint8

// The causes of damage. Where a message has several faults, the one that shows first while the payload is read from
// front to back counts. Faults of an event as a whole show at the end of its map, because the last of duplicate fields
// is the one that counts; they are looked for in the order EventType, Scope, EventID, Key, Medium, and DamageAt is the
// start of the map.
const (
	// None: the message is not damaged.
	None Cause = iota
	// FrameCount: the message has not exactly three frames.
	FrameCount
	// SeqFrameSize: the frame of the sequence number has not exactly 8 bytes.
	SeqFrameSize
	// Cut: the payload ends inside a value.
	Cut
	// Trailing: bytes follow the payload array.
	Trailing
	// Depth: a value is nested deeper than MaxDepth.
	Depth
	// MapKey: a map, at any nesting, has a key that is neither str nor bin.
	MapKey
	// Malformed: the byte 0xc1, which MessagePack never uses; or a payload that is no array of two or more elements; or
	// events that are no array; or an event that is no map.
	Malformed
	// EventType: event_type is none of the three known ones, or it is absent or nil and type is no known legacy name.
	EventType
	// Key: the object_key of a stored or removed event is absent, empty, or neither str nor bin.
	Key
	// Medium: the medium of a stored or removed event is absent, empty, neither str nor bin, or no valid UTF-8.
	Medium
	// Time: the batch timestamp is no finite number.
	Time
	// Scope: a tenant_id or backend_id is neither str, bin nor nil.
	Scope
	// EventID: an event_id is neither nil nor an unsigned integer.
	EventID
	// TooMany: the message has more events than Batch.Limit.
	TooMany

	causeCount
)

// Known reports whether this program knows the cause; a newer one may have written others.
func (c Cause) Known() bool { return c < causeCount }

var causeNames = [causeCount]string{
	None:         "none",
	FrameCount:   "frame_count",
	SeqFrameSize: "seq_frame",
	Cut:          "cut",
	Trailing:     "trailing",
	Depth:        "depth",
	MapKey:       "map_key",
	Malformed:    "malformed",
	EventType:    "event_type",
	Key:          "key",
	Medium:       "medium",
	Time:         "time",
	Scope:        "scope",
	EventID:      "event_id",
	TooMany:      "too_many_events",
}

// String returns the name of the cause in lower case with underscores, as it is shown to people and in metrics.
func (c Cause) String() string {
	if c < causeCount {
		return causeNames[c]
	}
	return fmt.Sprintf("cause_%d", uint8(c))
}

// DamageError is damage as an error. Use errors.As to get at it.
type DamageError struct {
	Cause Cause
	At    int // bytes into the payload frame
}

// Error names the cause and, where the payload was looked at, the place.
func (e *DamageError) Error() string {
	if e.Cause == FrameCount || e.Cause == SeqFrameSize {
		return "event: damaged message: " + e.Cause.String()
	}
	return fmt.Sprintf("event: damaged message: %s at byte %d of the payload", e.Cause, e.At)
}

// Err returns the damage of the batch as a *DamageError, or nil.
func (b *Batch) Err() error {
	if b.Damage == None {
		return nil
	}
	return &DamageError{Cause: b.Damage, At: b.DamageAt}
}
