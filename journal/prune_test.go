package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// prune makes a baseline of some rows current.
func prune(t testing.TB, j *Journal, horizon uint64, rows int) Horizon {
	t.Helper()
	w, err := j.NewBaseline(Horizon{Offset: horizon})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Add(fmt.Appendf(nil, "key%08d", i), fmt.Appendf(nil, "%d at %d", i, horizon)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := w.Prune(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	return h
}

func checkBaseline(t testing.TB, j *Journal, horizon uint64, rows int) {
	t.Helper()
	n := 0
	if err := j.EachBaseline(context.Background(), func(key, value []byte) error {
		if string(key) != fmt.Sprintf("key%08d", n) || string(value) != fmt.Sprintf("%d at %d", n, horizon) {
			return fmt.Errorf("row %d is %q: %q", n, key, value)
		}
		n++
		return nil
	}); err != nil || n != rows {
		t.Fatalf("%d rows of %d: %v", n, rows, err)
	}
}

func isPruned(err error) bool {
	var p *PrunedError
	return errors.As(err, &p)
}

// TestPruneReads: behind the horizon each reading is as it was; before it, it is refused.
func TestPruneReads(t *testing.T) {
	rng := testkit.RandomSource(t)
	refused, kept, twice := 0, 0, 0
	for range 3 + questions(10) {
		fs := vfs.NewMem()
		o := testOptions(fs)
		o.BlockRaw = 300 + rng.IntN(3000)
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 3), &model{}
		m.appendMany(t, j, s, 300, 8)
		var lone Lone
		for o := range uint64(300) { // what is kept of them must not be shown when they are pruned
			wantLone(t, "Lone", &lone, j.Lone(&lone, o+1), &m.recs[o])
		}
		type at struct {
			source uint32
			ms     int64
		}
		before := map[at]Moment{}
		for _, src := range s.sources {
			low, high := src.state.Time, src.state.Time // it may end far below where it was
			for i := range m.recs {
				if h := &m.recs[i].header; h.Source == src.id && h.Counts() && h.HasTime {
					low, high = min(low, h.Time), max(high, h.Time)
				}
			}
			for ms := low - 10; ms < high+3; ms += 1 + rng.Int64N(5) {
				a := at{src.id, ms}
				var err error
				if before[a], err = j.At(a.source, a.ms); err != nil {
					t.Fatal(err)
				}
			}
		}
		last := func(source uint32, offset uint64) (want uint64) {
			for i := range m.recs[:offset] {
				if h := &m.recs[i].header; h.Source == source && h.Counts() {
					want = m.recs[i].offset
				}
			}
			return want
		}
		horizon := uint64(0)
		for range 3 {
			if rng.IntN(2) == 0 {
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			horizon += 1 + rng.Uint64N((300-horizon)/2) // something is left to read
			rows := rng.IntN(20_000)
			h := prune(t, j, horizon, rows)
			if rng.IntN(2) == 0 {
				if err := j.Reclaim(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(2) == 0 {
				mustClose(t, j)
				j = mustOpen(t, o, 0)
			}
			if got := j.Horizon(); got.Offset != horizon || got.Generation != h.Generation || got.Rows != uint64(rows) {
				t.Fatalf("the horizon is %+v, want %+v", got, h)
			}
			checkBaseline(t, j, horizon, rows)
			var left []rec
			for _, r := range readAll(t, j) {
				if r.offset > horizon {
					left = append(left, r)
				}
			}
			if err := diffRecords(left, m.recs[horizon:]); err != nil {
				t.Fatal(err)
			}
			for o := uint64(1); o <= 300; o++ {
				r, err := j.Record(o)
				if o < horizon && !isPruned(err) || o >= horizon && (err != nil || r.Header != m.recs[o-1].header) {
					t.Fatalf("horizon %d, record %d: %+v, %v", horizon, o, r, err)
				}
				for _, src := range s.sources {
					r, err := j.LastBatch(src.id, o)
					switch want := last(src.id, o); {
					case o < horizon && !isPruned(err), o >= horizon && want == 0 && !errors.Is(err, ErrNotFound),
						o >= horizon && want != 0 && (err != nil || r.Offset != want || r.Header != m.recs[want-1].header):
						t.Fatalf("horizon %d, source %d, last batch at %d: %+v, %v, want %d", horizon, src.id, o, r, err, want)
					}
				}
				err = j.Lone(&lone, o)
				if o < horizon && !isPruned(err) {
					t.Fatalf("horizon %d, record %d alone: %v", horizon, o, err)
				} else if o >= horizon {
					wantLone(t, "Lone", &lone, err, &m.recs[o-1])
				}
				if h := &m.recs[o-1].header; h.Counts() && h.HasSeq {
					want := &m.recs[o-1]
					if o < horizon {
						want = nil
					}
					r, err := j.BySeq(h.Source, h.Epoch, h.Seq)
					wantRecord(t, "BySeq", r, err, want)
					wantLone(t, "LoneBySeq", &lone, j.LoneBySeq(&lone, h.Source, h.Epoch, h.Seq), want)
				}
			}
			for a, want := range before {
				place := want.Last.Offset
				if want.Next.Offset != 0 && !want.Twice {
					place = want.Next.Offset - 1
				}
				got, err := j.At(a.source, a.ms)
				switch {
				case isPruned(err) && place <= horizon:
					refused++
				case err != nil:
					t.Fatalf("horizon %d, %+v, at %d: %v", horizon, a, place, err)
				case got.Last != want.Last || got.Twice != want.Twice || !got.Twice && got.Next != want.Next:
					t.Fatalf("horizon %d, %+v:\ngot  %+v\nwant %+v", horizon, a, got, want)
				default:
					if kept++; got.Twice {
						twice++
					}
				}
			}
			for _, src := range s.sources {
				p, err := j.Position(src.id)
				if want := m.positions[src.id]; err != nil || p.Last != want.Last || src.last != nil && !sameFrames(p.State.Last(), src.last.frames) {
					t.Fatalf("source %d stands at %d, %v, want %d", src.id, p.Last, err, want.Last)
				}
			}
		}
		// It goes on where it was.
		if err := j.Seal(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.appendMany(t, j, s, 30, 4)
		if m.last() < 330 {
			t.Fatalf("offsets go on to %d", m.last())
		}
		mustClose(t, j)
	}
	if refused == 0 || kept == 0 || questions(100) == 100 && twice == 0 {
		t.Errorf("%d moments were refused, %d kept, %d of them twice passed", refused, kept, twice)
	}
}

// TestPruneLeftovers: a baseline that was given up, or that a crash left, is gone at the next start, and counts for nothing.
func TestPruneLeftovers(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := vfs.NewMem()
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 100, 5)
	prune(t, j, 20, 100)
	begin := func(rows int) *BaselineWriter {
		w, err := j.NewBaseline(Horizon{Offset: 50})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := w.Add(fmt.Appendf(nil, "key%08d", i), make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	blocks := func() (n int) {
		if err := j.scan(keyBaseline, func([]byte, []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	was := blocks()
	w := begin(3000)
	if err := errors.Join(w.finishBlock(), w.finishTable()); err != nil {
		t.Fatal(err)
	}
	if blocks() <= was {
		t.Fatal("nothing of the baseline is in the journal")
	}
	if err := w.Abort(); err != nil || blocks() != was {
		t.Fatalf("%d blocks behind Abort, want %d: %v", blocks(), was, err)
	}
	w = begin(3000)
	if err := errors.Join(w.finishBlock(), w.finishTable()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j) // as a crash would
	j = mustOpen(t, testOptions(fs), 0)
	if blocks() != was || j.Horizon().Offset != 20 {
		t.Fatalf("%d blocks behind a start, want %d; horizon %+v", blocks(), was, j.Horizon())
	}
	checkBaseline(t, j, 20, 100)
	if _, err := j.NewBaseline(Horizon{Offset: 20}); err == nil {
		t.Error("the horizon may stay where it is")
	}
	if _, err := j.NewBaseline(Horizon{Offset: j.Durable() + 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("behind the end: %v", err)
	}
	w = begin(3)
	if err := w.Add([]byte("key00000001"), nil); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("a row out of order: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
}

// TestBaselineDamage: a baseline that is not as it was written is no baseline.
func TestBaselineDamage(t *testing.T) {
	rng := testkit.RandomSource(t)
	for name, damage := range map[string]func(j *Journal, key, value []byte) error{
		"a flipped bit": func(j *Journal, key, value []byte) error {
			value[rng.IntN(len(value))] ^= 1 << rng.IntN(8)
			return j.db.Set(key, value, pebble.Sync)
		},
		"cut off": func(j *Journal, key, value []byte) error {
			return j.db.Set(key, value[:rng.IntN(len(value))], pebble.Sync)
		},
		"gone":         func(j *Journal, key, _ []byte) error { return j.db.Delete(key, pebble.Sync) },
		"of another":   func(j *Journal, key, value []byte) error { return j.db.Set(baselineKey(1, 99), value, pebble.Sync) },
		"row is empty": func(j *Journal, _, _ []byte) error { return j.db.Set(metaBaseline, nil, pebble.Sync) },
	} {
		fs := vfs.NewMem()
		j := mustOpen(t, testOptions(fs), 0)
		s, m := newStream(t, rng, j, 1), &model{}
		m.appendMany(t, j, s, 50, 5)
		prune(t, j, 20, 60_000)
		var keys, values [][]byte
		if err := j.scan(keyBaseline, func(k, v []byte) error {
			keys, values = append(keys, append([]byte(nil), k...)), append(values, append([]byte(nil), v...))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		i := rng.IntN(len(keys))
		if err := damage(j, keys[i], values[i]); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		err := j.EachBaseline(context.Background(), func([]byte, []byte) error { return nil })
		if name == "row is empty" {
			mustClose(t, j)
			_, err = Open(testDir, nil, testOptions(fs))
		}
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
