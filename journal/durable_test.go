package journal

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// checkInvisible wants that nothing above durable is shown, in any way of reading.
func checkInvisible(t *testing.T, j *Journal, m *model, s *stream, durable uint64) {
	t.Helper()
	if d := j.Durable(); d != durable {
		t.Fatalf("durable is %d, want %d", d, durable)
	}
	known := model{}
	var messages uint64
	var lone Lone
	for _, r := range m.recs {
		if r.offset <= durable {
			known.recs = append(known.recs, r)
			if r.header.Kind == Message {
				messages++
			}
			continue
		}
		if _, err := j.Block(nil, r.offset); !errors.Is(err, ErrNotFound) {
			t.Errorf("Block(%d) with %d durable: %v", r.offset, durable, err)
		}
		if _, err := j.Record(r.offset); !errors.Is(err, ErrNotFound) {
			t.Errorf("Record(%d) with %d durable: %v", r.offset, durable, err)
		}
		if err := j.Lone(&lone, r.offset); !errors.Is(err, ErrNotFound) {
			t.Errorf("Lone(%d) with %d durable: %v", r.offset, durable, err)
		}
		if r.batch() && r.header.HasSeq {
			if err := j.LoneBySeq(&lone, r.header.Source, r.header.Epoch, r.header.Seq); !errors.Is(err, ErrNotFound) {
				t.Errorf("LoneBySeq finds offset %d with %d durable, %v", lone.Offset, durable, err)
			}
			if got, err := j.BySeq(r.header.Source, r.header.Epoch, r.header.Seq); !errors.Is(err, ErrNotFound) {
				t.Errorf("BySeq finds offset %d with %d durable, %v", got.Offset, durable, err)
			}
		}
	}
	if _, err := j.NextBlock(nil, durable); !errors.Is(err, ErrNotFound) {
		t.Errorf("NextBlock(%d) of what is not durable: %v", durable, err)
	}
	checkAll(t, j, known.recs)
	for _, src := range s.sources {
		for _, offset := range []uint64{m.last(), math.MaxUint64} {
			got, err := j.LastBatch(src.id, offset)
			wantRecord(t, "LastBatch", got, err, known.lastBatch(src.id, offset))
		}
	}
	checkMoments(t, j, &known, s, s.rng, 50)
	if got := j.Stats(); got.Durable != durable || got.Totals.Messages != messages {
		t.Errorf("Stats count %d messages up to %d, want %d up to %d", got.Totals.Messages, got.Durable, messages, durable)
	}
}

func TestNothingIsShownBeforeItsSync(t *testing.T) {
	rng := testkit.RandomSource(t)
	fs := newSyncFS(vfs.NewMem())
	j := mustOpen(t, testOptions(fs), 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 60, 10)
	for range 5 {
		durable := j.Durable()
		release := fs.hold(t)
		ctx, cancel := context.WithCancel(context.Background())
		waited := make(chan error, 1)
		go func() {
			d, err := j.WaitDurable(ctx, durable)
			if err == nil && d <= durable {
				err = errors.New("WaitDurable returns too early")
			}
			waited <- err
		}()
		for range outstanding {
			m.appendGroup(t, j, s, 1+rng.IntN(20))
		}
		within(t, "a sync", func() { <-fs.waiting })
		checkInvisible(t, j, m, s, durable)

		synced := make(chan error, 1)
		go func() { synced <- j.Sync() }()
		select {
		case err := <-synced:
			t.Fatalf("Sync returns %v before the log is synced", err)
		case err := <-waited:
			t.Fatalf("WaitDurable returns %v before the log is synced", err)
		default:
		}
		release(nil)
		within(t, "Sync", func() {
			if err := errors.Join(<-synced, <-waited); err != nil {
				t.Fatal(err)
			}
		})
		cancel()
		if j.Durable() != m.last() {
			t.Fatalf("%d durable behind Sync, want %d", j.Durable(), m.last())
		}
		checkReads(t, j, m, s, rng, 30)
	}
}

