package event

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// The tests write payloads with these: encode turns Go values into MessagePack, byte for byte as they ask for.
type (
	object []any  // a map: key, value, key, value, …, duplicates and all
	list   []any  // an array
	raw    string // bytes that are already encoded
)

func encode(v any) string {
	var out bytes.Buffer
	encoder := msgpack.NewEncoder(&out)
	switch v := v.(type) {
	case raw:
		return string(v)
	case nil:
		encoder.EncodeNil()
	case bool:
		encoder.EncodeBool(v)
	case string:
		encoder.EncodeString(v)
	case []byte:
		encoder.EncodeBytes(v)
	case int:
		encoder.EncodeInt(int64(v))
	case uint64:
		encoder.EncodeUint(v)
	case float32:
		encoder.EncodeFloat32(v)
	case float64:
		encoder.EncodeFloat64(v)
	case list:
		encoder.EncodeArrayLen(len(v))
		for _, element := range v {
			out.WriteString(encode(element))
		}
	case object:
		encoder.EncodeMapLen(len(v) / 2)
		for _, element := range v {
			out.WriteString(encode(element))
		}
	default:
		panic("encode: unknown type")
	}
	return out.String()
}

// extension is an extension with 4 bytes of content.
const extension = raw("\xd6\x05abcd")

func uint64Bytes(n uint64) raw {
	return raw(binary.BigEndian.AppendUint64([]byte{0xcf}, n))
}

func int64Bytes(n int64) raw {
	return raw(binary.BigEndian.AppendUint64([]byte{0xd3}, uint64(n)))
}

func floatBytes(n float64) raw {
	return raw(binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(n)))
}

// with returns a stored event that can be applied, with more fields appended: duplicates replace what stands before.
func with(more ...any) object {
	e := object{"event_id", 7, "event_type", "stored", "tenant_id", "t", "backend_id", "b", "medium", "cpu",
		"object_key", "k"}
	return append(e, more...)
}

// without returns the event of with, leaving out fields, with more appended.
func without(field string, more ...any) object {
	var e object
	base := with()
	for i := 0; i < len(base); i += 2 {
		if base[i] != field {
			e = append(e, base[i], base[i+1])
		}
	}
	return append(e, more...)
}

// message returns the frames of a message with the given payload and the sequence number 9.
func message(payload string) [][]byte {
	seq := SeqFrame(9)
	return [][]byte{{}, seq[:], []byte(payload)}
}

// payloadOf returns a payload with the given events.
func payloadOf(events ...any) string {
	return encode(list{1000, list(events), 0})
}

// nested returns n arrays in each other, the innermost empty.
func nested(n int) raw {
	out := bytes.Repeat([]byte{0x91}, n)
	out[n-1] = 0x90
	return raw(out)
}

// deepMap returns n maps in each other, the innermost empty.
func deepMap(n int) raw {
	var out bytes.Buffer
	for range n - 1 {
		out.WriteString("\x81\xa1m")
	}
	out.WriteByte(0x80)
	return raw(out.String())
}
