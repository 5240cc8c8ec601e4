package mooncaketest

import "github.com/kvjournal/kvjournal/journal/event"

// batch turns changes into the payload of one message. It is reused: encode allocates nothing once warm.
type batch struct {
	changes [BatchEvents]Change
	fields  [BatchEvents]event.Fields
	encoder *event.Encoder
	payload []byte
	dpRank  uint32
	lastID  uint64 // the event_id given last
}

func newBatch(o *Options) *batch {
	b := &batch{
		encoder: event.NewEncoder(event.EncodeOptions{LegacyCompat: !o.NoLegacy, ObjectKey: !o.NoObjectKey}),
		dpRank:  o.DPRank,
	}
	constant := event.Fields{
		ModelName: orNil(o.ModelName), Salt: orNil(o.Salt), LoraName: orNil(o.LoraName),
		BlockSize: uint32(max(0, o.BlockSize)), DPRank: o.DPRank, Backend: o.BackendID,
	}
	for i := range b.fields {
		b.fields[i] = constant
	}
	return b
}

// encode gives the first n changes their event ids and encodes them. The result is valid until the next call.
func (b *batch) encode(n int, timeMS int64) []byte {
	for i := range n {
		c, f := &b.changes[i], &b.fields[i]
		b.lastID++
		f.Type, f.ID, f.Timestamp = c.Type, b.lastID, timeMS
		f.Tenant, f.Medium, f.Key = c.Tenant, c.Medium, c.Key
		f.GroupID = orNilPointer(&c.Group)
	}
	b.payload = b.encoder.AppendPayload(b.payload[:0], timeMS, b.fields[:n], b.dpRank)
	return b.payload
}

func orNil(s string) *string { return orNilPointer(&s) }

func orNilPointer(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
