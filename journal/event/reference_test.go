package event

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// This file reads messages a second time, slowly: msgpack/v5 decodes the payload into Go values, and R6 is applied to
// those. It shares nothing with the scanner but the types of its result, and is what FuzzScan compares with.

var errDamaged = errors.New("damaged")

type (
	referenceMap       map[string]any // values: nil, bool, *big.Int, float64, []byte, []any, referenceMap, referenceExtension
	referenceExtension struct{}
)

// referenceValue decodes one value. msgpack/v5's own DecodeInterface is not used, because it knows neither maps with bin
// keys nor unknown extensions; its low-level calls read all but the content of texts and extensions. d reads from in,
// without a buffer, since in can unread a byte.
func referenceValue(in *bytes.Reader, d *msgpack.Decoder, depth int) (any, error) {
	if depth > 64 {
		return nil, errDamaged
	}
	c, err := d.PeekCode()
	if err != nil {
		return nil, err
	}
	switch {
	case c == msgpcode.Nil:
		return nil, d.DecodeNil()
	case c == msgpcode.True || c == msgpcode.False:
		return d.DecodeBool()
	case c == msgpcode.Float || c == msgpcode.Double:
		return d.DecodeFloat64()
	case msgpcode.IsFixedNum(c) || c >= msgpcode.Int8 && c <= msgpcode.Int64:
		n, err := d.DecodeInt64()
		return big.NewInt(n), err
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		n, err := d.DecodeUint64()
		return new(big.Int).SetUint64(n), err
	case msgpcode.IsString(c) || msgpcode.IsBin(c):
		// Not DecodeBytes, which allocates what the size promises.
		size, err := d.DecodeBytesLen()
		if err != nil || size > in.Len() {
			return nil, errDamaged
		}
		b := make([]byte, size)
		_, err = io.ReadFull(in, b)
		return b, err
	case msgpcode.IsExt(c):
		_, size, err := d.DecodeExtHeader()
		if err != nil {
			return nil, err
		}
		_, err = io.CopyN(io.Discard, in, int64(size))
		return referenceExtension{}, err
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		n, err := d.DecodeArrayLen()
		if err != nil {
			return nil, err
		}
		values := []any{}
		for range n {
			v, err := referenceValue(in, d, depth+1)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return values, nil
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		n, err := d.DecodeMapLen()
		if err != nil {
			return nil, err
		}
		values := referenceMap{}
		for range n {
			key, err := referenceValue(in, d, depth+1)
			if err != nil {
				return nil, err
			}
			name, ok := key.([]byte)
			if !ok {
				return nil, errDamaged
			}
			if values[string(name)], err = referenceValue(in, d, depth+1); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
	return nil, errDamaged
}

// referenceBatch reads a message; its Damage is None or, for any cause, Malformed.
func referenceBatch(frames [][]byte) Batch {
	damaged := Batch{Damage: Malformed}
	if len(frames) != 3 || len(frames[1]) != 8 {
		return damaged
	}
	damaged.HasSeq, damaged.Seq = true, binary.BigEndian.Uint64(frames[1])
	in := bytes.NewReader(frames[2])
	value, err := referenceValue(in, msgpack.NewDecoder(in), 0)
	payload, ok := value.([]any)
	if err != nil || !ok || in.Len() != 0 || len(payload) < 2 {
		return damaged
	}
	events, ok := payload[1].([]any)
	if !ok {
		return damaged
	}
	b := Batch{HasSeq: true, Seq: damaged.Seq, HasTime: true}
	if b.Time, ok = referenceTime(payload[0]); !ok {
		return damaged
	}
	for _, v := range events {
		e, ok := referenceEvent(v)
		if !ok {
			return damaged
		}
		b.Events = append(b.Events, e)
	}
	return b
}

// referenceTime computes with arbitrary precision.
func referenceTime(v any) (int64, bool) {
	n := new(big.Int)
	switch v := v.(type) {
	case *big.Int:
		n = v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, false
		}
		if v < 1e11 {
			if v*1000 < -math.MaxFloat64 {
				return math.MinInt64, true
			}
			v *= 1000
		}
		new(big.Float).SetFloat64(v).Int(n)
	default:
		return 0, false
	}
	switch {
	case n.IsInt64():
		return n.Int64(), true
	case n.Sign() > 0:
		return math.MaxInt64, true
	}
	return math.MinInt64, true
}

func referenceEvent(v any) (Event, bool) {
	m, ok := v.(referenceMap)
	if !ok {
		return Event{}, false
	}
	text := func(name string) []byte {
		b, _ := m[name].([]byte)
		return b
	}
	var e Event
	if m["event_type"] != nil {
		e.Type = map[string]Type{"stored": Stored, "removed": Removed, "cleared": Cleared}[string(text("event_type"))]
	} else {
		e.Type = map[string]Type{"BlockStored": Stored, "BlockRemoved": Removed, "AllBlocksCleared": Cleared}[string(text("type"))]
	}
	if e.Type == 0 {
		return Event{}, false
	}
	for _, name := range []string{"tenant_id", "backend_id"} {
		if _, ok := m[name].([]byte); !ok && m[name] != nil {
			return Event{}, false
		}
	}
	e.Backend, e.Tenant, e.Group = text("backend_id"), text("tenant_id"), text("group_id")
	if len(e.Tenant) == 0 {
		e.Tenant = []byte("default")
	}
	if id := m["event_id"]; id != nil {
		n, ok := id.(*big.Int)
		if !ok || n.Sign() < 0 {
			return Event{}, false
		}
		e.HasID, e.ID = true, n.Uint64()
	}
	if e.Type == Cleared {
		return e, true
	}
	e.Key, e.Medium = text("object_key"), text("medium")
	return e, len(e.Key) > 0 && len(e.Medium) > 0 && utf8.Valid(e.Medium)
}
