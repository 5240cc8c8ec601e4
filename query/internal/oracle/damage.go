package oracle

import (
	"math"
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

// damageReadable returns a payload that cannot be decoded, made of a good one or in place of it.
func damageReadable(rng *rand.Rand, b *outgoing, payload []byte) []byte {
	if len(b.events) > 0 && rng.IntN(2) == 0 {
		if odd := damageOneEvent(rng, b); odd != nil {
			return odd
		}
	}
	switch rng.IntN(6) {
	case 0:
		return append([]byte(nil), payload[:rng.IntN(len(payload))]...) // cut
	case 1:
		return append(append([]byte(nil), payload...), 0xc0) // trailing
	case 2:
		return append(appendArray(nil, 2), 0xc1, 0x90) // a byte that is no value
	case 3:
		return append(appendFloat(appendArray(nil, 2), math.NaN()), 0x90) // a time that is no number
	case 4:
		deep := appendUint(appendArray(nil, 3), uint64(b.time))
		deep = append(deep, 0x90)
		for range 80 {
			deep = append(deep, 0x91)
		}
		return append(deep, 0xc0)
	}
	return appendUint(nil, 7) // no array
}

// damageOneEvent spoils one of the events, or returns nil where the kind of damage does not fit.
func damageOneEvent(rng *rand.Rand, b *outgoing) []byte {
	bad := rng.IntN(len(b.events))
	perObject := b.events[bad].Type != event.Cleared
	out := appendUint(appendArray(nil, 2), uint64(b.time))
	out = appendArray(out, len(b.events))
	for i := range b.events {
		fields := oddEvent(rng, &b.events[i], false)
		if i == bad {
			set := func(name string, value []byte) { fields = append(fields, field{name, value}) }
			switch rng.IntN(8) {
			case 0:
				set("event_type", appendStr(nil, "renamed"))
			case 1:
				set("tenant_id", appendUint(nil, 3))
			case 2:
				set("backend_id", appendFloat(nil, 1))
			case 3:
				set("event_id", appendStr(nil, "7"))
			case 4:
				set("later", []byte{0x81, 0x05, 0x05}) // a map key that is no string
			default:
				if !perObject {
					return nil
				}
				switch rng.IntN(3) {
				case 0:
					set("object_key", appendStr(nil, ""))
				case 1:
					set("medium", packedNil)
				case 2:
					set("medium", appendStr(nil, "cp\xff"))
				}
			}
		}
		out = appendEvent(out, fields)
	}
	return out
}

// damageUnreadable returns frames whose seq cannot be read.
func damageUnreadable(rng *rand.Rand, frames [][]byte) [][]byte {
	switch rng.IntN(4) {
	case 0:
		return frames[:2]
	case 1:
		return append(frames[:3:3], []byte("more"))
	case 2:
		return [][]byte{frames[0], frames[1][:7], frames[2]}
	}
	return [][]byte{frames[0], append([]byte{0}, frames[1]...), frames[2]}
}
