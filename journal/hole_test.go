package journal

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestHoleAt: of every offset in a repaired journal, and in one that lost its end, it is known whether it was lost, with which others, and
// what can be read on both sides.
func TestHoleAt(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 300
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 100, 3)
	firsts := blockFirsts(t, j)
	mustClose(t, j)
	i := 3 + rng.IntN(len(firsts)-8)
	withoutBlocks(t, o, firsts[i], firsts[i+1])
	repaired(t, o, 0)
	end := m.last()
	j, err := Open(repairedDir, nil, indexedTo(o, end+5))
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, j)
	inside, behind := Hole{firsts[i], firsts[i+2] - 1}, Hole{end + 1, end + 5}
	there := map[uint64]bool{}
	for _, r := range readAll(t, j) {
		there[r.offset] = true
	}
	for offset := uint64(1); offset <= j.Durable(); offset++ {
		h, ok, err := j.HoleAt(offset)
		want := inside
		if offset > end {
			want = behind
		}
		if err != nil || ok == there[offset] || ok && h != want {
			t.Errorf("at %d: %+v, %v, %v; the record is there: %v", offset, h, ok, err, there[offset])
		}
		before, after := offset, offset
		for before > 0 && !there[before] {
			before--
		}
		for !there[after] {
			after++
		}
		if b, a, err := j.Around(offset); b != before || a != after || err != nil {
			t.Errorf("around %d: %d and %d, %v; want %d and %d", offset, b, a, err, before, after)
		}
	}
	if last, err := j.EndOfLoss(end + 6); last != end+7 || err != nil {
		t.Errorf("the loss of %+v is told up to %d, %v", behind, last, err)
	}
	if b, a, err := j.Around(j.Durable() + 9); b != j.Durable() || a != 0 || err != nil {
		t.Errorf("behind the end: %d and %d, %v", b, a, err)
	}
}

// TestHoleUntold: of a hole of which no record tells nothing is said.
func TestHoleUntold(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 300
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 60, 3)
	firsts := blockFirsts(t, j)
	mustClose(t, j)
	withoutBlocks(t, o, firsts[4])
	j = mustOpen(t, o, 0)
	defer mustClose(t, j)
	if h, ok, err := j.HoleAt(firsts[4]); ok || !errors.As(err, new(*CorruptError)) {
		t.Errorf("%+v, %v, %v", h, ok, err)
	}
}
