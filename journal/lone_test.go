package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// wantLone compares a record that was read alone with the model's; nil is ErrNotFound.
func wantLone(t testing.TB, what string, got *Lone, err error, want *rec) {
	t.Helper()
	wantRecord(t, what, got.Record, err, want)
	if want != nil && !sameFrames(got.Frames, want.frames) {
		t.Fatalf("%s: offset %d has frames %q, want %q", what, want.offset, got.Frames, want.frames)
	}
}

// checkOpened wants of the opened blocks that each is found by all that it has, that the list holds each once, and that they fit.
func checkOpened(t testing.TB, o *openedBlocks) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	size, spans := 0, 0
	for i, b := range o.byOffset {
		if i > 0 && b.first <= o.byOffset[i-1].last {
			t.Fatalf("block %d to %d is kept behind one to %d", b.first, b.last, o.byOffset[i-1].last)
		}
		size += b.size
		b.eachSpan(func(k streamKey, s seqSpan) {
			if spans++; !slices.Contains(o.bySeq[k], s) {
				t.Fatalf("block %d is not found by its %d to %d of %v", b.first, s.low, s.high, k)
			}
		})
	}
	for k, of := range o.bySeq {
		if spans -= len(of); len(of) == 0 || !slices.IsSortedFunc(of, func(a, b seqSpan) int { return int(a.low) - int(b.low) }) {
			t.Fatalf("%v has spans %v", k, of)
		}
	}
	listed := 0
	for b := o.newest; b != nil; b = b.older {
		if listed++; b.older == nil && b != o.oldest || b.older != nil && b.older.newer != b {
			t.Fatal("the list is broken")
		}
	}
	if size != o.size || size > max(0, o.room) || spans != 0 || listed != len(o.byOffset) {
		t.Fatalf("%d bytes of %d, told %d; %d spans too few or many; %d of %d blocks are listed", size, o.room, o.size, spans, listed, len(o.byOffset))
	}
}

// TestOpenedBlocks puts made up blocks into little room, and asks for them.
func TestOpenedBlocks(t *testing.T) {
	rng := testkit.RandomSource(t)
	var blocks []*openedBlock
	seqs := map[streamKey]uint64{}
	for first := uint64(1); len(blocks) < 200; {
		b := &openedBlock{first: first, size: 1 + rng.IntN(200)}
		for range 1 + rng.IntN(4) {
			k := streamKey{uint32(rng.IntN(3)), rng.Uint64N(3)}
			n := 1 + uint32(rng.IntN(5))
			seqs[k] += 1 + rng.Uint64N(2)
			b.runs = append(b.runs, seqRun{streamKey: k, seq: seqs[k], record: uint32(first - b.first), more: n - 1})
			seqs[k] += uint64(n) - 1
			first += uint64(n)
		}
		slices.SortFunc(b.runs, func(a, b seqRun) int { return compareRun(&a, b.streamKey, b.seq) })
		b.last = first - 1
		first += rng.Uint64N(2)
		blocks = append(blocks, b)
	}
	o := newOpenedBlocks(2000)
	hot, found := blocks[7], 0
	hot.size = 100
	o.put(hot)
	for range questions(20_000) {
		b := blocks[rng.IntN(len(blocks))]
		r := b.runs[rng.IntN(len(b.runs))]
		seq := r.seq + rng.Uint64N(uint64(r.more)+1)
		place := int(r.record) + int(seq-r.seq)
		at := o.at(b.first + uint64(place))
		got, i := o.withSeq(r.streamKey, seq)
		if at != got || got != nil && (got != b || i != place) {
			t.Fatalf("seq %d of %v: %p, by offset %p, want %p; %d, want %d", seq, r.streamKey, got, at, b, i, place)
		}
		if got == nil {
			o.put(b)
			o.put(b)
		} else {
			found++
		}
		if o.at(hot.first) != hot {
			t.Fatal("what is asked for again and again is gone")
		}
		checkOpened(t, o)
	}
	if found == 0 || len(o.byOffset) < 10 || len(o.byOffset) == len(blocks) {
		t.Errorf("%d found, %d blocks of %d kept: nothing is tested", found, len(o.byOffset), len(blocks))
	}
	o.put(&openedBlock{first: 1 << 40, last: 1 << 40, size: 501})
	if o.at(1<<40) != nil {
		t.Error("a block that takes more than a quarter of the room is kept")
	}
}

