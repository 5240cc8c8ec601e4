package query

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// LogLine is one line of log: an event, a fact, or with LogOptions.Raw a message. As JSON:
//
//	{"offset":12,"event":3,"epoch":1,"seq":9,"event_id":40,"type":"stored","time":"…","received":"…","source":"s",
//	 "backend_id":"b","backend_id_base64":"Yg==","tenant_id":"t",…,"medium":"cpu","object_key":"k",…,"group_id":"g",…}
//	{"offset":12,"type":"gap", and what a line of gaps has}
//	{"offset":13,"epoch":1,"seq":10,"type":"damaged","time":"…","received":"…","source":"s","damage":"map_key"}
//	{"offset":14,"epoch":1,"type":"disconnected","received":"…","source":"s"}
//	{"offset":15,"epoch":1,"type":"publisher_status","received":"…","source":"s","content":{"facts":["counters"],"counters":{…},"before":{…}}}
//	{"offset":12,"epoch":1,"seq":9,"type":"message","time":"…","received":"…","source":"s","received_ns":…,"frames_base64":["","…","…"]}
//
// shadow: the batch changes state but is no evidence (R4). in_window: the connection's boundary is not known there (R5).
// mark_cause: a fact puts what was known before in doubt.
type LogLine struct {
	// Type is one of LogTypes, or LogMessage.
	Type   string
	Offset uint64
	// Event is the place of an event in its batch, from 1 on.
	Event    uint32
	Epoch    uint64
	HasSeq   bool
	Seq      uint64
	HasID    bool
	EventID  uint64
	HasTime  bool
	Time     int64 // publisher time, Unix ms
	Received int64 // our clock, Unix ns
	// Name is the object's; of a cleared it has no Key, of what is no event only a Source.
	Name
	Medium string
	Group  Bytes
	// Shadow and Window: what the message says is no proof.
	Shadow, Window bool
	// Damage says what was wrong with a damaged message.
	Damage string
	// MarkCause is the cause of a mark that a fact sets.
	MarkCause string
	// Gap is what is missing, of a LogGap and a tail_lost.
	Gap *GapOut
	// Content is what a record says of the master, as JSON: a reading.Status, Begun or Ended, or a LogPart; nil: none.
	Content json.RawMessage
	// Frames are the message's, where it was asked for.
	Frames [][]byte

	raw bool
	// What is the same in all lines of a message, and of a scope, as JSON.
	head, numbers, times, scope []byte
	scopeOf                     struct{ backend, tenant []byte }
}

// reset makes l a line of a record.
func (l *LogLine) reset(r *record, name string) {
	*l = LogLine{
		Type: name, Offset: r.Offset, Epoch: r.Epoch, HasSeq: r.HasSeq, Seq: r.Seq, Received: r.Received,
		HasTime: r.HasTime && r.Kind == journal.Message, Time: r.Time, Window: r.InWindow,
		Shadow: r.Applies() && r.Mark == continuity.MarkBehind,
		Name:   Name{Source: r.Source}, head: l.head[:0], numbers: l.numbers[:0], times: l.times[:0], scope: l.scope,
		scopeOf: l.scopeOf,
	}
	if r.Kind != journal.Message && r.Mark != continuity.NoMark {
		l.MarkCause = r.MarkCause.String()
	}
}

// event makes l the line of an event of the record that it was reset to.
func (l *LogLine) event(n uint32, ev *event.Event) {
	l.Event, l.Type, l.HasID, l.EventID = n, ev.Type.String(), ev.HasID, ev.ID
	if ev.Backend == nil { // absent and empty are the same backend
		l.Backend = Bytes{}
	} else {
		l.Backend = ev.Backend
	}
	l.Tenant, l.Key, l.Group = ev.Tenant, ev.Key, ev.Group
	switch string(ev.Medium) {
	case "cpu":
		l.Medium = "cpu"
	case "disk":
		l.Medium = "disk"
	case l.Medium:
	default:
		l.Medium = string(ev.Medium)
	}
}

// AppendJSON implements JSONAppender.
func (l *LogLine) AppendJSON(dst []byte) []byte {
	if len(l.head) == 0 {
		l.shared()
	}
	dst = append(dst, l.head...)
	if l.Gap != nil {
		return l.appendGap(dst)
	}
	if l.Event > 0 {
		dst = appendUint(dst, "event", uint64(l.Event))
	}
	dst = append(dst, l.numbers...)
	if l.HasID {
		dst = appendUint(dst, "event_id", l.EventID)
	}
	dst = append(append(append(dst, `"type":"`...), l.Type...), `",`...)
	dst = append(dst, l.times...)
	if l.Event > 0 {
		if len(l.scope) == 0 || !bytes.Equal(l.Backend, l.scopeOf.backend) || !bytes.Equal(l.Tenant, l.scopeOf.tenant) {
			l.scope = appendBytes(appendBytes(l.scope[:0], "backend_id", l.Backend), "tenant_id", l.Tenant)
			l.scopeOf.backend = append(l.scopeOf.backend[:0], l.Backend...)
			l.scopeOf.tenant = append(l.scopeOf.tenant[:0], l.Tenant...)
		}
		dst = append(dst, l.scope...)
		if l.Medium != "" {
			dst = append(appendString(append(dst, `"medium":`...), l.Medium), ',')
		}
		dst = appendBytes(appendBytes(dst, "object_key", l.Key), "group_id", l.Group)
	}
	if l.Damage != "" {
		dst = append(append(append(dst, `"damage":"`...), l.Damage...), `",`...)
	}
	if l.MarkCause != "" {
		dst = append(append(append(dst, `"mark_cause":"`...), l.MarkCause...), `",`...)
	}
	if l.Content != nil {
		dst = append(append(append(dst, `"content":`...), l.Content...), ',')
	}
	if l.raw {
		dst = append(strconv.AppendInt(append(dst, `"received_ns":`...), l.Received, 10), ',')
		dst = appendFrames(dst, l.Frames)
	}
	return endObject(dst)
}

