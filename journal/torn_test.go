package journal

import (
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// told are the losses that a journal tells of.
func told(t *testing.T, j *Journal) (out []Lost) {
	t.Helper()
	for _, r := range readAll(t, j) {
		if r.header.Kind != TailLost {
			continue
		}
		l, err := DecodeLost(r.offset, r.frames)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// TestTailLossOfTheMastersRow: where what names a source's master is lost with the end, its epoch is in doubt nevertheless: by a cut log, by
// an older copy of the database, found by a writer, a reader and a repair.
func TestTailLossOfTheMastersRow(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 40, 8)
	mustClose(t, j)
	old, end := copied(t, mem), m.last()
	j = mustOpen(t, o, 0)
	if _, err := j.EnsureSource("source-1", nil, []string{"http://master"}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.EnsureSource("new", nil, []string{"http://master"}); err != nil {
		t.Fatal(err)
	}
	m.appendMany(t, j, s, 20, 8)
	known := m.last()
	mustClose(t, j)

	path := mem.PathJoin(testDir, folder)
	if err := mem.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if ok, err := vfs.Clone(old, mem, path, path); !ok || err != nil {
		t.Fatal(ok, err)
	}
	r, err := Repair(t.Context(), testDir, "/repaired", o, nil)
	if err != nil || r.Lost != known-end {
		t.Fatalf("repaired: %+v, %v", r, err)
	}
	reader, err := OpenReadOnly(testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	torn, is := reader.Torn(nil)
	if !is || torn.First != end+1 || torn.Last != known {
		t.Errorf("torn: %+v, %v", torn, is)
	}
	var silent []LostOf
	for _, src := range reader.Sources() {
		one, err := reader.Silent(torn, &src)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, one...)
	}
	mustClose(t, reader)

	j = mustOpen(t, o, 0)
	back, err := j.EnsureSource("new", nil, []string{"http://master"})
	if err != nil {
		t.Fatal(err)
	}
	lost := told(t, j)
	if len(lost) != 3 {
		t.Fatalf("%d sources are told of the loss, want 3: %+v", len(lost), lost)
	}
	var want []LostOf
	for i, src := range j.Sources()[:2] {
		p, err := j.Position(src.ID)
		if err != nil {
			t.Fatal(err)
		}
		also := silentFrom(src.ID, max(1, p.State.Epoch))
		if l := (Lost{First: end + 1, Last: known, Also: also}); !reflect.DeepEqual(lost[i], l) {
			t.Errorf("source %d: %+v, want %+v", src.ID, lost[i], l)
		}
		want = append(want, also...)
	}
	if l := (Lost{First: end + 1, Last: known, Also: silentFrom(back.ID, 1)}); !reflect.DeepEqual(lost[2], l) {
		t.Errorf("the source that came back: %+v, want %+v", lost[2], l)
	}
	if !reflect.DeepEqual(silent, want) {
		t.Errorf("at rest %+v are in doubt, want %+v", silent, want)
	}
	mustClose(t, j)
	// It is told once: a source that is new is not one that came back.
	j = mustOpen(t, o, 0)
	if _, err := j.EnsureSource("later", nil, nil); err != nil {
		t.Fatal(err)
	}
	if lost := told(t, j); len(lost) != 3 {
		t.Errorf("told %d times", len(lost))
	}
	mustClose(t, j)

	repaired, err := OpenReadOnly("/repaired", o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, repaired)
	for _, l := range told(t, repaired) {
		if len(l.Also) == 0 || l.Also[0].Silent == 0 {
			t.Errorf("the repaired journal tells %+v", l)
		}
	}
}

// TestCutLogsKeepSources: wherever a log is cut, the sources and their masters stay, and whose master may change things silently is in doubt.
func TestCutLogsKeepSources(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.HeadEvery = 1
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 6, 2)
	src, err := j.EnsureSource("b", nil, []string{"http://master"})
	if err != nil {
		t.Fatal(err)
	}
	m.appendMany(t, j, s, 6, 2)
	testkit.Eventually(t, "the head file follows", func() bool { return readHead(o.FS, testDir, j.id).offset == m.last() })
	whole := copiedOpen(t, mem, j)
	mustClose(t, j)
	o.HeadEvery = testOptions(mem).HeadEvery
	cuts := 0
	for _, log := range filesOf(t, whole, pebblefile.Log) {
		size := 0
		changeFile(t, whole, log, func(b []byte) []byte { size = len(b); return b })
		for cut := 0; cut < size; cut += 1 + rng.IntN(60) {
			o.FS = copied(t, whole)
			changeFile(t, o.FS, log, func(b []byte) []byte { return b[:cut] })
			j, err := Open(testDir, nil, o)
			if err != nil {
				continue // it is found
			}
			if got := j.Sources(); len(got) != 2 || len(got[1].Masters) != 1 {
				t.Errorf("%s cut at %d: the sources are %+v", log, cut, got)
			}
			if lost := told(t, j); len(lost) > 0 {
				cuts++
				if want := silentFrom(src.ID, 1); len(lost) != 2 || len(lost[0].Also) != 0 || !reflect.DeepEqual(lost[1].Also, want) {
					t.Errorf("%s cut at %d: told %+v", log, cut, lost)
				}
			} else if j.Durable() < m.last() {
				t.Errorf("%s cut at %d: it ends at %d and tells of no loss", log, cut, j.Durable())
			}
			mustClose(t, j)
		}
	}
	if cuts == 0 {
		t.Error("no cut lost anything")
	}
}

// TestKnownOfAnother: what an index of another journal knows is no loss; one that cannot say of which it is counts.
func TestKnownOfAnother(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, _, id := recorded(t, o)
	other := id
	other[5] ^= 1
	o.Indexed = Known{{other, m.last() + 100}, {id, m.last()}}
	j := mustOpen(t, o, 0)
	if lost := told(t, j); len(lost) > 0 {
		t.Errorf("told %+v", lost)
	}
	mustClose(t, j)
	o.Indexed = append(o.Indexed, Claim{ID{}, m.last() + 3})
	j = mustOpen(t, o, 0)
	if lost := told(t, j); len(lost) != 3 || lost[0].Last != m.last()+3 {
		t.Errorf("told %+v", lost)
	}
}

// TestOldHeadFiles: a head file of a program that did not tell of the sources still tells how far the journal went.
func TestOldHeadFiles(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, s, id := recorded(t, o)
	known := m.last() + 4
	writeHead(t, o.FS, encodeHead(head{id: id, offset: known}))
	checkTailLost(t, o, m, s, 0, known, false)
}

// TestHeadTellsOfSourcesAtOnce: a source and its first master are in the head file, and in a table, before the first record that supposes them.
func TestHeadTellsOfSourcesAtOnce(t *testing.T) {
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	for _, masters := range [][]string{nil, {"http://a"}, {"http://b"}} {
		if _, err := j.EnsureSource("s", nil, masters); err != nil {
			t.Fatal(err)
		}
		if got, want := readHead(o.FS, testDir, j.ID()).sources, sumOf(j.Sources()); got != want {
			t.Errorf("masters %q: the head file has the sum %x, want %x", masters, got, want)
		}
	}
	if a, b := sumOf(nil), sumOf([]Source{{ID: 1}}); a == b || a == 0 || b == sumOf([]Source{{ID: 1, Masters: []string{"m"}}}) {
		t.Error("the sum does not tell sources apart")
	}
}
