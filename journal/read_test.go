package journal

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

func (m *model) record(offset uint64) *rec {
	for i := range m.recs {
		if m.recs[i].offset == offset {
			return &m.recs[i]
		}
	}
	return nil
}

func (m *model) lastBatch(source uint32, offset uint64) *rec {
	for i := len(m.recs) - 1; i >= 0; i-- {
		if r := &m.recs[i]; r.offset <= offset && r.header.Source == source && r.batch() {
			return r
		}
	}
	return nil
}

func (m *model) bySeq(source uint32, epoch, seq uint64) *rec {
	for i := range m.recs {
		r := &m.recs[i]
		if r.batch() && r.header.Source == source && r.header.HasSeq && r.header.Epoch == epoch && r.header.Seq == seq {
			return r
		}
	}
	return nil
}

// wantRecord compares an answer with the model's; nil is ErrNotFound.
func wantRecord(t testing.TB, what string, got Record, err error, want *rec) {
	t.Helper()
	switch {
	case want == nil && !errors.Is(err, ErrNotFound):
		t.Fatalf("%s: got %+v, %v; want ErrNotFound", what, got, err)
	case want == nil:
	case err != nil:
		t.Fatalf("%s: %v, want offset %d", what, err, want.offset)
	case got.Offset != want.offset || got.Header != want.header:
		t.Fatalf("%s: got\n%+v, want offset %d\n%+v", what, got, want.offset, want.header)
	}
}

// checkReads compares every way of reading with the naive list.
func checkReads(t testing.TB, j *Journal, m *model, s *stream, rng *rand.Rand, n int) {
	t.Helper()
	checkAll(t, j, m.recs)
	last := m.last()
	if last == 0 {
		return
	}
	var lone Lone
	for range questions(n) {
		o := rng.Uint64N(last + 3)
		r, err := j.Record(o)
		wantRecord(t, "Record", r, err, m.record(o))
		wantLone(t, "Lone", &lone, j.Lone(&lone, o), m.record(o))
		if b, err := j.Block(nil, o); (err == nil) != (m.record(o) != nil) {
			t.Fatalf("Block(%d): %v", o, err)
		} else if err == nil && (o < b.First || o > b.Last()) {
			t.Fatalf("Block(%d) holds %d to %d", o, b.First, b.Last())
		}

		src := s.sources[rng.IntN(len(s.sources))]
		r, err = j.LastBatch(src.id, o)
		wantRecord(t, "LastBatch", r, err, m.lastBatch(src.id, o))

		epoch, seq := 1+rng.Uint64N(src.state.Epoch+1), rng.Uint64N(100)
		if some := &m.recs[rng.IntN(len(m.recs))]; some.header.HasSeq && rng.IntN(4) > 0 {
			src, epoch, seq = s.byID(some.header.Source), some.header.Epoch, some.header.Seq+uint64(rng.IntN(9)/8)
		}
		r, err = j.BySeq(src.id, epoch, seq)
		wantRecord(t, "BySeq", r, err, m.bySeq(src.id, epoch, seq))
		wantLone(t, "LoneBySeq", &lone, j.LoneBySeq(&lone, src.id, epoch, seq), m.bySeq(src.id, epoch, seq))
	}
	checkOpened(t, j.opened)
	for _, src := range s.sources {
		r, err := j.LastBatch(src.id, math.MaxUint64)
		wantRecord(t, "LastBatch of all", r, err, m.lastBatch(src.id, last))
	}
	r, err := j.LastBatch(4711, last)
	wantRecord(t, "LastBatch of an unknown source", r, err, nil)
	checkMoments(t, j, m, s, rng, n/3)
}

func TestReads(t *testing.T) {
	rng := testkit.RandomSource(t)
	for round := range 2 + questions(6) {
		o := testOptions(vfs.NewMem())
		o.BlockRaw = []int{1, 300, 2000, 20_000, 0}[rng.IntN(5)]
		o.MessageCache = []int{-1, 10_000, 100_000, 0}[rng.IntN(4)]
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 1+rng.IntN(4)), &model{}
		maxGroup := []int{1, 5, 60}[round%3]
		m.appendMany(t, j, s, 150+rng.IntN(300), maxGroup)
		checkReads(t, j, m, s, rng, 150)
		for range 2 {
			if rng.IntN(2) == 0 {
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
				checkReads(t, j, m, s, rng, 150)
			}
			if rng.IntN(2) == 0 {
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, j)
			j = mustOpen(t, o, 0)
			checkReads(t, j, m, s, rng, 150)
			m.appendMany(t, j, s, 1+rng.IntN(100), maxGroup)
			checkReads(t, j, m, s, rng, 150)
		}
		mustClose(t, j)
	}
}

