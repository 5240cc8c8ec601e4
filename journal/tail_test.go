package journal

import (
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// writeHead replaces the head file by content.
func writeHead(t *testing.T, fs vfs.FS, content []byte) {
	t.Helper()
	if err := datadir.WriteFile(fs, testDir, headFile, content); err != nil {
		t.Fatal(err)
	}
}

// recorded makes a closed journal with some records.
func recorded(t *testing.T, o Options) (*model, *stream, ID) {
	t.Helper()
	rng := testkit.RandomSource(t)
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 3), &model{}
	m.appendMany(t, j, s, 40, 8)
	id := j.ID()
	mustClose(t, j)
	return m, s, id
}

// sum is that of the sources, which have no masters.
func (s *stream) sum() uint32 {
	var rows []Source
	for _, src := range s.sources {
		rows = append(rows, Source{ID: src.id})
	}
	return sumOf(rows)
}

// checkTailLost opens a journal that lost the offsets behind m's last up to known. sure: it is known that no source has a master.
func checkTailLost(t *testing.T, o Options, m *model, s *stream, knownTo, known uint64, sure bool) {
	t.Helper()
	j := mustOpen(t, o, knownTo)
	defer mustClose(t, j)
	got := readAll(t, j)
	if err := diffRecords(got[:len(m.recs)], m.recs); err != nil {
		t.Fatal(err)
	}
	lost := got[len(m.recs):]
	if len(lost) != len(s.sources) {
		t.Fatalf("%d records behind the loss, want one for each of %d sources", len(lost), len(s.sources))
	}
	for i, r := range lost {
		h := &r.header
		if want := known + 1 + uint64(i); r.offset != want {
			t.Errorf("loss of source %d stands at %d, want %d", h.Source, r.offset, want)
		}
		if h.Kind != TailLost || h.Source != s.sources[i].id || h.Mark != continuity.MarkBehind || h.MarkCause != continuity.Damaged ||
			h.Gap.Cause != continuity.Damaged || h.Received == 0 || h.Epoch != max(1, s.sources[i].state.Epoch) {
			t.Errorf("loss of source %d is told as %+v", s.sources[i].id, h)
		}
		want := Lost{First: m.last() + 1, Last: known}
		if !sure {
			want.Also = []LostOf{{h.Source, h.Epoch}, {h.Source, h.Epoch + 1}}
		}
		if l, err := DecodeLost(r.offset, r.frames); err != nil || !reflect.DeepEqual(l, want) {
			t.Errorf("loss of source %d is %+v, %v, want %+v", h.Source, l, err, want)
		}
		p, err := j.Position(h.Source)
		if err != nil {
			t.Fatal(err)
		}
		checkPosition(t, h.Source, p, m.positions[h.Source], m)
	}
	if want := known + uint64(len(s.sources)); j.Durable() != want {
		t.Errorf("durable is %d, want %d", j.Durable(), want)
	}
}

