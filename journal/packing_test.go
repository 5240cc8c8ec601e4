package journal

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestGroupOfManyBlocks: blocks that are compressed beside the appending goroutine hold what was added, in order, and what they were built
// in is kept for the next ones, but for what a giant message made large.
func TestGroupOfManyBlocks(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 1500
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 3), &model{}
	for range 5 {
		from := len(blockFirsts(t, j))
		s.payload = 300
		m.appendGroup(t, j, s, 40*packers)
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if n := len(blockFirsts(t, j)) - from; n <= 2*packers {
			t.Fatalf("%d blocks in a group: nothing is tested", n)
		}
		if len(j.builders) == 0 {
			t.Fatal("no builder is used again")
		}
		s.payload = maxBlockRaw
		m.appendGroup(t, j, s, 3)
		for _, b := range j.builders {
			if len(j.builders) > packers+1 || b.raw > maxBlockRaw || cap(b.stored) > 2*maxBlockRaw {
				t.Fatalf("%d builders are kept, one of %d bytes", len(j.builders), b.raw)
			}
		}
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	checkAll(t, j, m.recs)
}

// TestBlocksOfAGroupAreLoggedInOrder: by the first block in it a log says where it begins.
func TestBlocksOfAGroupAreLoggedInOrder(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 1500
	j := mustOpen(t, o, 0)
	s, m := newStream(t, testkit.RandomSource(t), j, 2), &model{}
	s.payload = 300
	m.appendGroup(t, j, s, 100)
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := len(blockFirsts(t, j)); n <= packers+1 {
		t.Fatalf("%d blocks in a group: nothing is tested", n)
	}
	survey, err := examine(testDir, o.FS.PathJoin(testDir, folder), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(survey.begins, []uint64{1}) {
		t.Errorf("the log begins at offset %d, as it says, not at 1", survey.begins)
	}
}

// TestGroupGivenUp: a group that is never committed leaves nothing that runs behind Close, and no record.
func TestGroupGivenUp(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 1000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, testkit.RandomSource(t), j, 2), &model{}
	m.appendGroup(t, j, s, 10)
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	g := j.NewGroup()
	for range 200 {
		r := s.next()
		g.Add(&r.header, r.frames)
	}
	mustClose(t, j)
	for _, p := range g.packing {
		select {
		case <-p.done:
		default:
			t.Error("a block is still being compressed behind Close")
		}
	}
	checkAll(t, mustOpen(t, o, 0), m.recs)
}

// TestFailedGroupOfManyBlocks: when a commit fails, those behind it do too, and nothing of them is there.
func TestFailedGroupOfManyBlocks(t *testing.T) {
	fs := newSyncFS(vfs.NewMem())
	o := testOptions(fs)
	o.BlockRaw = 1000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, testkit.RandomSource(t), j, 2), &model{}
	m.appendMany(t, j, s, 50, 20)
	failure := errors.New("a group that cannot be committed")
	for i := range 3 {
		g := j.NewGroup()
		for range 100 {
			r := s.next()
			g.Add(&r.header, r.frames)
		}
		if i == 0 {
			g.note(failure)
		}
		if err := g.Commit(); !errors.Is(err, failure) {
			t.Fatalf("commit %d: %v, want the first one's failure", i, err)
		}
	}
	if err := j.Sync(); !errors.Is(err, failure) {
		t.Errorf("Sync: %v", err)
	}
	checkAll(t, j, m.recs)
}
