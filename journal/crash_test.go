package journal

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// afterCrash opens what a crash left and compares it: everything acknowledged is there, what else is there is what was
// appended next, and nothing was invented.
func afterCrash(t *testing.T, fs vfs.FS, m *model, acknowledged uint64, s *stream, rng *rand.Rand) {
	t.Helper()
	j := mustOpen(t, testOptions(fs), 0)
	defer mustClose(t, j)
	last := j.Durable()
	if last < acknowledged || last > m.last() {
		t.Fatalf("%d is the last offset after the crash, %d was acknowledged, %d appended", last, acknowledged, m.last())
	}
	left := &model{recs: m.recs[:last]} // offsets are 1, 2, 3 …
	checkReads(t, j, left, s, rng, 20)
	var messages uint64
	for i := range left.recs {
		if left.recs[i].header.Kind == Message {
			messages++
		}
	}
	if got := j.Stats().Totals.Messages; got != messages {
		t.Errorf("%d messages counted, %d are there", got, messages)
	}
	for _, src := range s.sources {
		p, err := j.Position(src.id)
		if err != nil {
			t.Fatal(err)
		}
		var newest *rec
		for i := range left.recs {
			if r := &left.recs[i]; r.header.Source == src.id && r.header.Kind == Message {
				newest = r
			}
		}
		if newest != nil && (p.Last != newest.offset || !sameFrames(p.State.Last(), newest.frames)) {
			t.Errorf("source %d stands at %d, its newest message is %d", src.id, p.Last, newest.offset)
		}
	}
	// It goes on.
	g := j.NewGroup()
	if offset := g.Add(&Header{Kind: Connected, Source: 1}, nil); offset != last+1 {
		t.Errorf("the next offset is %d, want %d", offset, last+1)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestCrashes(t *testing.T) {
	rng := testkit.RandomSource(t)
	for round := range 2 + questions(20) {
		fs := faultfs.NewCrashable()
		o := testOptions(fs)
		o.BlockRaw = []int{400, 4000}[rng.IntN(2)]
		o.HeadEvery = time.Millisecond
		o.NoSealer = round%2 == 0
		o.MemTableSize = []uint64{64 << 10, 4 << 20}[rng.IntN(2)] // small: flushes and new logs in between
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 2), &model{}
		s.payload = []int{20, 1500}[rng.IntN(2)]
		for range 4 {
			for range 1 + rng.IntN(30) {
				m.appendGroup(t, j, s, 1+rng.IntN(20))
			}
			if rng.IntN(3) == 0 {
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			// No Sync: commits, a flush, the sealer and the head file are under way.
			percent := []int{0, 0, 30, 70, 100}[rng.IntN(5)]
			acknowledged := j.Durable()
			var left *vfs.MemFS
			within(t, "CrashClone", func() { left = fs.Clone(rng, percent) })
			afterCrash(t, left, m, acknowledged, s, rng)
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, j)
	}
}

// TestCrashOfANewDirectory: the first acknowledged records survive, whatever the crash takes of the directories around
// them; and what a crash leaves of a directory that was being made can be used again.
func TestCrashOfANewDirectory(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := faultfs.NewCrashable()
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 3, 1)
	afterCrash(t, fs.Clone(rng, 0), m, m.last(), s, rng)
}

// TestCrashWhileSealing: the old blocks or the new one, and every record, whichever moment the crash takes.
func TestCrashWhileSealing(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, percent := range []int{0, 50, 100} {
		fs := faultfs.NewCrashable()
		o := testOptions(fs)
		o.BlockRaw = 800
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 2), &model{}
		m.appendMany(t, j, s, 150, 2)
		before := blockFirsts(t, j)
		var clones []*vfs.MemFS
		done := make(chan error, 1)
		go func() { done <- j.Seal(context.Background()) }()
		for sealing := true; sealing; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				sealing = false
			default:
			}
			if len(clones) < 200 {
				clones = append(clones, fs.Clone(rng, percent))
			}
		}
		after := blockFirsts(t, j)
		if len(after) >= len(before) {
			t.Fatalf("%d blocks before, %d behind", len(before), len(after))
		}
		rng.Shuffle(len(clones)-1, func(a, b int) { clones[a], clones[b] = clones[b], clones[a] })
		clones = append(clones[len(clones)-1:], clones...)
		for _, left := range clones[:min(len(clones), 2+questions(50))] {
			o := testOptions(left)
			o.BlockRaw = 800
			c := mustOpen(t, o, 0)
			if n := len(blockFirsts(t, c)); n > len(before) || n < len(after) {
				t.Errorf("%d blocks, %d before sealing, %d behind", n, len(before), len(after))
			}
			checkReads(t, c, m, s, rng, 20)
			if err := c.Seal(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got, want := sealRows(t, c), sealRows(t, j); !maps.Equal(got, want) {
				t.Errorf("sealing again leaves other rows: blocks %v, want %v", blockFirsts(t, c), slices.Clone(after))
			}
			mustClose(t, c)
		}
		mustClose(t, j)
	}
}