// TestOffsets: 1, 2, 3 … over all sources, across groups and openings.
func TestOffsets(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	m := &model{}
	var s *stream
	for range 3 {
		j := mustOpen(t, o, 0)
		if s == nil {
			s = newStream(t, rng, j, 2)
		}
		m.appendMany(t, j, s, 50, 7)
		mustClose(t, j)
	}
	for i, r := range m.recs {
		if r.offset != uint64(i+1) {
			t.Fatalf("record %d has offset %d", i, r.offset)
		}
	}
}

// TestReadsAcrossHoles: offsets that never existed are not found, and NextBlock goes on behind them.
func TestReadsAcrossHoles(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 500
	m := &model{}
	var s *stream
	known := uint64(0)
	for round := range 4 {
		j := mustOpen(t, o, known)
		if s == nil {
			s = newStream(t, rng, j, 2)
		}
		if round > 0 { // the TailLost records are part of the journal now
			for o := known + 1; o <= known+2; o++ {
				b, err := j.Block(nil, o)
				if err != nil {
					t.Fatal(err)
				}
				frames, err := b.Frames(int(o-b.First), nil, new([8]byte))
				if err != nil {
					t.Fatal(err)
				}
				m.recs = append(m.recs, rec{offset: o, header: *b.Header(int(o - b.First)), frames: [][]byte{append([]byte(nil), frames[0]...)}})
			}
		}
		m.appendMany(t, j, s, 80, 9)
		checkReads(t, j, m, s, rng, 200)
		if err := j.Seal(context.Background()); err != nil {
			t.Fatal(err)
		}
		checkReads(t, j, m, s, rng, 200)
		mustClose(t, j)
		known = m.last() + 1 + rng.Uint64N(1000)
	}
}

// TestReadersBesideWriter: readers see the records as they become durable, whole and in order, while the sealer works.
func TestReadersBesideWriter(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.NoSealer, o.BlockRaw = false, 3000
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	s.steadyClock = true
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	const readers, total = 3, 1500
	got := make([][]rec, readers)
	for i := range readers {
		wg.Go(func() {
			for after := uint64(0); after < total; {
				d, err := j.WaitDurable(ctx, after)
				if err != nil {
					t.Error(err)
					return
				}
				for after < d {
					b, err := j.NextBlock(nil, after)
					if err != nil {
						t.Errorf("NextBlock(%d) with %d durable: %v", after, d, err)
						return
					}
					recs, err := blockRecords(b)
					if err != nil {
						t.Error(err)
						return
					}
					for _, r := range recs {
						if r.offset > after {
							got[i] = append(got[i], r)
						}
					}
					after = b.Last()
				}
			}
		})
	}
	asked := rand.New(rand.NewPCG(rng.Uint64(), 1))
	wg.Go(func() {
		for j.Durable() < total {
			d := j.Durable()
			if d == 0 {
				continue
			}
			offset := 1 + asked.Uint64N(d)
			r, err := j.Record(offset)
			if err != nil || r.Offset != offset {
				t.Errorf("Record(%d): %+v, %v", offset, r, err)
				return
			}
			if r.Kind != Message || r.Duplicate {
				continue
			}
			if b, err := j.LastBatch(r.Source, offset); err != nil || b != r {
				t.Errorf("LastBatch(%d) is %+v, %v", offset, b, err)
				return
			}
			if r.HasSeq {
				if b, err := j.BySeq(r.Source, r.Epoch, r.Seq); err != nil || b != r {
					t.Errorf("BySeq of offset %d is %+v, %v", offset, b, err)
					return
				}
			}
		}
	})
	for len(m.recs) < total {
		m.appendGroup(t, j, s, min(1+rng.IntN(4), total-len(m.recs)))
	}
	within(t, "a reader", wg.Wait)
	for i := range got {
		if err := diffRecords(got[i], m.recs); err != nil {
			t.Errorf("reader %d: %v", i, err)
		}
	}
}
