package query

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// TestLogModel holds log against the streams that were recorded: line by line, under any filter, between any moments.
func TestLogModel(t *testing.T) {
	lines, asked := 0, 0
	for n := range max(1, *modelStreams/3) {
		s := recordSeveral(t, *modelSeed+uint64(n), 1+n%3, 0)
		for range 40 {
			o := s.logOptions()
			want := s.expectLog(&o)
			got := s.log(o)
			if i := firstDifference(got, want); i >= 0 {
				t.Fatalf("seed %d, %+v: line %d of %d, want %d\n got %s\nwant %s", s.seed, o, i+1, len(got), len(want), at(got, i), at(want, i))
			}
			lines, asked = lines+len(got), asked+1
		}
	}
	if lines == 0 {
		t.Fatal("nothing was compared")
	}
	t.Logf("%d lines in %d logs", lines, asked)
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if at(a, i) != at(b, i) {
			return i
		}
	}
	return -1
}

func at(a []string, i int) string {
	if i < len(a) {
		return a[i]
	}
	return "nothing"
}

// log is what Log gives, as JSON.
func (s *several) log(o LogOptions) []string {
	s.t.Helper()
	var got []string
	s.must(s.e.Log(s.t.Context(), o, nil, func(l *LogLine) error {
		got = append(got, s.sorted(l.AppendJSON(nil)))
		return nil
	}))
	return got
}

// sorted is a JSON object with its fields in order.
func (s *several) sorted(b []byte) string {
	v := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	s.must(d.Decode(&v))
	b, err := json.Marshal(v)
	s.must(err)
	return string(b)
}

func (s *several) logOptions() LogOptions {
	pick := func(n int) bool { return s.rng.IntN(n) == 0 }
	var o LogOptions
	source := -1
	if pick(3) || len(s.sources) == 1 {
		source = s.rng.IntN(len(s.sources))
		o.Source = s.sources[source].Name
	}
	o.From, o.To = s.moment(source), s.moment(source)
	stream := s.streams[max(source, 0)]
	object := stream.Objects[s.rng.IntN(len(stream.Objects))]
	if pick(4) {
		o.Tenant = Bytes(object.Tenant)
	}
	if pick(6) {
		o.Backend = append(Bytes{}, object.Backend...)
	}
	if pick(4) {
		o.Key = Bytes(object.Key)
	}
	if pick(6) {
		o.Prefix = Bytes(object.Key[:1])
	}
	if pick(5) {
		o.Medium = stream.Media[s.rng.IntN(len(stream.Media))]
	}
	if pick(3) {
		names := append(LogTypes(), "event", "fact")
		for range 1 + s.rng.IntN(3) {
			o.Types = append(o.Types, names[s.rng.IntN(len(names))])
		}
	}
	if pick(5) {
		o.Limit = 1 + s.rng.Uint64N(20)
	}
	if pick(5) {
		o.After = s.rng.Uint64N(uint64(len(s.all)))
	}
	o.Raw = pick(5)
	return o
}

