package index

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// smallRuns makes many runs and tables of few rows.
func smallRuns(o Options) Options {
	o.runBytes, o.tableBytes = 2<<10, 1<<10
	return o
}

// reading adds a reading of the master at random: what it says of some objects is known only behind events that came meanwhile, and it
// may say two things of one.
func (w *world) reading() {
	w.t.Helper()
	s := w.streams[0]
	h := w.fact(func(g *journal.Group, s *testStream) error {
		_, err := s.feed.Fact(g, journal.ReconciliationBegun, w.now*1e6, continuity.Verdict{}, reading.Begun{Why: reading.Audit})
		return err
	})
	g, first := w.j.NewGroup(), len(w.records)
	for range w.rng.IntN(8) {
		rec, events := w.message(s, 1+w.rng.IntN(5))
		w.put(g, s, rec, events)
	}
	w.commit(g, first)
	through := uint64(len(w.records))
	part := reading.AppendPart(nil, h, []byte(pick(w.rng, testBackends)), []byte("default"))
	for range w.rng.IntN(10) {
		e := reading.Entry{Key: []byte(pick(w.rng, testKeys)), What: reading.Unsaid}
		if w.rng.IntN(4) > 0 {
			e.Medium, e.What = []byte(pick(w.rng, testMedia)), reading.Present
			if w.rng.IntN(2) == 0 {
				e.What = reading.Absent
			}
		}
		part = reading.AppendEntry(part, &e)
	}
	w.fact(func(g *journal.Group, s *testStream) error {
		_, err := s.feed.End(g, w.now*1e6, [][]byte{part}, &reading.Ended{Begun: h, Through: through, Scopes: []reading.Scope{{Tenant: []byte("default")}}})
		return err
	})
}

