package index

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestLost: one record of a loss marks every source that it names, flags epochs, and voids the reading that it cuts.
func TestLost(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	w.add(60)
	a, b := w.streams[0].source.ID, w.streams[1].source.ID
	g := w.j.NewGroup()
	fact := func(kind journal.Kind, content any) uint64 {
		frame, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return g.Add(&journal.Header{Kind: kind, Source: a, Verdict: continuity.Verdict{Epoch: 1}}, [][]byte{frame})
	}
	begun := fact(journal.ReconciliationBegun, &reading.Begun{Why: reading.AfterMark})
	lost := journal.Lost{First: 7, Last: 9, Also: []journal.LostOf{{Source: b}, {Source: a, Silent: 3}}}
	at := g.Add(&journal.Header{Kind: journal.TailLost, Source: a, Verdict: continuity.Verdict{
		Epoch: 1, Mark: continuity.MarkBehind, MarkCause: continuity.Damaged, Gap: continuity.Gap{Cause: continuity.Damaged, Epoch: 1},
	}}, [][]byte{lost.Frame()})
	part := reading.AppendEntry(reading.AppendPart(nil, begun, []byte("b"), []byte("t")), &reading.Entry{What: reading.Unsaid, Key: []byte("k")})
	g.Add(&journal.Header{Kind: journal.ReconciliationPart, Source: a, Verdict: continuity.Verdict{Epoch: 1}}, [][]byte{part})
	fact(journal.ReconciliationEnded, &reading.Ended{Begun: begun, Through: begun, Scopes: []reading.Scope{{Backend: []byte("b"), Tenant: []byte("t")}}, Contradictions: 1})
	if err := errors.Join(g.Commit(), w.j.Sync()); err != nil {
		t.Fatal(err)
	}
	x := w.indexUpTo(w.j.Durable())
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, source := range []uint32{a, b} {
		m, ok, err := v.Mark(source, at)
		if err != nil || !ok || m.End != Behind(at) || m.Cause != continuity.Damaged {
			t.Errorf("source %d: mark %+v, %v, %v", source, m, ok, err)
		}
		if s := v.Source(source); s.Lost != at || s.Reading != nil {
			t.Errorf("source %d stands at %+v", source, s)
		}
	}
	flagged, err := v.Flagged(a)
	if err != nil || !flagged[3] || !flagged[1] {
		t.Errorf("flagged %v, %v: want 3, which the loss tells, and 1, which the reading contradicted", flagged, err)
	}
	if err := v.SourceReadings(a, 0, w.j.Durable(), func(r *SourceReading) error { return errors.New("a void reading counts") }); err != nil {
		t.Error(err)
	}
}

// TestCheck: of a whole index nothing is found; a row that is missing, differs or is too many is.
func TestCheck(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	w.add(300)
	check := func(change func(x *Index) error) []journal.Finding {
		t.Helper()
		fs := vfs.NewMem()
		o := testOptions(fs)
		x := w.openIndex(o)
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(x), x.Close()); err != nil {
			t.Fatal(err)
		}
		var found []journal.Finding
		c, err := Check(t.Context(), testDir, w.j, "scratch", o, func(f journal.Finding) { found = append(found, f) }, nil)
		if err != nil || !c.Compared || c.Rows == 0 {
			t.Fatalf("%+v, %v", c, err)
		}
		return found
	}
	if found := check(func(*Index) error { return nil }); len(found) > 0 {
		t.Errorf("a whole index: %+v", found)
	}
	row := func(x *Index) (key []byte) {
		it, err := x.db.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		it.SeekGE([]byte{keyHistory})
		return append(key, it.Key()...)
	}
	for name, change := range map[string]func(x *Index) error{
		"missing":   func(x *Index) error { return x.db.Delete(row(x), pebble.NoSync) },
		"differing": func(x *Index) error { return x.db.Set(row(x), []byte{1}, pebble.NoSync) },
		"surplus":   func(x *Index) error { return x.db.Set(append(row(x), 7), nil, pebble.NoSync) },
	} {
		found := check(change)
		if len(found) != 1 || found[0].Severity != journal.Damage || found[0].Key == "" {
			t.Errorf("a %s row: %+v", name, found)
		}
	}
}

// TestReadingsBeforeARepair: in a repaired journal a reading behind the loss tells its difference from what is lost, and does not count. The first
// behind the repair does.
func TestReadingsBeforeARepair(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(60)
	source := w.streams[0].source.ID
	g := w.j.NewGroup()
	add := func(kind journal.Kind, frame []byte) uint64 {
		return g.Add(&journal.Header{Kind: kind, Source: source, Verdict: continuity.Verdict{Epoch: 1}}, [][]byte{frame})
	}
	content := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	scope := reading.Scope{Backend: []byte("b"), Tenant: []byte("t")}
	read := func() (begun uint64) {
		begun = add(journal.ReconciliationBegun, content(&reading.Begun{Why: reading.AfterMark}))
		part := reading.AppendPart(nil, begun, scope.Backend, scope.Tenant)
		add(journal.ReconciliationPart, reading.AppendEntry(part, &reading.Entry{What: reading.Unsaid, Key: []byte("k")}))
		add(journal.ReconciliationEnded, content(&reading.Ended{Begun: begun, Through: begun, Scopes: []reading.Scope{scope}}))
		return begun
	}
	first := w.j.Durable() + 1
	lost := journal.Lost{First: first, Last: first, Through: first + 3}
	if at := add(journal.TailLost, lost.Frame()); at != first {
		t.Fatalf("the loss stands at offset %d, not at %d", at, first)
	}
	if begun := read(); begun > lost.Through {
		t.Fatalf("the reading begins at offset %d, behind %d", begun, lost.Through)
	}
	counts := read()
	if err := errors.Join(g.Commit(), w.j.Sync()); err != nil {
		t.Fatal(err)
	}
	v, err := w.indexUpTo(w.j.Durable()).View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var got []uint64
	if err := v.SourceReadings(source, 0, w.j.Durable(), func(r *SourceReading) error { got = append(got, r.Begun); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != counts {
		t.Errorf("readings that began at %v count, want that at %d", got, counts)
	}
}
