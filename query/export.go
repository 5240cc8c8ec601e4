package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// exported is what an export holds: a span of the one source of that name, or of the only one there is.
func (e *Engine) exported(source string, span Span) ([]stretch, error) {
	sources, err := e.sources(source)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, usagef("nothing was recorded yet, so there is nothing to export")
	}
	if len(sources) > 1 {
		var names []string
		for _, s := range sources {
			names = append(names, s.Name)
		}
		return nil, usagef("there are several sources, and an export holds one: name it with --source: %s", strings.Join(names, ", "))
	}
	return e.stretches(sources, span, e.Journal.Durable())
}

// ExportCapture calls f with the records of a capture of a span of a source: messages exactly as they were received, and the
// connection as it came and went. A record is valid until f returns.
//
// Imported elsewhere they give the answers and gaps of the stream alone. A recorder that was down, and any other break that
// a capture has no record for, becomes a disconnected and a connected: see capturer.
func (e *Engine) ExportCapture(ctx context.Context, source string, span Span, progress Progress, f func(*capture.Record) error) error {
	in, err := e.exported(source, span)
	if err != nil {
		return err
	}
	c := capturer{f: f, scan: event.Batch{Limit: event.DefaultLimit}} // as an import has it
	return e.eachRecord(ctx, in, progress, c.record)
}

// AppendCaptureJSON appends a capture's record as {"kind":"message","received_ns":…,"frames_base64":["…"]}.
func AppendCaptureJSON(dst []byte, rec *capture.Record) []byte {
	dst = append(append(append(dst, `{"kind":"`...), rec.Kind.String()...), `","received_ns":`...)
	dst = append(strconv.AppendInt(dst, rec.Received, 10), ',')
	if rec.Kind == capture.Message {
		dst = appendFrames(dst, rec.Frames)
	}
	return endObject(dst)
}

// CaptureJSON reads what AppendCaptureJSON wrote, into rec and memory that it reuses.
type CaptureJSON struct{ buf []byte }

// Read reads a line into rec, which is valid until the next call.
func (c *CaptureJSON) Read(line []byte, rec *capture.Record) error {
	bad := fmt.Errorf("a line that is no record of a capture: %.100q", line)
	rest, ok := bytes.CutPrefix(line, []byte(`{"kind":"`))
	kind, rest, ok2 := bytes.Cut(rest, []byte(`","received_ns":`))
	number := rest
	if i := bytes.IndexAny(rest, ",}"); i >= 0 {
		number = rest[:i]
	}
	received, err := strconv.ParseInt(string(number), 10, 64)
	if !ok || !ok2 || err != nil {
		return bad
	}
	*rec = capture.Record{Received: received, Frames: rec.Frames[:0]}
	for _, k := range []capture.Kind{capture.Message, capture.Connected, capture.Disconnected} {
		if string(kind) == k.String() {
			rec.Kind = k
		}
	}
	switch rec.Kind {
	case capture.Message:
		rec.Frames, c.buf, err = FramesOf(rest, rec.Frames, c.buf[:0])
		return err
	case 0:
		return bad
	}
	return nil
}

// ExportLine is one record of an export as ndjson:
//
//	{"offset":12,"kind":"message","source":"s","epoch":1,"seq":9,"time":"…","received":"…","received_ns":…,"frames_base64":["","…","…"],
//	 "events":[{"event":1,"event_id":40,"type":"stored","backend_id":"b",…}]}
//
// duplicate, damage and events are left out where there is nothing to say; a record that is no message has no seq, time nor frames.
type ExportLine struct {
	*journal.Header
	Offset uint64
	Source string
	Frames [][]byte
	Events []event.Event
}

// ExportRecords calls f with every record of a span of a source, the recorder's own facts too. A line is valid until f returns.
func (e *Engine) ExportRecords(ctx context.Context, source string, span Span, progress Progress, f func(*ExportLine) error) error {
	in, err := e.exported(source, span)
	if err != nil {
		return err
	}
	var scan event.Batch
	return e.eachRecord(ctx, in, progress, func(r *record) error {
		frames, err := r.Frames()
		if err != nil {
			return err
		}
		l := ExportLine{Header: r.Header, Offset: r.Offset, Source: r.Source, Frames: frames}
		if r.Applies() {
			scan.Scan(frames)
			l.Events = scan.Events
		}
		return f(&l)
	})
}

// AppendJSON implements JSONAppender.
func (l *ExportLine) AppendJSON(dst []byte) []byte {
	dst = appendUint(append(dst, '{'), "offset", l.Offset)
	dst = append(append(append(dst, `"kind":"`...), l.Kind.String()...), `","source":`...)
	dst = append(appendString(dst, l.Source), ',')
	dst = appendUint(dst, "epoch", l.Epoch)
	message := l.Kind == journal.Message
	if message && l.HasSeq {
		dst = appendUint(dst, "seq", l.Seq)
	}
	if message && l.HasTime {
		dst = appendTime(dst, "time", l.Time)
	}
	dst = appendTime(dst, "received", l.Received/1e6)
	dst = append(strconv.AppendInt(append(dst, `"received_ns":`...), l.Received, 10), ',')
	if l.Duplicate {
		dst = append(dst, `"duplicate":true,`...)
	}
	if l.Damage != event.None {
		dst = append(append(append(dst, `"damage":"`...), l.Damage.String()...), `",`...)
	}
	if message || len(l.Frames) > 0 {
		dst = appendFrames(dst, l.Frames)
	}
	if len(l.Events) > 0 {
		dst = append(dst, `"events":[`...)
		for i := range l.Events {
			dst = append(l.appendEvent(dst, i), ',')
		}
		dst[len(dst)-1] = ']'
		dst = append(dst, ',')
	}
	return endObject(dst)
}

func (l *ExportLine) appendEvent(dst []byte, i int) []byte {
	ev := &l.Events[i]
	dst = appendUint(append(dst, '{'), "event", uint64(i+1))
	if ev.HasID {
		dst = appendUint(dst, "event_id", ev.ID)
	}
	dst = append(append(append(dst, `"type":"`...), ev.Type.String()...), `",`...)
	dst = appendBytes(dst, "backend_id", append(Bytes{}, ev.Backend...))
	dst = appendBytes(dst, "tenant_id", ev.Tenant)
	if ev.Medium != nil {
		dst = append(appendString(append(dst, `"medium":`...), Bytes(ev.Medium)), ',')
	}
	return endObject(appendBytes(appendBytes(dst, "object_key", ev.Key), "group_id", ev.Group))
}

// errUnwritable explains a message that a capture cannot hold.
func errUnwritable(offset uint64, err error) error {
	if errors.Is(err, capture.ErrUnwritable) {
		return fmt.Errorf("offset %d: %w; --format ndjson can hold it", offset, err)
	}
	return err
}