// expectLog is what log should give: from the records as they went in, the headers' judgements, and the lines of gaps.
func (s *several) expectLog(o *LogOptions) []string {
	gaps := map[uint64]*GapOut{}
	for _, g := range s.gaps() {
		if g.Cause != "damaged" {
			gaps[g.FirstOffsetAfter] = g
		}
	}
	objects := o.Backend != nil || o.Tenant != nil || o.Key != nil || o.Prefix != nil || o.Medium != ""
	wanted := func(name string, isEvent bool) bool {
		kind := "fact"
		if isEvent {
			kind = "event"
		}
		return len(o.Types) == 0 && (isEvent || !objects) || slices.Contains(o.Types, name) || slices.Contains(o.Types, kind)
	}
	var want []string
	add := func(v map[string]any) {
		if b, err := json.Marshal(v); err == nil && (o.Limit == 0 || uint64(len(want)) < o.Limit) {
			want = append(want, string(b))
		}
	}
	for i, r := range s.all {
		offset := uint64(i + 1)
		h := s.header(offset)
		if o.Source != "" && s.sources[r.source].Name != o.Source || offset <= o.After {
			continue
		}
		from, to := s.within(r.source, o.Span)
		if offset <= from || offset > to {
			// Facts and repeated messages at the ends count if they were received within.
			ms := h.Received / 1e6
			if h.Kind == journal.Message && !h.Duplicate || s.beyond(r.source, offset, from, to, o.Span) ||
				o.From.Kind == AtTime && ms < o.From.Ms || o.To.Kind == AtTime && ms > o.To.Ms {
				continue
			}
		}
		line := func(name string) map[string]any {
			v := map[string]any{"offset": offset, "type": name, "epoch": h.Epoch, "source": s.sources[r.source].Name, "received": msTime(h.Received / 1e6)}
			if h.Kind == journal.Message && h.HasSeq {
				v["seq"] = h.Seq
			}
			if h.Kind == journal.Message && h.HasTime {
				v["time"] = msTime(h.Time)
			}
			if h.InWindow {
				v["in_window"] = true
			}
			if h.Applies() && h.Mark == 2 {
				v["shadow"] = true
			}
			if h.Kind != journal.Message && h.Mark != 0 {
				v["mark_cause"] = h.MarkCause.String()
			}
			return v
		}
		if g := gaps[offset]; g != nil && wanted("gap", false) && !o.Raw {
			var v map[string]any
			b, _ := json.Marshal(g)
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			s.must(d.Decode(&v))
			v["offset"], v["type"] = offset, "gap"
			add(v)
		}
		var scan event.Batch
		scan.Scan(r.capture.Frames)
		name := ""
		switch {
		case h.Kind != journal.Message:
			name = h.Kind.String()
		case h.Duplicate:
			name = "duplicate"
		case scan.Damage != event.None:
			name = "damaged"
		case len(scan.Events) == 0:
			name = "empty"
		}
		hit := name != "" && wanted(name, false)
		if hit && !o.Raw {
			v := line(name)
			if name == "damaged" {
				v["damage"] = scan.Damage.String()
			}
			add(v)
		}
		for n, ev := range scan.Events {
			cleared := ev.Type == event.Cleared
			if name != "" || !wanted(ev.Type.String(), true) || o.Backend != nil && !bytes.Equal(o.Backend, ev.Backend) || o.Tenant != nil && !bytes.Equal(o.Tenant, ev.Tenant) ||
				!cleared && (o.Key != nil && !bytes.Equal(o.Key, ev.Key) || !bytes.HasPrefix(ev.Key, o.Prefix) || o.Medium != "" && o.Medium != string(ev.Medium)) {
				continue
			}
			hit = true
			if o.Raw {
				continue
			}
			v := line(ev.Type.String())
			v["event"] = n + 1
			if ev.HasID {
				v["event_id"] = ev.ID
			}
			bytesField := func(name string, b Bytes) {
				if b.text() != nil {
					v[name] = *b.text()
				}
				v[name+"_base64"] = *b.base64()
			}
			bytesField("backend_id", append(Bytes{}, ev.Backend...))
			bytesField("tenant_id", ev.Tenant)
			if !cleared {
				bytesField("object_key", ev.Key)
				v["medium"] = string(ev.Medium)
			}
			if ev.Group != nil {
				bytesField("group_id", ev.Group)
			}
			add(v)
		}
		if o.Raw && h.Kind == journal.Message && (hit || gaps[offset] != nil && wanted("gap", false)) {
			if name == "" || name == "empty" {
				name = "message"
			}
			v := line(name)
			frames := make([][]byte, len(r.capture.Frames))
			for i, f := range r.capture.Frames {
				frames[i] = append([]byte{}, f...)
			}
			v["received_ns"], v["frames_base64"] = h.Received, frames
			if name == "damaged" {
				v["damage"] = scan.Damage.String()
			}
			add(v)
		}
	}
	return want
}

// beyond reports whether a record that lies outside of a span lies behind or before another message of its source, or the span has no
// end by time on that side.
func (s *several) beyond(source int, offset, from, to uint64, span Span) bool {
	if offset <= from && span.From.Kind != AtTime || offset > to && span.To.Kind != AtTime {
		return true
	}
	// Between the record and the span there must be no message.
	low, high := offset, from
	if offset > to {
		low, high = to, offset
		if offset <= from { // on both sides: an empty span
			low = min(to, from)
		}
	}
	for o := low + 1; o <= high; o++ {
		if h := s.header(o); o != offset && s.all[o-1].source == source && h.Kind == journal.Message && !h.Duplicate {
			return true
		}
	}
	if offset > to {
		// The end is widened only where no message of the source lies behind the moment.
		for i := offset; i < uint64(len(s.all)); i++ {
			if h := s.header(i + 1); s.all[i].source == source && h.Kind == journal.Message && !h.Duplicate {
				return true
			}
		}
	}
	return false
}

// A line read back says what it said.
func TestLogLineReadsBack(t *testing.T) {
	s := recordSeveral(t, *modelSeed, 2, 0)
	for _, raw := range []bool{false, true} {
		n := 0
		s.must(s.e.Log(t.Context(), LogOptions{Raw: raw}, nil, func(l *LogLine) error {
			n++
			first := l.AppendJSON(nil)
			var back LogLine
			s.must(json.Unmarshal(first, &back))
			if again := back.AppendJSON(nil); !bytes.Equal(first, again) {
				t.Errorf("read back\n%s\nit was\n%s", again, first)
			}
			if raw {
				frames, _, err := FramesOf(first, nil, nil)
				if s.must(err); !reflect.DeepEqual(frames, back.Frames) {
					t.Errorf("frames of %s: %q", first, frames)
				}
			}
			return nil
		}))
		if n == 0 {
			t.Error("no line")
		}
	}
}
