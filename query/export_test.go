package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// imported is a journal that has one capture.
type imported struct {
	e       *Engine
	records []capture.Record // what is in the capture
	close   func()
}

// importCapture brings records into a fresh journal, through a file.
func importCapture(t *testing.T, records []capture.Record) *imported {
	t.Helper()
	fs := vfs.NewMem()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := capture.Create(fs, "x.kvcap.zst")
	must(err)
	for _, r := range records {
		must(w.Write(r))
	}
	must(w.Close())
	j, err := journal.Open("data", nil, journal.Options{FS: fs, MemTableSize: 1 << 20, NoSealer: true})
	must(err)
	x, err := index.Open(j, true, index.Options{FS: fs, MemTableSize: 1 << 20})
	must(err)
	src, err := j.EnsureSource("copy", nil, nil)
	must(err)
	_, err = recorder.Import(t.Context(), j, src, "x.kvcap.zst", recorder.ImportOptions{FS: fs})
	must(err)
	must(x.CatchUp(t.Context(), nil))
	return &imported{e: &Engine{Journal: j, Index: x}, records: records, close: func() {
		must(x.Close())
		must(j.Close())
	}}
}

// exported are the records of an export, each by way of its JSON, as over a socket.
func exported(t *testing.T, e *Engine, source string, span Span) []capture.Record {
	t.Helper()
	var out []capture.Record
	var in CaptureJSON
	var line []byte
	err := e.ExportCapture(t.Context(), source, span, nil, func(rec *capture.Record) error {
		line = AppendCaptureJSON(line[:0], rec)
		if !json.Valid(line) {
			t.Fatalf("no JSON: %s", line)
		}
		var got capture.Record
		if err := in.Read(line, &got); err != nil {
			return err
		}
		frames := make([][]byte, len(got.Frames))
		for i, f := range got.Frames {
			frames[i] = append([]byte{}, f...)
		}
		if got.Frames = frames; got.Kind != capture.Message {
			got.Frames = nil
		}
		out = append(out, got)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameRecord(a, b *capture.Record) bool {
	return a.Kind == b.Kind && a.Received == b.Received && slices.EqualFunc(a.Frames, b.Frames, bytes.Equal)
}

// TestExportModel exports whole streams and spans of them, with recorders that come and go and imports that began in the middle, and
// holds what is imported from that against the original: every message exactly, the same gaps, and no answer confirmed that the
// original does not give.
func TestExportModel(t *testing.T) {
	answers, confirmed, withheld := 0, 0, 0
	for n := range max(1, *modelStreams/3) {
		s := recordSeveral(t, *modelSeed+uint64(n), 1+n%2, 0.02*float64(n%3))
		for i := range s.sources {
			spans := []Span{{}}
			for range 4 {
				spans = append(spans, Span{s.moment(i), s.moment(i)})
			}
			for _, span := range spans {
				a, c, w := s.exportAndCompare(i, span)
				answers, confirmed, withheld = answers+a, confirmed+c, withheld+w
			}
		}
	}
	if confirmed == 0 {
		t.Fatal("nothing was compared")
	}
	t.Logf("%d answers, %d confirmed in the import, %d only in the original", answers, confirmed, withheld)
}

func (s *several) exportAndCompare(source int, span Span) (answers, confirmed, withheld int) {
	from, to := s.within(source, span)
	records := exported(s.t, s.e, s.sources[source].Name, span)
	about := fmt.Sprintf("seed %d, source %d, offsets %d to %d", s.seed, source, from+1, to)

	// Messages are exact, connection records are all there, in order; offsets[i] is where records[i] was, 0 where the export made it.
	offsets := make([]uint64, len(records))
	at := 0
	for o := from + 1; o <= to; o++ {
		r := &s.all[o-1]
		if r.source != source || r.kind == journal.RecorderStarted || r.kind == journal.RecorderStopped {
			continue
		}
		for at < len(records) && !sameRecord(&records[at], &r.capture) {
			if records[at].Kind == capture.Message {
				s.t.Fatalf("%s: message %d of the export is not the one at offset %d", about, at+1, o)
			}
			at++
		}
		if at == len(records) {
			s.t.Fatalf("%s: offset %d is not in the export", about, o)
		}
		offsets[at] = o
		at++
	}
	for ; at < len(records); at++ {
		if records[at].Kind == capture.Message {
			s.t.Fatalf("%s: message %d of the export was never recorded", about, at+1)
		}
	}
	if len(records) == 0 {
		return 0, 0, 0
	}
	im := importCapture(s.t, records)
	defer im.close()
	whole := span == Span{}
	s.compareGaps(about, source, im, offsets, whole)

	objects := s.streams[source].Objects
	ask := func(e *Engine, name string, w When) []*Answer {
		questions := make([]Question, len(objects))
		for i, o := range objects {
			questions[i] = Question{Name{Source: name, Backend: append(Bytes{}, o.Backend...), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}}
		}
		got, err := e.Lookup(s.t.Context(), questions, w)
		s.must(err)
		return got
	}
	compare := func(what string, copy, original When) {
		got, want := ask(im.e, "copy", copy), ask(s.e, s.sources[source].Name, original)
		for i := range got {
			for medium, m := range got[i].Media {
				o := want[i].Media[medium]
				answers++
				switch {
				case m.Certainty != Confirmed:
					if o.Certainty == Confirmed {
						withheld++
						if whole {
							s.t.Fatalf("%s, %s: %q on %s: confirmed %s in the original, uncertain in the import (%s)", about, what, objects[i], medium, o.State, show(m.Doubt))
						}
					}
					continue
				case m.State != o.State:
					s.t.Fatalf("%s, %s: %q on %s: confirmed %s in the import, in the original %s %s (%s)", about, what, objects[i], medium, m.State, o.Certainty, o.State, show(o.Doubt))
				case o.Certainty != Confirmed && (whole || !mayProve(o.Doubt)):
					s.t.Fatalf("%s, %s: %q on %s: confirmed %s in the import, uncertain in the original (%s)", about, what, objects[i], medium, m.State, show(o.Doubt))
				}
				confirmed++
			}
		}
	}
	for i, o := range offsets {
		if o == 0 || s.rng.IntN(6) > 0 {
			continue
		}
		compare(fmt.Sprintf("offset %d, there %d", o, i+1), When{Kind: AtOffset, Offset: uint64(i + 1)}, When{Kind: AtOffset, Offset: o})
		h := s.header(o)
		if h.Kind != journal.Message || h.Duplicate || !h.HasSeq {
			continue
		}
		if whole {
			w := When{Kind: AtSeq, Epoch: h.Epoch, Seq: h.Seq}
			compare(fmt.Sprintf("seq %d/%d", h.Epoch, h.Seq), w, w)
		}
		ms := h.Time + s.rng.Int64N(3) - 1
		if _, at := s.within(source, Span{To: When{Kind: AtTime, Ms: ms}}); at < from || at > to {
			continue // the clock passed it outside of the span too
		}
		w := When{Kind: AtTime, Ms: ms}
		compare(fmt.Sprintf("time %d", ms), w, w)
	}
	return answers, confirmed, withheld
}

// mayProve reports whether a part of a stream may prove what the whole does not, with the same state: where the object was stored before
// the span and then cleared (R7: it may have survived; the span knows nothing of it), and where the clock passed the moment once
// more outside of the span (R8).
func mayProve(d *Doubt) bool {
	return d != nil && (d.Cause == DoubtCleared || d.Cause == DoubtClock)
}

// compareGaps holds the import's gaps against the original's: all of them for a whole stream; for a span those behind its first message.
func (s *several) compareGaps(about string, source int, im *imported, offsets []uint64, whole bool) {
	type line struct {
		cause              string
		after              uint64
		epoch              uint64
		first, last        uint64
		missing, min, most uint64
	}
	value := func(p *uint64) uint64 {
		if p == nil {
			return 0
		}
		return *p
	}
	lineOf := func(g *GapOut, after uint64) line {
		l := line{g.Cause, after, g.Epoch, value(g.FirstMissingSeq), value(g.LastMissingSeq), value(g.MissingSeqs), value(g.LostEventsMin) + value(g.LostEvents), value(g.LostEventsMax)}
		switch g.Cause {
		case "recorder_down":
			l.cause = "disconnected"
		case "recorder_slow":
			l.cause = "transport"
		}
		if !whole {
			l.epoch = 0
		}
		return l
	}
	first, last := uint64(0), uint64(0) // of the span
	for _, o := range offsets {
		if o != 0 && s.all[o-1].kind == journal.Message {
			// Whatever the original saw before the first message, the import does not know; where that has no events, it does not
			// know the event_id before the second either.
			if h := s.header(o); first == 0 && h.HasSeq && (h.Damage != 0 || h.Events > 0) {
				first = o
			}
			last = o
		}
	}
	if first == 0 && !whole {
		return
	}
	var got, want []line
	v, err := im.e.Index.View()
	s.must(err)
	defer v.Close()
	s.must(v.Gaps(im.e.Journal.Sources()[0].ID, func(g *index.Gap) error {
		if o := offsets[g.After-1]; whole || o > first {
			got = append(got, lineOf(gapOut("", g), o))
		}
		return nil
	}))
	for _, g := range s.gaps() {
		if o := g.FirstOffsetAfter; g.Source == s.sources[source].Name && (whole || o > first && o <= last) {
			want = append(want, lineOf(g, o))
		}
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("%s: gaps\n got %+v\nwant %+v", about, got, want)
	}
}

// The captures of real publishers: imported, exported and imported again they give the same messages, gaps and answers.
func TestExportOfCaptures(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "shared", "conformance", "captures", "*.kvcap.zst"))
	if len(paths) == 0 {
		t.Skip("no captures: ../shared/conformance/captures is not there")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".kvcap.zst"), func(t *testing.T) {
			if info, err := os.Stat(path); testing.Short() && (err != nil || info.Size() > 100_000) {
				t.Skip("large: not with -short")
			}
			before := readCapture(t, path)
			im := importCapture(t, before)
			defer im.close()
			after := exported(t, im.e, "copy", Span{})
			if !slices.EqualFunc(before, after, func(a, b capture.Record) bool { return sameRecord(&a, &b) }) {
				t.Fatalf("%d records were exported as %d, not the same ones", len(before), len(after))
			}
		})
	}
}

