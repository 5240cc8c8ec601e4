package index

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

const (
	testDir  = "data"
	testTime = int64(1_790_000_000_000) // ms
)

// testNames are short, so that they collide, and hold the bytes that keys of the index treat apart.
var (
	testKeys     = []string{"a", "b", "a\x00", "a\x00b", "\x00", "\xff", "a\xff", "\x00\x01", "\x00\xff", "zz"}
	testBackends = []string{"", "b0", "b0\x00"}
	testTenants  = []string{"default", "t", "t\x00\x01"}
	testMedia    = []string{"cpu", "cpu", "disk", "disk", "gpu", "cpu2", "nvme\x00", "é"}
)

// world is a journal with what was written to it, offset by offset.
type world struct {
	t       *testing.T
	fs      vfs.FS
	j       *journal.Journal
	rng     *rand.Rand
	encoder *event.Encoder
	now     int64 // ms
	streams []*testStream
	records []written // of offset 1, 2, …
}

// testStream is one source and its publisher.
type testStream struct {
	source  journal.Source
	feed    *recorder.Feed
	seq, id uint64
	keyless bool
	last    [][]byte
	events  []event.Fields // of last
}

// written is one record, with the events as the publisher meant them.
type written struct {
	journal.Record
	events []event.Fields
}

func newWorld(t *testing.T, seed uint64, sources int) *world {
	t.Helper()
	return newWorldOn(t, vfs.NewMem(), seed, sources)
}

func newWorldOn(t *testing.T, fs vfs.FS, seed uint64, sources int) *world {
	t.Helper()
	w := &world{
		t: t, fs: fs, rng: rand.New(rand.NewPCG(seed, 1)), now: testTime,
		encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true, LegacyCompat: true}),
	}
	j, err := journal.Open(testDir, nil, journal.Options{FS: w.fs, NoSealer: true, BlockRaw: 8 << 10, MemTableSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w.j = j
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range sources {
		s, err := j.EnsureSource(fmt.Sprint("s", i), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		feed, err := recorder.NewFeed(j, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.streams = append(w.streams, &testStream{source: s, feed: feed, keyless: w.rng.IntN(2) == 0})
	}
	return w
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

func (w *world) event(s *testStream) event.Fields {
	s.id++
	f := event.Fields{Type: event.Stored, ID: s.id, Timestamp: w.now, Backend: pick(w.rng, testBackends), Tenant: pick(w.rng, testTenants), Key: pick(w.rng, testKeys), Medium: pick(w.rng, testMedia)}
	switch p := w.rng.IntN(20); {
	case p < 7:
		f.Type = event.Removed
	case p < 9, s.keyless:
		f.Type = event.Cleared
	}
	return f
}

// message makes the publisher's next message of n events.
func (w *world) message(s *testStream, n int) (capture.Record, []event.Fields) {
	s.seq++
	events := make([]event.Fields, n)
	for i := range events {
		events[i] = w.event(s)
	}
	seq := event.SeqFrame(s.seq)
	return capture.Record{Kind: capture.Message, Received: w.now * 1e6, Frames: [][]byte{{}, seq[:], w.encoder.AppendPayload(nil, w.now-5, events, 0)}}, events
}

// next makes the next record of a stream: mostly messages in order, and everything else that can happen.
func (w *world) next(s *testStream) (capture.Record, []event.Fields) {
	w.now += int64(w.rng.IntN(400))
	switch p := w.rng.IntN(200); {
	case p < 3:
		return capture.Record{Kind: capture.Connected, Received: w.now * 1e6}, nil
	case p < 6:
		return capture.Record{Kind: capture.Disconnected, Received: w.now * 1e6}, nil
	case p < 10 && s.last != nil: // a duplicate
		return capture.Record{Kind: capture.Message, Received: w.now * 1e6, Frames: s.last}, s.events
	case p < 14: // damage
		rec, _ := w.message(s, 2)
		if w.rng.IntN(2) == 0 {
			rec.Frames[2] = rec.Frames[2][:len(rec.Frames[2])-1]
		} else {
			rec.Frames = rec.Frames[1:]
		}
		return rec, nil
	case p < 18: // a gap
		s.seq += uint64(w.rng.IntN(4))
		s.id += uint64(w.rng.IntN(2) * w.rng.IntN(100))
	case p < 20: // a restart
		s.seq, s.id = uint64(w.rng.IntN(2)), 0
		s.keyless = w.rng.IntN(3) == 0
	case p < 22:
		s.keyless = false
	case p < 25: // longer than range deletions of one scope must be apart
		w.now += 700_000
	}
	n := w.rng.IntN(6)
	if w.rng.IntN(20) == 0 {
		n = 64
	}
	return w.message(s, n)
}

// add appends n records in groups of random size and waits until they are durable.
func (w *world) add(n int) {
	w.t.Helper()
	for n > 0 {
		g := w.j.NewGroup()
		first := len(w.records)
		for range min(n, 1+w.rng.IntN(40)) {
			n--
			s := w.streams[w.rng.IntN(len(w.streams))]
			rec, events := w.next(s)
			w.put(g, s, rec, events)
		}
		w.commit(g, first)
	}
}

func (w *world) put(g *journal.Group, s *testStream, rec capture.Record, events []event.Fields) {
	w.t.Helper()
	offset, err := s.feed.Add(g, &rec, false)
	if err != nil {
		w.t.Fatal(err)
	}
	if offset != uint64(len(w.records)+1) {
		w.t.Fatalf("offset %d, want %d", offset, len(w.records)+1)
	}
	if rec.Kind == capture.Message {
		s.last, s.events = rec.Frames, events
	}
	w.records = append(w.records, written{events: events})
}

// commit ends the group and reads the headers of its records back.
func (w *world) commit(g *journal.Group, first int) {
	w.t.Helper()
	for _, s := range w.streams {
		s.feed.Save(g)
	}
	if err := g.Commit(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.j.Sync(); err != nil {
		w.t.Fatal(err)
	}
	for at := uint64(first); at < w.j.Durable(); {
		b, err := w.j.NextBlock(nil, at)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range b.Len() {
			o := b.First + uint64(i)
			w.records[o-1].Record = journal.Record{Offset: o, Header: *b.Header(i)}
		}
		at = b.Last()
	}
}

// testOptions are small, so that much happens, and end the test where a program would be ended.
func testOptions(fs vfs.FS) Options {
	return Options{FS: fs, MemTableSize: 256 << 10, CacheSize: 1 << 20, Fatal: func(m string) { panic(m) }}
}

// openIndex opens the index, making it if it is missing, and closes it at the end of the test.
func (w *world) openIndex(o Options) *Index {
	w.t.Helper()
	x, err := Open(w.j, true, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := x.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return x
}

// upTo applies the journal up to an offset.
func upTo(t *testing.T, x *Index, offset uint64) {
	t.Helper()
	x.writing.Lock()
	defer x.writing.Unlock()
	if _, err := x.catchUp(t.Context(), offset, nil); err != nil {
		t.Fatal(err)
	}
	if x.Applied() != offset {
		t.Fatalf("applied %d, want %d", x.Applied(), offset)
	}
}

// indexUpTo is a fresh index of the journal up to an offset, on a filesystem of its own.
func (w *world) indexUpTo(offset uint64) *Index {
	w.t.Helper()
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(w.t, x, offset)
	return x
}

func view(t *testing.T, x *Index) *View {
	t.Helper()
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
