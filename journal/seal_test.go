package journal

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// sealRows are all rows of the families that sealing touches.
func sealRows(t testing.TB, j *Journal) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, family := range []byte{keyBlock, keyPlace, keySeq, keyTime, keySpan} {
		if err := j.scan(family, func(k, v []byte) error { rows[string(k)] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// TestSealMakesWhatOneGroupWouldHaveMade: the rows of sealed blocks are those of the same records appended at once, so
// no row of a block that is gone stays behind.
func TestSealMakesWhatOneGroupWouldHaveMade(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 5 {
		small := mustOpen(t, testOptions(vfs.NewMem()), 0)
		s, m := newStream(t, rng, small, 3), &model{}
		m.appendMany(t, small, s, 200, 4)
		before := len(blockFirsts(t, small))
		if err := small.Seal(context.Background()); err != nil {
			t.Fatal(err)
		}
		if after := blockFirsts(t, small); len(after) != 1 || before < 40 {
			t.Fatalf("%d blocks became %v, want one", before, after)
		}
		large := mustOpen(t, testOptions(vfs.NewMem()), 0)
		newStream(t, rng, large, 3)
		g := large.NewGroup()
		for i := range m.recs {
			g.Add(&m.recs[i].header, m.recs[i].frames)
		}
		if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, want := sealRows(t, small), sealRows(t, large); !maps.Equal(got, want) {
			for k := range got {
				if want[k] != got[k] {
					t.Errorf("row %q is %x, want %x", k, got[k], want[k])
				}
			}
			for k := range want {
				if _, ok := got[k]; !ok {
					t.Errorf("row %q is missing", k)
				}
			}
		}
		checkAll(t, small, m.recs)
	}
}

// TestSealingBitByBit: passes that go on where the one before stopped make the same blocks as one pass at the end.
func TestSealingBitByBit(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 3 {
		o := testOptions(vfs.NewMem())
		o.BlockRaw = 1500
		often := mustOpen(t, o, 0)
		o.FS = vfs.NewMem()
		once := mustOpen(t, o, 0)
		s, m := newStream(t, rng, often, 2), &model{}
		newStream(t, rng, once, 2)
		for range 120 {
			from := len(m.recs)
			m.appendGroup(t, often, s, []int{1, 2, 60}[rng.IntN(21)/10])
			g := once.NewGroup()
			for i := from; i < len(m.recs); i++ {
				g.Add(&m.recs[i].header, m.recs[i].frames)
			}
			if err := errors.Join(g.Commit(), once.Sync(), often.Sync(), often.seal(context.Background(), false)); err != nil {
				t.Fatal(err)
			}
		}
		for _, j := range []*Journal{often, once} {
			if err := j.Seal(context.Background()); err != nil {
				t.Fatal(err)
			}
			checkAll(t, j, m.recs)
		}
		if !maps.Equal(sealRows(t, often), sealRows(t, once)) {
			t.Errorf("blocks at %v, want %v", blockFirsts(t, often), blockFirsts(t, once))
		}
	}
}

func TestSealKeepsLargeBlocksAndIsIdempotent(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 4000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	s.payload = 200
	for range 5 {
		m.appendMany(t, j, s, 200, 200) // large blocks, and a small one at each group's end
		if err := j.Seal(context.Background()); err != nil {
			t.Fatal(err)
		}
		checkAll(t, j, m.recs)
		rows := sealRows(t, j)
		if err := j.Seal(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(rows, sealRows(t, j)) {
			t.Fatal("sealing what is sealed changes it")
		}
		for _, first := range blockFirsts(t, j) {
			b, err := j.Block(nil, first)
			if err != nil {
				t.Fatal(err)
			}
			if b.RawLen() > o.BlockRaw*5/2 {
				t.Errorf("block %d holds %d bytes", first, b.RawLen())
			}
		}
	}
	mustClose(t, j)
	j = mustOpen(t, o, 0)
	rows := sealRows(t, j)
	if err := j.Seal(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rows, sealRows(t, j)) {
		t.Fatal("sealing behind a reopen changes what is sealed")
	}
}

// TestSealStopsAtHoles: a block never spans offsets that do not exist.
func TestSealStopsAtHoles(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 20, 1)
	end := m.last()
	mustClose(t, j)
	j = mustOpen(t, o, end+5)
	m2 := &model{}
	m2.appendMany(t, j, s, 20, 1)
	if err := j.Seal(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := blockFirsts(t, j), []uint64{1, end + 6}; !slices.Equal(got, want) {
		t.Fatalf("blocks begin at %v, want %v", got, want)
	}
	b, err := j.Block(nil, 1)
	if err != nil || b.Last() != end {
		t.Fatalf("the first block ends at %d, want %d; %v", b.Last(), end, err)
	}
}

// TestSealOfALargeMessageBetweenSmallOnes: each run is bounded, whatever comes.
func TestSealOfALargeMessageBetweenSmallOnes(t *testing.T) {
	rng := testkit.RandomSource(t)
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	for range 4 {
		s.payload = 50
		m.appendMany(t, j, s, 10, 2)
		s.payload = 2 << 20
		m.appendMany(t, j, s, 1, 1)
		s.payload = 90 << 10
		m.appendMany(t, j, s, 6, 1)
	}
	if err := j.Seal(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkAll(t, j, m.recs)
	for _, first := range blockFirsts(t, j) {
		if b, err := j.Block(nil, first); err != nil || b.Len() > 1 && b.RawLen() > maxBlockRaw {
			t.Errorf("block %d of %d records holds %d bytes, %v", first, b.Len(), b.RawLen(), err)
		}
	}
}

// TestReadersWhileSealing: all records can be read, by every way, at each moment of sealing.
func TestReadersWhileSealing(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 1500
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 400, 2)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 3))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := &m.recs[mine.IntN(len(m.recs))]
				got, err := j.Record(r.offset)
				if err != nil || got.Header != r.header {
					t.Errorf("Record(%d): %+v, %v", r.offset, got, err)
					return
				}
				if b, err := j.NextBlock(nil, r.offset-1); err != nil || b.First > r.offset || b.Last() < r.offset {
					t.Errorf("NextBlock(%d): %v", r.offset-1, err)
					return
				}
				want := m.lastBatch(r.header.Source, r.offset)
				if got, err := j.LastBatch(r.header.Source, r.offset); want != nil && (err != nil || got.Offset != want.offset) {
					t.Errorf("LastBatch(%d) is %d, %v, want %d", r.offset, got.Offset, err, want.offset)
					return
				}
				if r.batch() && r.header.HasSeq {
					if got, err := j.BySeq(r.header.Source, r.header.Epoch, r.header.Seq); err != nil || got.Offset != r.offset {
						t.Errorf("BySeq of offset %d is %d, %v", r.offset, got.Offset, err)
						return
					}
				}
				if r.header.HasTime {
					last, next, twice := m.moment(r.header.Source, r.header.Time)
					got, err := j.At(r.header.Source, r.header.Time)
					if err != nil || got.Twice != twice || last != nil && got.Last.Offset != last.offset || next != nil && got.Next.Offset != next.offset {
						t.Errorf("At(%d): %+v, %v", r.header.Time, got, err)
						return
					}
				}
			}
		})
	}
	if err := j.Seal(context.Background()); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
	checkAll(t, j, m.recs)
}