// TestHoleIsNoWayAround: a durable offset without a record must not let NextBlock see what is behind it.
func TestHoleIsNoWayAround(t *testing.T) {
	fs := newSyncFS(vfs.NewMem())
	j := mustOpen(t, testOptions(fs), 10) // no source yet, so nobody to tell of the loss
	g := j.NewGroup()
	g.State(1, &Position{})
	if err := errors.Join(g.Commit(), j.Sync()); err != nil {
		t.Fatal(err)
	}
	durable := j.Durable()
	fs.hold(t)
	g = j.NewGroup()
	offset := g.Add(&Header{Kind: Connected, Source: 1}, nil)
	if offset != 11 {
		t.Fatalf("offset %d, want 11", offset)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	for after := range durable + 2 {
		if b, err := j.NextBlock(nil, after); !errors.Is(err, ErrNotFound) {
			t.Errorf("NextBlock(%d) returns block %d with %d durable, %v", after, b.First, durable, err)
		}
	}
}

// TestSyncFromManyGoroutines: Sync may be called from any number of goroutines.
func TestSyncFromManyGoroutines(t *testing.T) {
	rng := testkit.RandomSource(t)
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	s, m := newStream(t, rng, j, 1), &model{}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := j.Sync(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	within(t, "appending beside Sync", func() {
		for range 300 {
			if err := m.tryAppend(j, s, 1); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		wg.Wait()
	})
}

// TestStatsAreOfOneMoment: the totals count exactly what lies at or below the durable offset they stand beside.
func TestStatsAreOfOneMoment(t *testing.T) {
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	src, err := j.EnsureSource("s", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const total = 3000
	for range 2 {
		wg.Go(func() {
			for {
				s := j.Durables()
				if s.Totals.Messages != s.Durable {
					t.Errorf("%d messages up to offset %d, all of them messages", s.Totals.Messages, s.Durable)
					return
				}
				if s.Durable == total {
					return
				}
			}
		})
	}
	for j.next <= total {
		g := j.NewGroup()
		g.Add(&Header{Kind: Message, Source: src.ID}, [][]byte{{1}})
		if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "a reader", wg.Wait)
}

func TestSyncErrorEndsTheJournal(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, seal := range []bool{false, true} {
		mem := vfs.NewMem()
		fs := newSyncFS(mem)
		o := testOptions(fs)
		fatal := make(chan string, 100)
		o.Fatal = func(m string) { fatal <- m } // it returns, so that the journal's own refusal is seen
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 2), &model{}
		m.appendMany(t, j, s, 40, 10)
		durable, totals := j.Durable(), j.Stats().Totals
		broken := errors.New("the disk is broken")
		fs.hold(t)(broken)
		if err := m.tryAppend(j, s, 3); err != nil && !errors.Is(err, broken) {
			t.Fatalf("Commit: %v", err)
		}
		within(t, "Sync", func() {
			if err := j.Sync(); !errors.Is(err, broken) {
				t.Errorf("Sync: %v, want the cause", err)
			}
		})
		if m := <-fatal; !strings.Contains(m, "journal: syncing /data/journal/") || !strings.Contains(m, broken.Error()) {
			t.Errorf("Fatal was told %q", m)
		}
		for range 3 {
			if err := m.tryAppend(j, s, 3); !errors.Is(err, broken) {
				t.Errorf("Commit behind the failure: %v, want the cause", err)
			}
		}
		if j.Durable() != durable || j.Stats().Totals != totals {
			t.Errorf("durable moved from %d to %d behind a failed sync", durable, j.Durable())
		}
		if seal {
			within(t, "Seal", func() {
				if err := j.Seal(context.Background()); !errors.Is(err, broken) {
					t.Errorf("Seal behind the failure: %v, want the cause", err)
				}
			})
		}
		if _, err := j.EnsureSource("new", nil, nil); !errors.Is(err, broken) {
			t.Errorf("EnsureSource behind the failure: %v, want the cause", err)
		}
		checkInvisible(t, j, m, s, durable)
		within(t, "Close", func() {
			if err := j.Close(); !errors.Is(err, broken) {
				t.Errorf("Close: %v, want the cause", err)
			}
		})
	}
}

func TestWaitDurableEnds(t *testing.T) {
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 2)
	go func() { _, err := j.WaitDurable(ctx, 0); errs <- err }()
	cancel()
	within(t, "WaitDurable", func() {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
	go func() { _, err := j.WaitDurable(context.Background(), 0); errs <- err }()
	mustClose(t, j)
	within(t, "WaitDurable", func() {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
