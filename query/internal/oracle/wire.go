package oracle

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

// The few forms of MessagePack that the odd payloads need.

func appendUint(b []byte, v uint64) []byte {
	if v < 128 {
		return append(b, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendFloat(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
}

func appendStr(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s))), s...)
}

func appendBin(b []byte, s string) []byte {
	return append(append(b, 0xc4, byte(len(s))), s...)
}

func appendArray(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
}

var packedNil = []byte{0xc0}

type field struct {
	name  string
	value []byte
}

// oddPayload writes a batch in forms that R6 calls readable but no real publisher sends.
func oddPayload(rng *rand.Rand, b *outgoing) []byte {
	extra := rng.IntN(3)
	out := appendArray(nil, 2+extra)
	if rng.IntN(3) == 0 {
		out = appendFloat(out, float64(b.time))
	} else {
		out = appendUint(out, uint64(b.time))
	}
	out = appendArray(out, len(b.events))
	idless := rng.IntN(4) == 0
	for i := range b.events {
		out = appendEvent(out, oddEvent(rng, &b.events[i], idless))
	}
	for range extra {
		out = appendUint(out, 0)
	}
	return out
}

func appendEvent(b []byte, fields []field) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0xde), uint16(len(fields)))
	for _, f := range fields {
		b = append(appendStr(b, f.name), f.value...)
	}
	return b
}

// oddEvent returns the fields of one event in any order.
func oddEvent(rng *rand.Rand, e *event.Fields, idless bool) []field {
	text := func(s string) []byte {
		if rng.IntN(2) == 0 {
			return appendBin(nil, s)
		}
		return appendStr(nil, s)
	}
	var all []field
	add := func(name string, value []byte) { all = append(all, field{name, value}) }
	legacy := map[event.Type]string{
		event.Stored: "BlockStored", event.Removed: "BlockRemoved", event.Cleared: "AllBlocksCleared",
	}[e.Type]
	switch rng.IntN(3) {
	case 0:
		add("type", appendStr(nil, legacy))
	case 1:
		add("event_type", appendStr(nil, e.Type.String()))
		add("type", appendStr(nil, "Nonsense")) // event_type wins
	default:
		add("event_type", appendStr(nil, e.Type.String()))
	}
	switch {
	case !idless:
		add("event_id", appendUint(nil, e.ID))
	case rng.IntN(2) == 0:
		add("event_id", packedNil)
	}
	switch {
	case e.Tenant != event.DefaultTenant || rng.IntN(4) == 0:
		add("tenant_id", text(e.Tenant))
	case rng.IntN(3) == 0:
		add("tenant_id", packedNil)
	case rng.IntN(2) == 0:
		add("tenant_id", appendStr(nil, ""))
	}
	switch {
	case e.Backend != "" || rng.IntN(3) == 0:
		add("backend_id", text(e.Backend))
	case rng.IntN(2) == 0:
		add("backend_id", packedNil)
	}
	if e.Type == event.Cleared {
		add("medium", packedNil)
	} else {
		add("object_key", text(e.Key))
		add("medium", text(e.Medium))
	}
	if rng.IntN(2) == 0 {
		add("of_a_later_version", appendArray(nil, 0))
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if rng.IntN(4) == 0 { // the last of duplicate fields counts
		all = append([]field{{all[0].name, appendStr(nil, "not this")}}, all...)
	}
	return all
}