// TestBulkEqualsFollowed: rows that are sorted outside of the database are those that the applier writes, whatever is recorded.
func TestBulkEqualsFollowed(t *testing.T) {
	seed := testkit.Seed(t)
	for run := range uint64(3) {
		w := newWorld(t, seed+run, 2)
		for range 8 {
			w.add(1 + w.rng.IntN(100))
			w.reading()
		}
		followed := w.indexUpTo(w.j.Durable())
		fs := vfs.NewMem()
		o := smallRuns(testOptions(fs))
		o.Passing = true // nothing is compacted: the tables are as they were made
		x, err := Create(t.Context(), w.j, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, got := dumpRows(t, followed), dumpRows(t, x)
		sameRows(t, "sorted outside", got, want)
		if m := x.db.Metrics(); m.Levels[6].TablesCount < 4 || m.Levels[6].Sublevels > 1 {
			t.Errorf("tables of the lowest level: %d", m.Levels[6].TablesCount)
		}
		// It goes on like any other.
		w.add(100)
		for _, y := range []*Index{x, followed} {
			if err := y.CatchUp(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		sameRows(t, "going on", dumpRows(t, x), dumpRows(t, followed))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if names, err := fs.List(testDir); err != nil || !slices.Equal(names, []string{folder}) {
			t.Errorf("left behind: %q, %v", names, err)
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, run)
		}
	}
}

// TestBulkTakesDeadRowsAway: a clear that would delete live rows by range leaves none, as there.
func TestBulkTakesDeadRowsAway(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"), w.stored("b"))
	w.script(w.clearAll())
	w.script(w.stored("c"))
	x, err := Create(t.Context(), w.j, testOptions(vfs.NewMem()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var live []string
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	err = v.each([]byte{keyLive}, []byte{keyLive + 1}, false, func(key, _ []byte) error {
		live = append(live, string(key))
		return nil
	})
	if err = errors.Join(err, v.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	if len(live) != 1 || !strings.Contains(live[0], "c") {
		t.Errorf("live rows %q, want that of c", live)
	}
}

// TestBulkFails: whichever file operation of a rebuild fails, the error comes back, the old index stays, and what is left over does
// not stop the next rebuild.
func TestBulkFails(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(150)
	boom := errors.New("boom")
	mem := vfs.NewMem()
	x := w.openIndex(testOptions(mem))
	upTo(t, x, 100)
	want := dumpRows(t, x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for i := int32(0); ; i++ {
		at := errorfs.OnIndex(i)
		broken := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !strings.Contains(op.Path, newFolder+rowsSuffix) || op.Kind == errorfs.OpLink { // the database's own are the guard's
				return nil
			}
			if errors.Is(at.MaybeError(op), errorfs.ErrInjected) {
				return boom
			}
			return nil
		}))
		y, err := Create(t.Context(), w.j, smallRuns(testOptions(broken)), nil)
		if err == nil {
			sameRows(t, "behind failures", dumpRows(t, y), dumpRows(t, w.indexUpTo(w.j.Durable())))
			if err := y.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, boom) {
			t.Fatalf("operation %d failed: %v", i, err)
		}
		if failures++; failures%16 == 0 {
			old, err := Open(w.j, false, testOptions(mem))
			if err != nil {
				t.Fatal(err)
			}
			sameRows(t, fmt.Sprint("operation ", i), dumpRows(t, old), want)
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if failures < 50 {
		t.Errorf("only %d operations failed", failures)
	}
}

// TestMerge: runs come back merged, and of rows with the same key that of the newest run.
func TestMerge(t *testing.T) {
	seed := testkit.Seed(t)
	rng := newWorld(t, seed, 1).rng
	for n := range 40 {
		fs := vfs.NewMem()
		s, err := createSpool(fs, "spool")
		if err != nil {
			t.Fatal(err)
		}
		want, runs := map[string]string{}, []spooled(nil)
		for range n {
			rows := map[string]string{}
			for range rng.IntN(200) {
				key := fmt.Sprintf("%0*x", 1+rng.IntN(40), rng.IntN(1000))
				rows[key] = strings.Repeat("v", rng.IntN(300)) + fmt.Sprint(len(runs))
			}
			from := s.at
			for _, key := range slices.Sorted(maps.Keys(rows)) {
				if err := s.add([]byte(key), []byte(rows[key])); err != nil {
					t.Fatal(err)
				}
				want[key] = rows[key]
			}
			run, err := s.endRun(from)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Open("spool")
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMerge(f, runs)
		if err != nil {
			t.Fatal(err)
		}
		got, last := map[string]string{}, ""
		for {
			key, value, ok, err := m.next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if len(got) > 0 && string(key) <= last {
				t.Fatalf("seed %d, %d runs: %q behind %q", seed, n, key, last)
			}
			last = string(key)
			got[last] = string(value)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d, %d runs: %d rows, want %d, or others", seed, n, len(got), len(want))
		}
	}
}

// TestDamagedSpool: whichever byte of a run reads other than it was written, it is an error, and no row is another.
func TestDamagedSpool(t *testing.T) {
	fs := vfs.NewMem()
	s, err := createSpool(fs, "spool")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := s.add([]byte(fmt.Sprintf("key %d", i)), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	run, err := s.endRun(0)
	if err = errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("spool")
	if err != nil {
		t.Fatal(err)
	}
	good := make([]byte, run.to)
	if _, err := f.ReadAt(good, 0); err != nil {
		t.Fatal(err)
	}
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if _, err := newMerge(bytes.NewReader(bad), []spooled{run}); err == nil {
			t.Errorf("byte %d differs, and nothing was said", at)
		}
	}
	for to := int64(1); to < run.to; to++ {
		if _, err := newMerge(bytes.NewReader(good), []spooled{{0, to}}); err == nil {
			t.Errorf("cut at %d, and nothing was said", to)
		}
	}
}

// TestRenew: an index that lacks most of the journal is computed anew, one that lacks less goes on; both have the same rows.
func TestRenew(t *testing.T) {
	for _, c := range []struct {
		has, all uint64
		want     bool
	}{
		{0, renewEvents, true},
		{0, renewEvents - 1, false},
		{1, renewEvents, false},
		{renewEvents, 2 * renewEvents, true},
		{renewEvents + 1, 2*renewEvents + 1, false},
		{10 * renewEvents, 20 * renewEvents, true},
		{10 * renewEvents, 20*renewEvents - 1, false},
		{5, 4, false}, // of a journal that lost its tail
	} {
		if got := mostlyMissing(c.has, c.all, renewEvents); got != c.want {
			t.Errorf("%d of %d: computed anew %v, want %v", c.has, c.all, got, c.want)
		}
	}
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(50)
	o := testOptions(vfs.NewMem())
	o.renew = 1000
	x := w.openIndex(o)
	if err := x.Renew(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if x.Generation() != 0 || x.Applied() != w.j.Durable() {
		t.Fatalf("generation %d, applied %d of %d", x.Generation(), x.Applied(), w.j.Durable())
	}
	s := w.streams[0]
	w.fact(func(g *journal.Group, _ *testStream) error {
		for range 100 {
			rec, _ := w.message(s, 20)
			if _, err := s.feed.Add(g, &rec, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err := x.Renew(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if x.Generation() != 1 || x.Applied() != w.j.Durable() {
		t.Fatalf("generation %d, applied %d of %d", x.Generation(), x.Applied(), w.j.Durable())
	}
	sameRows(t, "renewed", dumpRows(t, x), dumpRows(t, w.indexUpTo(w.j.Durable())))
}
