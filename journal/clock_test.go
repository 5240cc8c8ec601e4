package journal

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// moment is R8's definition, read off the list.
func (m *model) moment(source uint32, ms int64) (last, next *rec, twice bool) {
	for i := range m.recs {
		r := &m.recs[i]
		if r.header.Source != source || r.header.Kind != Message {
			continue
		}
		timed := r.header.HasTime
		switch {
		case next == nil && timed && r.header.Time > ms: // the running maximum exceeds ms here first
			next = r
		case next != nil && timed && r.header.Time <= ms:
			twice = true
		}
	}
	for i := range m.recs {
		r := &m.recs[i]
		if r.header.Source != source || !r.batch() {
			continue
		}
		if twice && (!r.header.HasTime || r.header.Time <= ms) || !twice && (next == nil || r.offset < next.offset) {
			last = r
		}
	}
	return last, next, twice
}

func checkMoments(t testing.TB, j *Journal, m *model, s *stream, rng *rand.Rand, n int) {
	t.Helper()
	for _, src := range s.sources {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for i := range m.recs {
			if h := &m.recs[i].header; h.Source == src.id && h.HasTime {
				lo, hi = min(lo, h.Time), max(hi, h.Time)
			}
		}
		times := []int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 0, -1}
		if lo <= hi {
			for range questions(n) {
				times = append(times, lo-2+rng.Int64N(hi-lo+5))
			}
		}
		for _, ms := range times {
			got, err := j.At(src.id, ms)
			if err != nil {
				t.Fatal(err)
			}
			last, next, twice := m.moment(src.id, ms)
			same := func(what string, got Record, want *rec) {
				var err error
				if got.Offset == 0 {
					err = ErrNotFound
				}
				if want == nil && got.Offset != 0 || want != nil && got.Offset != want.offset {
					t.Errorf("At(%d, %d) of durable %d: %s is offset %d, want %+v", src.id, ms, j.Durable(), what, got.Offset, want)
				}
				wantRecord(t, what, got, err, want)
			}
			same("Next", got.Next, next)
			if got.Twice != twice {
				t.Fatalf("At(%d, %d): twice is %v, want %v", src.id, ms, got.Twice, twice)
			}
			same("Last", got.Last, last)
		}
	}
	if got, err := j.At(4711, 5); err != nil || got != (Moment{}) {
		t.Fatalf("At of an unknown source: %+v, %v", got, err)
	}
}

func TestMoments(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 2 + questions(8) {
		o := testOptions(vfs.NewMem())
		o.BlockRaw = []int{1, 500, 5000}[rng.IntN(3)]
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 1+rng.IntN(2)), &model{}
		s.payload = 10
		for range 4 {
			m.appendMany(t, j, s, 40+rng.IntN(60), 1+rng.IntN(20))
			checkMoments(t, j, m, s, rng, 300)
			if rng.IntN(2) == 0 {
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
				checkMoments(t, j, m, s, rng, 300)
			}
			if rng.IntN(2) == 0 {
				mustClose(t, j)
				j = mustOpen(t, o, 0)
				checkMoments(t, j, m, s, rng, 300)
			}
		}
		mustClose(t, j)
	}
}