// shared writes down what the lines of one message have in common.
func (l *LogLine) shared() {
	l.head = appendUint(append(l.head[:0], '{'), "offset", l.Offset)
	l.numbers = appendUint(l.numbers[:0], "epoch", l.Epoch)
	if l.HasSeq {
		l.numbers = appendUint(l.numbers, "seq", l.Seq)
	}
	l.times = l.times[:0]
	if l.HasTime {
		l.times = appendTime(l.times, "time", l.Time)
	}
	l.times = appendTime(l.times, "received", l.Received/1e6)
	l.times = append(appendString(append(l.times, `"source":`...), l.Source), ',')
	if l.Shadow {
		l.times = append(l.times, `"shadow":true,`...)
	}
	if l.Window {
		l.times = append(l.times, `"in_window":true,`...)
	}
}

// appendGap ends the line of a gap: behind the offset and type comes what `gaps` prints.
func (l *LogLine) appendGap(dst []byte) []byte {
	dst = append(append(append(dst, `"type":"`...), l.Type...), `",`...)
	b, err := AppendJSON(nil, l.Gap)
	if err != nil {
		return endObject(dst) // a GapOut has nothing that could not be written
	}
	return append(dst, b[1:]...)
}

// appendFrames appends "frames_base64":[…] and a comma.
func appendFrames(dst []byte, frames [][]byte) []byte {
	dst = append(dst, framesField...)
	for i, f := range frames {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, f)
		dst = append(dst, '"')
	}
	return append(dst, `],`...)
}

const framesField = `"frames_base64":[`

// FramesOf appends the frames of a line that has frames_base64 to dst, decoded into buf's memory, and returns both.
func FramesOf(line []byte, dst [][]byte, buf []byte) ([][]byte, []byte, error) {
	// Inside of strings quotes are escaped, so this is the field.
	_, rest, ok := bytes.Cut(line, []byte(framesField))
	bad := fmt.Errorf("a line without frames_base64, or not as this program writes it")
	if !ok {
		return dst, buf, bad
	}
	first := len(dst)
	start := len(buf)
	for len(rest) > 0 && rest[0] != ']' {
		if rest[0] == ',' {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0] != '"' {
			return dst, buf, bad
		}
		end := bytes.IndexByte(rest[1:], '"')
		if end < 0 {
			return dst, buf, bad
		}
		at := len(buf)
		var err error
		if buf, err = base64.StdEncoding.AppendDecode(buf, rest[1:1+end]); err != nil {
			return dst, buf, fmt.Errorf("frames_base64: %w", err)
		}
		dst = append(dst, buf[at:])
		rest = rest[end+2:]
	}
	if len(rest) == 0 {
		return dst, buf, bad
	}
	for i := first; i < len(dst); i++ { // buf may have moved while it grew
		end := start + len(dst[i])
		dst[i], start = buf[start:end:end], end
	}
	return dst, buf, nil
}

// logJSON is a LogLine as it is read back.
type logJSON struct {
	nameJSON
	Type        string   `json:"type"`
	Offset      uint64   `json:"offset"`
	Event       uint32   `json:"event"`
	Epoch       uint64   `json:"epoch"`
	Seq         *uint64  `json:"seq"`
	EventID     *uint64  `json:"event_id"`
	Time        *Time    `json:"time"`
	Received    *Time    `json:"received"`
	ReceivedNs  int64    `json:"received_ns"`
	Medium      string   `json:"medium"`
	GroupBase64 *string  `json:"group_id_base64"`
	Shadow      bool     `json:"shadow"`
	Window      bool     `json:"in_window"`
	Damage      string   `json:"damage"`
	MarkCause   string   `json:"mark_cause"`
	Frames      [][]byte `json:"frames_base64"`

	Content json.RawMessage `json:"content"`
}

// UnmarshalJSON reads what AppendJSON wrote.
func (l *LogLine) UnmarshalJSON(b []byte) error {
	var w logJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*l = LogLine{Type: w.Type, Offset: w.Offset, Event: w.Event, Epoch: w.Epoch, Medium: w.Medium, Shadow: w.Shadow, Window: w.Window,
		Damage: w.Damage, MarkCause: w.MarkCause, Content: w.Content, Frames: w.Frames, Received: w.ReceivedNs, raw: w.Frames != nil}
	if w.Seq != nil {
		l.HasSeq, l.Seq = true, *w.Seq
	}
	if w.EventID != nil {
		l.HasID, l.EventID = true, *w.EventID
	}
	if w.Time != nil {
		l.HasTime, l.Time = true, w.Time.UnixMilli()
	}
	if w.Received != nil && l.Received == 0 {
		l.Received = w.Received.UnixNano()
	}
	if w.GroupBase64 != nil {
		g, err := base64.StdEncoding.DecodeString(*w.GroupBase64)
		if err != nil {
			return fmt.Errorf("group_id_base64: %w", err)
		}
		l.Group = append(Bytes{}, g...)
	}
	if w.Type == LogGap || w.Type == journal.TailLost.String() {
		l.Gap = &GapOut{}
		if err := json.Unmarshal(b, l.Gap); err != nil {
			return err
		}
	}
	return l.Name.read(&w.nameJSON)
}