func readCapture(t *testing.T, path string) (all []capture.Record) {
	t.Helper()
	f, err := capture.Open(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rec capture.Record
	for f.Next(&rec) == nil {
		own := capture.Record{Kind: rec.Kind, Received: rec.Received}
		for _, frame := range rec.Frames {
			own.Frames = append(own.Frames, append([]byte{}, frame...))
		}
		all = append(all, own)
	}
	return all
}

// Every record of a span is in an export as ndjson, exactly, with its events.
func TestExportRecords(t *testing.T) {
	s := recordSeveral(t, *modelSeed+1, 2, 0)
	o := uint64(0)
	events := 0
	s.must(s.e.ExportRecords(t.Context(), "s1", Span{}, nil, func(l *ExportLine) error {
		for o++; s.all[o-1].source != 1; o++ {
		}
		var got struct {
			Offset     uint64            `json:"offset"`
			Kind       string            `json:"kind"`
			Source     string            `json:"source"`
			Seq        *uint64           `json:"seq"`
			ReceivedNs int64             `json:"received_ns"`
			Frames     [][]byte          `json:"frames_base64"`
			Events     []json.RawMessage `json:"events"`
		}
		b := l.AppendJSON(nil)
		s.must(json.Unmarshal(b, &got))
		r, h := &s.all[o-1], s.header(o)
		if got.Offset != o || got.Kind != r.kind.String() || got.Source != "s1" || got.ReceivedNs != r.capture.Received ||
			!slices.EqualFunc(got.Frames, r.capture.Frames, bytes.Equal) || h.Applies() && len(got.Events) != int(h.Events) || (got.Seq != nil) != h.HasSeq {
			t.Fatalf("offset %d: %s", o, b)
		}
		events += len(got.Events)
		return nil
	}))
	if events == 0 {
		t.Fatal("no events")
	}
}

func TestExportNeedsOneSource(t *testing.T) {
	s := recordSeveral(t, *modelSeed, 2, 0)
	err := s.e.ExportCapture(t.Context(), "", Span{}, nil, func(*capture.Record) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "s0, s1") {
		t.Fatalf("got %v", err)
	}
}