// TestMomentsOfExtremeTimes: times at the ends of int64, which a publisher may send.
func TestMomentsOfExtremeTimes(t *testing.T) {
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	src, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{}
	for i, ms := range []int64{math.MinInt64, -5, math.MinInt64, math.MinInt64 + 1, 3, math.MaxInt64, 7, math.MaxInt64} {
		g := j.NewGroup()
		r := rec{header: Header{Kind: Message, Source: src.ID, HasSeq: true, Seq: uint64(i + 1)}, frames: [][]byte{{}, {0, 0, 0, 0, 0, 0, 0, byte(i + 1)}, {1}}}
		r.header.Epoch, r.header.HasTime, r.header.Time = 1, true, ms
		r.offset = g.Add(&r.header, r.frames)
		m.recs = append(m.recs, r)
		if err := errors.Join(g.Commit(), j.Sync()); err != nil {
			t.Fatal(err)
		}
		for _, T := range []int64{math.MinInt64, math.MinInt64 + 1, -6, -5, -4, 2, 3, 4, 6, 7, 8, math.MaxInt64 - 1, math.MaxInt64} {
			got, err := j.At(src.ID, T)
			if err != nil {
				t.Fatal(err)
			}
			last, next, twice := m.moment(src.ID, T)
			offset := func(r *rec) uint64 {
				if r == nil {
					return 0
				}
				return r.offset
			}
			if got.Last.Offset != offset(last) || got.Next.Offset != offset(next) || got.Twice != twice {
				t.Errorf("behind time %d, At(%d): last %d next %d twice %v, want %d, %d, %v", ms, T,
					got.Last.Offset, got.Next.Offset, got.Twice, offset(last), offset(next), twice)
			}
		}
	}
}

// TestMomentsAreKept: while a stream goes on, and its clock goes back, what is kept of a moment is what would be found anew.
func TestMomentsAreKept(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 2000
	j := mustOpen(t, o, 0)
	defer mustClose(t, j)
	s, m := newStream(t, rng, j, 2), &model{}
	s.payload = 10
	type standing struct {
		source uint32
		ms     int64
		moment Moment
		Standing
	}
	var standings []standing
	kept, stood, fell := 0, 0, 0
	for range 100 + questions(100) {
		if rng.IntN(2) == 0 {
			m.appendMany(t, j, s, 1+rng.IntN(20), 1+rng.IntN(5))
		} else { // mostly without going back
			m.appendMany(t, j, s, 1, 1)
		}
		standings = slices.DeleteFunc(standings, func(x standing) bool {
			if !j.Stands(x.Standing) {
				fell++
				return true
			}
			stood++
			if now, _, err := j.at(x.source, x.ms); now != x.moment || err != nil {
				t.Fatalf("At(%d, %d) of durable %d stands:\nthen %+v\nanew %+v, %v", x.source, x.ms, j.Durable(), x.moment, now, err)
			}
			return false
		})
		if rng.IntN(10) == 0 {
			if err := j.Seal(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for range 40 {
			r := &m.recs[rng.IntN(len(m.recs))].header
			ms := r.Time - 1 + rng.Int64N(3)
			if _, _, ok := j.moments.at(r.Source, ms, j.horizon.Load(), j.wentBack.Load()); ok {
				kept++
			}
			got, stands, err := j.AtStanding(r.Source, ms)
			if j.Stands(stands) && len(standings) < 200 {
				standings = append(standings, standing{r.Source, ms, got, stands})
			}
			want, _, wantErr := j.at(r.Source, ms)
			if got != want || err != nil || wantErr != nil {
				t.Fatalf("At(%d, %d) of durable %d:\nkept %+v, %v\nanew %+v, %v", r.Source, ms, j.Durable(), got, err, want, wantErr)
			}
		}
	}
	if kept == 0 || stood == 0 || fell == 0 {
		t.Fatalf("%d moments were kept, %d found to stand, %d no more", kept, stood, fell)
	}
}

// TestClockStaysBehind: a clock that was set back is behind for as many messages as it takes; the database is not asked for each.
func TestClockStaysBehind(t *testing.T) {
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	defer mustClose(t, j)
	for _, older := range []bool{false, true} {
		asked := 0
		c := clock{has: true, highest: 10_000}
		for i := range int64(1000) {
			c.see(5000+i, uint64(i), func(below int64) (span, bool) {
				asked++
				return span{lo: 10, hi: 20, last: 1}, older && below > 10
			})
			if i%10 != 0 {
				continue
			}
			b := j.db.NewBatch()
			if err := errors.Join(c.write(b, 1), b.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if asked > 1 {
			t.Errorf("older spans: %v: asked %d times", older, asked)
		}
		if newest := c.spans[len(c.spans)-1]; newest != (span{lo: 5000, hi: 10_000, last: 999}) {
			t.Errorf("older spans: %v: %+v", older, newest)
		}
	}
}
