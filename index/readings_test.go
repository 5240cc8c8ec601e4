package index

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// fact appends a record of the journal's own and returns its offset.
func (w *world) fact(add func(g *journal.Group, s *testStream) error) uint64 {
	w.t.Helper()
	g, first := w.j.NewGroup(), len(w.records)
	if err := add(g, w.streams[0]); err != nil {
		w.t.Fatal(err)
	}
	for uint64(len(w.records)) < g.Last() {
		w.records = append(w.records, written{})
	}
	w.commit(g, first)
	return g.Last()
}

func (w *world) begun() uint64 {
	return w.fact(func(g *journal.Group, s *testStream) error {
		_, err := s.feed.Fact(g, journal.ReconciliationBegun, w.now*1e6, continuity.Verdict{}, reading.Begun{Why: reading.AfterMark})
		return err
	})
}

func (w *world) ended(h, through uint64, contradictions int, entries ...reading.Entry) uint64 {
	return w.fact(func(g *journal.Group, s *testStream) error {
		part := reading.AppendPart(nil, h, nil, []byte("default"))
		for i := range entries {
			part = reading.AppendEntry(part, &entries[i])
		}
		e := reading.Ended{Begun: h, Through: through, Scopes: []reading.Scope{{Tenant: []byte("default")}}, Contradictions: contradictions}
		_, err := s.feed.End(g, w.now*1e6, [][]byte{part}, &e)
		return err
	})
}

func (w *world) removed(key string) event.Fields {
	w.streams[0].id++
	return event.Fields{Type: event.Removed, ID: w.streams[0].id, Tenant: "default", Medium: "cpu", Key: key}
}

// readingWorld: a and b are stored; a reading begins at h; c is stored in (h, e], and d behind e; the reading corrects a and d to
// absent, f to present, and leaves b out.
func readingWorld(t *testing.T) (w *world, h, through, ended uint64) {
	w = newWorld(t, 1, 1)
	w.script(w.stored("a"), w.stored("b"), w.stored("d"))
	h = w.begun()
	w.script(w.stored("c"))
	through = uint64(len(w.records))
	w.script(w.stored("d"), w.send(w.removed("g")))
	ended = w.ended(h, through, 1,
		reading.Entry{What: reading.Absent, Key: []byte("a"), Medium: []byte("cpu")},
		reading.Entry{What: reading.Unsaid, Key: []byte("b")},
		reading.Entry{What: reading.Absent, Key: []byte("d"), Medium: []byte("cpu")},
		reading.Entry{What: reading.Present, Key: []byte("f"), Medium: []byte("disk")},
		reading.Entry{What: reading.Present, Key: []byte("g"), Medium: []byte("cpu")})
	return w, h, through, ended
}

func TestReading(t *testing.T) {
	w, h, through, ended := readingWorld(t)
	x := w.indexUpTo(ended)
	v := view(t, x)
	defer v.Close()
	object := func(key string) *Object { return &Object{Source: 1, Tenant: []byte("default"), Key: []byte(key)} }
	source := w.streams[0].source.ID
	at := func(key string, offset uint64) (stored, read bool) {
		o := object(key)
		o.Source = source
		media, err := v.Media(nil, o, Behind(offset))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range media {
			stored = stored || m.Has && m.Newest.Stored
			read = read || m.Has && m.Newest.Reading
		}
		return stored, read
	}
	for _, c := range []struct {
		key          string
		offset       uint64
		stored, read bool
	}{
		{"a", h - 1, true, false}, {"a", h, false, true}, {"a", ended, false, true}, // the master's word counts from h
		{"b", ended, true, false},
		{"d", through, false, true}, {"d", ended, true, false}, // an event behind e is newer
		{"f", h - 1, false, false}, {"f", h, true, true},
		{"g", through, true, true}, {"g", ended, false, false},
	} {
		if stored, read := at(c.key, c.offset); stored != c.stored || read != c.read {
			t.Errorf("%s at offset %d: stored %v, read %v", c.key, c.offset, stored, read)
		}
	}
	var readings []Reading
	scope := Scope{Source: source, Tenant: []byte("default")}
	if err := v.Readings(&scope, Position{}, Behind(ended), func(r *Reading) error { readings = append(readings, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(readings) != 1 || readings[0].Position != readingAt(h) || readings[0].Through != through || readings[0].Ended != ended {
		t.Fatalf("readings %+v", readings)
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": false, "never": true} {
		o := object(key)
		o.Source = source
		if got, err := v.Says(&readings[0], o); got != want || err != nil {
			t.Errorf("says something of %s: %v, %v", key, got, err)
		}
	}
	if flagged, err := v.Flagged(source); len(flagged) != 1 || !flagged[1] || err != nil {
		t.Errorf("flagged: %v, %v", flagged, err)
	}
	if n, err := v.CountLive(t.Context()); n != 4 || err != nil { // b c d f
		t.Errorf("%d live, %v", n, err)
	}
	var listed []uint64
	if err := v.SourceReadings(source, 0, ended, func(r *SourceReading) error { listed = append(listed, r.Offset); return nil }); err != nil || !slices.Equal(listed, []uint64{ended}) {
		t.Errorf("readings of the source: %v, %v", listed, err)
	}
	if st := v.Source(source); st.AsOf.Offset != ended || st.Reading != nil || st.Readings != 1 {
		t.Errorf("state %+v", st)
	}
}

// The rows do not depend on how much is applied at once.
func TestReadingStepByStep(t *testing.T) {
	w, _, _, ended := readingWorld(t)
	atOnce := w.indexUpTo(ended)
	steps := w.openIndex(testOptions(vfs.NewMem()))
	for o := uint64(1); o <= ended; o++ {
		upTo(t, steps, o)
	}
	sameRows(t, "step by step", dumpRows(t, steps), dumpRows(t, atOnce))
}

// A part that belongs to no reading is damage, not a correction.
func TestReadingOutOfPlace(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"))
	h := w.begun()
	ended := w.ended(h-1, h, 0, reading.Entry{What: reading.Absent, Key: []byte("a"), Medium: []byte("cpu")})
	x := w.openIndex(testOptions(vfs.NewMem()))
	if err := x.CatchUp(t.Context(), nil); err == nil || x.Applied() >= ended {
		t.Fatalf("applied up to %d, %v", x.Applied(), err)
	}
}
