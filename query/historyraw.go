package query

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// blockCache reads records of the journal and keeps the block that the last one was in.
type blockCache struct {
	j      *journal.Journal
	b      *journal.Block
	frames [][]byte
	seq    [8]byte

	message *event.Message // of the batch at offset
	offset  uint64
}

// header is that of the record at offset, nil where the journal has it no more.
func (r *blockCache) header(offset uint64) (*journal.Header, error) {
	if err := r.block(offset, r.j.Kept); errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return r.b.Header(int(offset - r.b.First)), nil
}

func (r *blockCache) block(offset uint64, read func(*journal.Block, uint64) (*journal.Block, error)) error {
	if r.b != nil && r.b.First <= offset && offset <= r.b.Last() {
		return nil
	}
	b, err := read(r.b, offset)
	r.b, r.message = b, nil
	return err
}

// raw returns the original event at a position, and its batch without the events, both as JSON.
func (r *blockCache) raw(at index.Position) (original, batch json.RawMessage, err error) {
	if err := r.block(at.Offset, r.j.Block); err != nil {
		return nil, nil, err
	}
	if r.message == nil || r.offset != at.Offset {
		if r.frames, err = r.b.Frames(int(at.Offset-r.b.First), r.frames[:0], &r.seq); err != nil {
			return nil, nil, err
		}
		if r.message, err = event.Decode(r.frames); err != nil {
			return nil, nil, fmt.Errorf("the batch at offset %d: %w", at.Offset, err)
		}
		r.offset = at.Offset
	}
	if at.Event == 0 || int(at.Event) > len(r.message.Events) {
		return nil, nil, fmt.Errorf("the batch at offset %d has %d events, the index names number %d; `kvjournal rebuild` computes the index anew", at.Offset, len(r.message.Events), at.Event)
	}
	return appendFields(nil, r.message.Events[at.Event-1].Fields), appendBatch(nil, r.message), nil
}

// appendBatch appends what a message holds beside its events.
func appendBatch(dst []byte, m *event.Message) []byte {
	dst = append(dst, '{')
	if len(m.Topic) > 0 {
		dst = appendBytes(dst, "topic", m.Topic)
	}
	dst = append(dst, `"timestamp":`...)
	dst = append(appendValue(dst, m.Time), ',')
	dst = appendUint(dst, "events", uint64(len(m.Events)))
	if m.DPRank.Kind() != event.KindAbsent {
		dst = append(dst, `"dp_rank":`...)
		dst = append(appendValue(dst, m.DPRank), ',')
	}
	if len(m.Extra) > 0 {
		dst = append(dst, `"extra":[`...)
		for i, v := range m.Extra {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, v)
		}
		dst = append(dst, ']', ',')
	}
	return endObject(dst)
}

// appendFields appends a map with all its fields, unknown ones too, in their order. Of fields of one name the last counts; the others are
// listed behind all in "overridden_fields". A field whose text is no UTF-8 has _base64 behind its name; a name that is no UTF-8 is
// written in base64, behind "base64:".
func appendFields(dst []byte, fields []event.Field) []byte {
	last := make(map[string]int, len(fields))
	for i, f := range fields {
		last[string(f.Name)] = i
	}
	dst = append(dst, '{')
	for i, f := range fields {
		if last[string(f.Name)] == i {
			dst = append(appendField(dst, f), ',')
		}
	}
	if len(last) < len(fields) {
		dst = append(dst, `"overridden_fields":[`...)
		for i, f := range fields {
			if last[string(f.Name)] != i {
				dst = append(appendField(append(dst, '{'), f), '}', ',')
			}
		}
		dst[len(dst)-1] = ']'
		dst = append(dst, ',')
	}
	if len(fields) == 0 {
		return append(dst, '}')
	}
	return endObject(dst)
}

func appendField(dst []byte, f event.Field) []byte {
	name := string(f.Name)
	if !utf8.ValidString(name) {
		name = "base64:" + base64.StdEncoding.EncodeToString(f.Name)
	}
	if b, ok := f.Value.Bytes(); ok && !utf8.Valid(b) {
		dst = append(appendString(dst, name+"_base64"), ':', '"')
		return append(base64.StdEncoding.AppendEncode(dst, b), '"')
	}
	return appendValue(append(appendString(dst, name), ':'), f.Value)
}

// appendValue appends a value as JSON. Bytes are text where they are UTF-8, else {"base64":"…"}; an extension is
// {"msgpack_base64":"…"}, still encoded; a number that JSON has not is a string.
func appendValue(dst []byte, v event.Value) []byte {
	switch v.Kind() {
	case event.KindBool:
		b, _ := v.Bool()
		return strconv.AppendBool(dst, b)
	case event.KindUint:
		n, _ := v.Uint64()
		return strconv.AppendUint(dst, n, 10)
	case event.KindInt:
		if n, ok := v.Int64(); ok {
			return strconv.AppendInt(dst, n, 10)
		}
		n, _ := v.Uint64()
		return strconv.AppendUint(dst, n, 10)
	case event.KindFloat:
		f, _ := v.Float64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return appendString(dst, strconv.FormatFloat(f, 'g', -1, 64))
		}
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	case event.KindString, event.KindBinary:
		b, _ := v.Bytes()
		if utf8.Valid(b) {
			return appendString(dst, Bytes(b))
		}
		dst = append(dst, `{"base64":"`...)
		return append(base64.StdEncoding.AppendEncode(dst, b), `"}`...)
	case event.KindArray:
		elements, _ := v.Array()
		dst = append(dst, '[')
		for i, e := range elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e)
		}
		return append(dst, ']')
	case event.KindMap:
		fields, _ := v.Map()
		return appendFields(dst, fields)
	case event.KindExtension:
		dst = append(dst, `{"msgpack_base64":"`...)
		return append(base64.StdEncoding.AppendEncode(dst, v), `"}`...)
	}
	return append(dst, "null"...)
}