// TestSealerWorksByItself: what is written one by one becomes few blocks without a call.
func TestSealerWorksByItself(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.NoSealer, o.BlockRaw = false, 1000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 300, 1)
	testkit.Eventually(t, "the sealer merges", func() bool { return len(blockFirsts(t, j)) < 60 })
	checkAll(t, j, m.recs)
	mustClose(t, j)
}

// TestSealEndsWithItsContext: a cancelled seal leaves a journal that can be read, and sealed later.
func TestSealEndsWithItsContext(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 1000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	m.appendMany(t, j, s, 200, 2)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(3))*time.Millisecond)
	defer cancel()
	_ = j.Seal(ctx)
	checkAll(t, j, m.recs)
	if err := j.Seal(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkReads(t, j, m, s, rng, 50)
}

// TestFloodOfNothing: messages of empty frames and connection events have no bytes, and still blocks stay small: when they are appended
// at once, and when they are sealed.
func TestFloodOfNothing(t *testing.T) {
	const records = 2*maxBlockRecords + maxBlockRecords/2
	for _, group := range []int{records, 1000, 700} {
		j := mustOpen(t, testOptions(vfs.NewMem()), 0)
		s, err := j.EnsureSource("s", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < records; {
			g := j.NewGroup()
			for range min(group, records-n) {
				h := Header{Kind: Connected, Source: s.ID}
				if n%2 == 0 {
					h.Kind, h.Damage = Message, 1
				}
				g.Add(&h, [][]byte{{}, {}})
				n++
			}
			if err := g.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := j.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		firsts := blockFirsts(t, j)
		for i, first := range firsts {
			next := uint64(records + 1)
			if i+1 < len(firsts) {
				next = firsts[i+1]
			}
			if next-first > maxBlockRecords {
				t.Errorf("groups of %d: the block at offset %d has %d records, at most %d are wanted", group, first, next-first, maxBlockRecords)
			}
		}
		if most := 2*records/maxBlockRecords + 1; len(firsts) > most {
			t.Errorf("groups of %d: %d blocks, want at most %d", group, len(firsts), most)
		}
		mustClose(t, j)
	}
}
