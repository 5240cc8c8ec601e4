package index

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// countRows counts the rows of each keyspace.
func countRows(t *testing.T, x *Index) map[byte]int {
	t.Helper()
	it, err := x.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	out := map[byte]int{}
	for ok := it.First(); ok; ok = it.Next() {
		out[it.Key()[0]]++
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return out
}

// script appends records one group each.
func (w *world) script(records ...capture.Record) {
	w.t.Helper()
	for i := range records {
		g, first := w.j.NewGroup(), len(w.records)
		w.put(g, w.streams[0], records[i], nil)
		w.commit(g, first)
	}
}

func (w *world) stored(key string) capture.Record {
	s := w.streams[0]
	s.id++
	return w.send(event.Fields{Type: event.Stored, ID: s.id, Tenant: "default", Medium: "cpu", Key: key})
}

func (w *world) clearAll() capture.Record {
	s := w.streams[0]
	s.id++
	return w.send(event.Fields{Type: event.Cleared, ID: s.id, Tenant: "default"})
}

func (w *world) send(events ...event.Fields) capture.Record {
	s := w.streams[0]
	w.now++
	s.seq++
	seq := event.SeqFrame(s.seq)
	return capture.Record{Kind: capture.Message, Received: w.now * 1e6, Frames: [][]byte{{}, seq[:], w.encoder.AppendPayload(nil, w.now, events, 0)}}
}

func (w *world) damaged(seq bool) capture.Record {
	rec := w.send()
	rec.Frames[2] = fmt.Appendf(nil, "no MessagePack %d", w.now)
	if !seq {
		w.streams[0].seq--
		rec.Frames = rec.Frames[1:]
	}
	return rec
}

// TestMarkExtends (R10): N damaged messages in a row are one mark row, with and without a seq, also over a reopening.
func TestMarkExtends(t *testing.T) {
	for _, seq := range []bool{true, false} {
		w := newWorld(t, 1, 1)
		fs := vfs.NewMem()
		x, err := Open(w.j, true, testOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		w.script(w.stored("a"))
		for range 50 {
			w.script(w.damaged(seq))
		}
		upTo(t, x, 20)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = w.openIndex(testOptions(fs))
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n := countRows(t, x)[keyMark]; n != 1 {
			t.Errorf("seq %v: %d mark rows", seq, n)
		}
		v := view(t, x)
		for at, want := range map[uint64]uint64{1: 0, 2: 2, 30: 2, 51: 2, 1 << 40: 2} {
			m, ok, err := v.Mark(1, at)
			if err != nil || ok != (want != 0) || m.From != want {
				t.Errorf("seq %v: mark at %d: %+v, %v, %v", seq, at, m, ok, err)
			}
			if ok && (m.End != Behind(51) || m.Cause != continuity.Damaged || m.Received != w.now) {
				t.Errorf("seq %v: mark at %d: %+v", seq, at, m)
			}
		}
		if st := v.Source(1); st.Marks != 1 || st.Damaged != 50 {
			t.Errorf("seq %v: %+v", seq, st)
		}
		v.Close()
	}
}

// TestMarkDoesNotExtend over evidence, nor over another cause; but over what is no evidence.
func TestMarkDoesNotExtend(t *testing.T) {
	for name, c := range map[string]struct {
		between func(w *world) []capture.Record
		want    int
	}{
		"nothing":       {func(w *world) []capture.Record { return nil }, 1},
		"empty batch":   {func(w *world) []capture.Record { return []capture.Record{w.send()} }, 1},
		"keyless clear": {func(w *world) []capture.Record { return []capture.Record{w.clearAll()} }, 1},
		"event":         {func(w *world) []capture.Record { return []capture.Record{w.stored("b")} }, 2},
		"connection": {func(w *world) []capture.Record {
			return []capture.Record{{Kind: capture.Disconnected}, {Kind: capture.Connected}}
		}, 1},
		"reconnect": {func(w *world) []capture.Record {
			return []capture.Record{{Kind: capture.Disconnected}, {Kind: capture.Connected}, w.send()}
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 1)
			x := w.openIndex(testOptions(vfs.NewMem()))
			w.script(w.damaged(true))
			w.script(c.between(w)...)
			w.script(w.damaged(true))
			if err := x.CatchUp(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if n := countRows(t, x)[keyMark]; n != c.want {
				t.Errorf("%d mark rows, want %d", n, c.want)
			}
		})
	}
}

// TestClearIsCheap (R10): a clear is a few rows, whatever the number of objects.
func TestClearIsCheap(t *testing.T) {
	w := newWorld(t, 1, 1)
	x := w.openIndex(testOptions(vfs.NewMem()))
	const objects, clears = 500, 20
	for i := range objects {
		w.script(w.stored(fmt.Sprint("key", i)))
	}
	for range clears {
		w.script(w.clearAll(), w.stored("again"))
	}
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	rows := countRows(t, x)
	if rows[keyClear] != clears || rows[keyProof] != clears || rows[keyHistory] != objects+clears || rows[keyMark] != 0 || rows[keyLive] != 1 {
		t.Errorf("%v", rows)
	}
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	v := view(t, x)
	defer v.Close()
	if n, err := v.CountLive(t.Context()); n != 1 || err != nil {
		t.Errorf("%d live, %v", n, err)
	}
}

// TestClearDeletesRarely: range deletions of one scope are ten minutes apart, and come only where live rows were written.
func TestClearDeletesRarely(t *testing.T) {
	w := newWorld(t, 1, 1)
	x := w.openIndex(testOptions(vfs.NewMem()))
	deletions := func() uint64 {
		t.Helper()
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		n := uint64(0)
		for _, sc := range x.a.scopes {
			if sc.lastClear > 0 {
				n = uint64(sc.lastClear)
			}
		}
		return n
	}
	w.script(w.stored("a"), w.clearAll())
	first := deletions()
	if first != uint64(w.now)*1e6 {
		t.Fatalf("the first clear deleted at %d, it is %d", first, w.now)
	}
	for range 10 {
		w.script(w.stored("a"), w.clearAll())
	}
	if deletions() != first {
		t.Error("a clear within ten minutes deleted again")
	}
	w.now += clearLiveEvery / 1e6
	w.script(w.clearAll())
	if got := deletions(); got != uint64(w.now)*1e6 {
		t.Errorf("the clear behind ten minutes deleted at %d, it is %d", got, w.now)
	}
	last := deletions()
	w.now += clearLiveEvery / 1e6
	w.script(w.clearAll())
	if deletions() != last {
		t.Error("a clear deleted where nothing was live")
	}
}