func TestTailLossByHeadFile(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, s, id := recorded(t, o)
	known := m.last() + 17
	writeHead(t, o.FS, encodeHead(head{id, known, s.sum()}))
	checkTailLost(t, o, m, s, 0, known, true)

	// It is told once.
	j := mustOpen(t, o, 0)
	if want := known + uint64(len(s.sources)); j.Durable() != want {
		t.Errorf("durable is %d behind another open, want %d", j.Durable(), want)
	}
	g := j.NewGroup()
	if offset, want := g.Add(&Header{Kind: Connected, Source: 1}, nil), known+uint64(len(s.sources))+1; offset != want {
		t.Errorf("the next offset is %d, want %d", offset, want)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
}

func TestTailLossByIndex(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, s, id := recorded(t, o)
	writeHead(t, o.FS, encodeHead(head{id, m.last() + 2, s.sum()})) // the index knows more: it may be an older head file
	checkTailLost(t, o, m, s, m.last()+9, m.last()+9, false)
}

// TestTailLossByOldCopy: journal/ from a backup under a newer head file.
func TestTailLossByOldCopy(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	m, s, _ := recorded(t, o)
	path := mem.PathJoin(testDir, "journal")
	if ok, err := vfs.Clone(mem, mem, path, "/backup"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	old := &model{recs: append([]rec(nil), m.recs...), positions: map[uint32]Position{}}
	for k, v := range m.positions {
		old.positions[k] = v
	}
	states := &stream{}
	for _, src := range s.sources {
		states.sources = append(states.sources, &streamSource{id: src.id, state: src.state})
	}
	s.rng = rng
	j := mustOpen(t, o, 0)
	m.appendMany(t, j, s, 33, 5)
	known := m.last()
	mustClose(t, j) // the head file tells of known
	if err := mem.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if ok, err := vfs.Clone(mem, mem, "/backup", path); !ok || err != nil {
		t.Fatal(ok, err)
	}
	checkTailLost(t, o, old, states, 0, known, true)
}

// TestHeadFilesThatAreNotUsed: a damaged head file, or that of another journal, tells nothing.
func TestHeadFilesThatAreNotUsed(t *testing.T) {
	o := testOptions(vfs.NewMem())
	m, _, id := recorded(t, o)
	good := encodeHead(head{id, m.last() + 5, 0})
	other := id
	other[3] ^= 1
	cases := map[string][]byte{
		"empty": {}, "another journal's": encodeHead(head{other, m.last() + 5, 0}), "a byte more": append(append([]byte(nil), good...), 0),
		"behind the journal": encodeHead(head{id, m.last() - 5, 0}), "text": []byte("hello"),
	}
	for i := range good {
		flipped := append([]byte(nil), good...)
		flipped[i] ^= 0x10
		cases["flipped "+string(rune('A'+i))] = flipped
		if i%9 == 0 {
			cases["cut "+string(rune('A'+i))] = good[:i]
		}
	}
	for name, content := range cases {
		writeHead(t, o.FS, content)
		j := mustOpen(t, o, 0)
		if j.Durable() != m.last() {
			t.Errorf("%s: durable is %d, want %d", name, j.Durable(), m.last())
		}
		checkAll(t, j, m.recs)
		mustClose(t, j)
		if got := readHead(o.FS, testDir, id).offset; got != m.last() {
			t.Errorf("%s: the head file tells of %d behind Close, want %d", name, got, m.last())
		}
	}
}

// TestHeadFollowsDurable: the head file is written while the journal is open, and never ahead of it.
func TestHeadFollowsDurable(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.HeadEvery = 1
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	for range 5 {
		m.appendMany(t, j, s, 20, 3)
		testkit.Eventually(t, "the head file follows", func() bool {
			head := readHead(o.FS, testDir, j.ID()).offset
			if head > j.Durable() {
				t.Fatalf("head file at %d, durable %d", head, j.Durable())
			}
			return head == m.last()
		})
	}
}

// TestTailLossWithoutSources: where there is nobody to tell, the offsets are not used again, at whatever open; a source that comes is told: it
// may have been there before, and its master may change things without an event.
func TestTailLossWithoutSources(t *testing.T) {
	o := testOptions(vfs.NewMem())
	mustClose(t, mustOpen(t, o, 30))
	j := mustOpen(t, o, 0)
	src, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.EnsureSource("s", []string{"tcp://a"}, nil); err != nil {
		t.Fatal(err)
	}
	g := j.NewGroup()
	if offset := g.Add(&Header{Kind: Connected, Source: src.ID}, nil); offset != 32 {
		t.Errorf("offset %d, want 32", offset)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	j = mustOpen(t, o, 32)
	if j.Durable() != 32 {
		t.Errorf("durable is %d, want 32", j.Durable())
	}
	all := readAll(t, j)
	if len(all) != 2 || all[0].offset != 31 {
		t.Fatalf("%+v", all)
	}
	want := Lost{First: 1, Last: 30, Also: []LostOf{{src.ID, 1}, {src.ID, 2}}}
	if l, err := DecodeLost(31, all[0].frames); err != nil || !reflect.DeepEqual(l, want) {
		t.Errorf("%+v, %v, want %+v", l, err, want)
	}
}

// TestTailLossOfASourceNeverRecorded: its epoch is 1, as everywhere.
func TestTailLossOfASourceNeverRecorded(t *testing.T) {
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	if _, err := j.EnsureSource("s", nil, nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	j = mustOpen(t, o, 4)
	r, err := j.Record(5)
	if err != nil || r.Kind != TailLost || r.Epoch != 1 || r.Gap.Epoch != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
