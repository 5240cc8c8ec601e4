package journal

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// checkPosition compares a position read back with the one that was saved.
func checkPosition(t testing.TB, source uint32, got, want Position, m *model) {
	t.Helper()
	last := got.State.Last()
	got.State.SetLast(nil)
	if want.State.SetLast(nil); got.Last != want.Last || string(got.encode()) != string(want.encode()) {
		t.Errorf("source %d stands at\n%+v, want\n%+v", source, got, want)
	}
	var frames [][]byte
	if want.Last != 0 {
		frames = m.record(want.Last).frames
	}
	if !sameFrames(last, frames) {
		t.Errorf("source %d: the last frames are %q, want %q", source, last, frames)
	}
}

func TestPositionsSurvive(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 3), &model{}
	if p, err := j.Position(1); err != nil || p.Last != 0 || p.State.Epoch != 0 {
		t.Fatalf("a source never recorded stands at %+v, %v", p, err)
	}
	for range 5 {
		for _, src := range s.sources { // all that the state holds
			st := &src.state
			st.Break, st.Window, st.WindowUsed = continuity.Break(rng.IntN(3)), rng.IntN(2) == 0, rng.IntN(2) == 0
			st.HasEventID, st.EventID, st.Keyed = rng.IntN(2) == 0, rng.Uint64(), rng.IntN(2) == 0
		}
		m.appendMany(t, j, s, 20, 6)
		if rng.IntN(2) == 0 {
			if err := j.Seal(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for id, want := range m.positions {
				got, err := j.Position(id)
				if err != nil {
					t.Fatal(err)
				}
				checkPosition(t, id, got, want, m)
			}
			mustClose(t, j)
			j = mustOpen(t, o, 0)
		}
	}
}

func TestTotalsSurvive(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	for range 3 {
		m.appendMany(t, j, s, 100, 9)
		var want Totals
		for _, r := range m.recs {
			if r.header.Kind != Message {
				continue
			}
			want.Messages++
			for _, f := range r.frames {
				want.RawBytes += uint64(len(f))
			}
			if r.header.Duplicate {
				want.Duplicates++
			} else if r.header.Damage != 0 {
				want.Damaged++
			} else {
				want.Events += uint64(r.header.Events)
			}
		}
		for range 2 {
			if got := j.Stats().Totals; got != want {
				t.Errorf("totals are %+v, want %+v", got, want)
			}
			if err := j.Seal(context.Background()); err != nil {
				t.Fatal(err)
			}
			mustClose(t, j)
			j = mustOpen(t, o, 0)
		}
	}
}

func TestSourcesSurvive(t *testing.T) {
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	id := j.ID()
	if _, err := j.EnsureSource("", nil, nil); err == nil {
		t.Error("a source without a name is accepted")
	}
	ensure := func(name string, endpoints, masters []string) Source {
		t.Helper()
		s, err := j.EnsureSource(name, endpoints, masters)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a := ensure("a", []string{"tcp://a:1"}, nil)
	b := ensure("b", nil, []string{"http://b"})
	if a.ID != 1 || b.ID != 2 {
		t.Errorf("ids %d and %d", a.ID, b.ID)
	}
	same := func(what string, got, want Source) {
		t.Helper()
		if got.ID != want.ID || got.Name != want.Name || len(got.Endpoints) != len(want.Endpoints) || len(got.Masters) != len(want.Masters) || !got.Created.Equal(want.Created) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	same("asked again", ensure("a", nil, nil), a)
	a.Endpoints, a.Masters = []string{"tcp://a:1", "tcp://a:2"}, []string{"http://a"}
	same("changed", ensure("a", a.Endpoints, a.Masters), a)
	mustClose(t, j)
	j = mustOpen(t, o, 0)
	if j.ID() != id {
		t.Error("the journal has another id")
	}
	if all := j.Sources(); len(all) != 2 {
		t.Fatalf("%d sources", len(all))
	} else {
		same("a reopened", all[0], a)
		same("b reopened", all[1], b)
	}
	if _, ok := j.SourceNamed("c"); ok {
		t.Error("found a source that is not there")
	}
	if c := ensure("c", nil, nil); c.ID != 3 {
		t.Errorf("the third source has id %d", c.ID)
	}
}

func TestImportsSurvive(t *testing.T) {
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	want := Import{SHA256: "aa00", Path: "/x/y", Records: 3, Total: 7, First: 1, Last: 3}
	if _, err := j.ImportOf(1, want.SHA256); !errors.Is(err, ErrNotFound) {
		t.Errorf("an import that never was: %v", err)
	}
	for range 2 {
		g := j.NewGroup()
		g.Import(1, want)
		g.Import(2, Import{SHA256: "aa00", Records: 1})
		if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		j = mustOpen(t, o, 0)
		if got, err := j.ImportOf(1, want.SHA256); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if _, err := j.ImportOf(1, "aa"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a prefix of a sum: %v", err)
		}
		want.Records, want.Last = 7, 7
	}
}

// TestIDsDiffer: two journals are never taken for each other.
func TestIDsDiffer(t *testing.T) {
	a, b := mustOpen(t, testOptions(vfs.NewMem()), 0), mustOpen(t, testOptions(vfs.NewMem()), 0)
	if a.ID() == b.ID() || a.ID() == (ID{}) {
		t.Errorf("ids %v and %v", a.ID(), b.ID())
	}
}

// TestEmptyGroup: nothing to commit is no error and moves nothing.
func TestEmptyGroup(t *testing.T) {
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	if err := errors.Join(j.NewGroup().Commit(), j.Sync()); err != nil || j.Durable() != 0 {
		t.Errorf("%v, durable %d", err, j.Durable())
	}
}