// TestOpenedBlocksStay: only blocks that are durable and that the sealer leaves as they are are kept.
func TestOpenedBlocksStay(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := newSyncFS(vfs.NewMem())
	o := testOptions(fs)
	o.BlockRaw = 2000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 300, 3)
	var r Lone
	readAll := func() {
		for i := range m.recs {
			h := &m.recs[i].header
			if h.Counts() && h.HasSeq && m.recs[i].offset <= j.Durable() {
				wantLone(t, "LoneBySeq", &r, j.LoneBySeq(&r, h.Source, h.Epoch, h.Seq), &m.recs[i])
			}
		}
	}
	if readAll(); len(j.opened.byOffset) != 0 {
		t.Fatalf("%d small blocks are kept", len(j.opened.byOffset))
	}
	if err := j.Seal(context.Background()); err != nil {
		t.Fatal(err)
	}
	readAll()
	kept := slices.Clone(j.opened.byOffset)
	if all := len(blockFirsts(t, j)); len(kept) < all-2 || len(kept) < 5 {
		t.Fatalf("%d blocks of %d are kept", len(kept), all)
	}
	durable := j.Durable()
	release := fs.hold(t)
	m.appendGroup(t, j, s, 200)
	within(t, "a sync", func() { <-fs.waiting })
	for i := range m.recs[durable:] {
		if h := &m.recs[int(durable)+i].header; h.Counts() && h.HasSeq {
			if err := j.LoneBySeq(&r, h.Source, h.Epoch, h.Seq); !errors.Is(err, ErrNotFound) {
				t.Fatalf("offset %d with %d durable: %v", r.Offset, durable, err)
			}
		}
	}
	if n := len(j.opened.byOffset); n != len(kept) {
		t.Fatalf("%d blocks that are not durable are kept", n-len(kept))
	}
	release(nil)
	if err := errors.Join(j.Sync(), j.Seal(context.Background())); err != nil {
		t.Fatal(err)
	}
	readAll()
	firsts := blockFirsts(t, j)
	for _, b := range j.opened.byOffset {
		if _, there := slices.BinarySearch(firsts, b.first); !there {
			t.Errorf("block %d is kept, and was merged into another", b.first)
		}
	}
	checkOpened(t, j.opened)
}

// TestLoneBesideAll reads single records while others are appended, sealed and pruned, of caches that are too small.
func TestLoneBesideAll(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.NoSealer, o.BlockRaw, o.MessageCache = false, 2000, 20_000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	const total = 1200
	m.appendMany(t, j, s, 300, 3)
	known := make(chan []rec, 1) // what readers may ask for
	known <- m.recs
	stop := make(chan struct{})
	done := make(chan error, 2)
	for range cap(done) {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		go func() {
			var r Lone
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				recs := <-known
				known <- recs
				want := &recs[mine.IntN(len(recs))]
				before := j.Horizon().Offset
				err := j.Lone(&r, want.offset)
				what := "Lone"
				if h := &want.header; h.Counts() && h.HasSeq && mine.IntN(2) == 0 {
					what, err = "LoneBySeq", j.LoneBySeq(&r, h.Source, h.Epoch, h.Seq)
				}
				switch {
				case err == nil && want.offset < before:
					err = fmt.Errorf("offset %d is shown, the horizon is %d", want.offset, before)
				case err != nil && want.offset < j.Horizon().Offset && (errors.Is(err, ErrNotFound) || isPruned(err)):
					err = nil
				case err == nil && (r.Offset != want.offset || r.Header != want.header || !sameFrames(r.Frames, want.frames)):
					err = fmt.Errorf("offset %d came back changed, as %d", want.offset, r.Offset)
				}
				if err != nil {
					done <- fmt.Errorf("%s: %w", what, err)
					return
				}
			}
		}()
	}
	horizon := uint64(0)
	for len(m.recs) < total {
		m.appendGroup(t, j, s, 1+rng.IntN(8))
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		<-known
		known <- m.recs
		if rng.IntN(20) == 0 {
			horizon += 1 + rng.Uint64N((m.last()-horizon)/4)
			prune(t, j, horizon, 5)
		}
	}
	close(stop)
	for range cap(done) {
		within(t, "a reader", func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	checkOpened(t, j.opened)
}
