package storm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

const (
	dir    = "/data"
	source = "storm"
)

// points is how many moments or operations a test tries.
func points(t *testing.T, usual int) int {
	text := os.Getenv("KVJOURNAL_POINTS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KVJOURNAL_POINTS=%q: want a number from 1 on", text)
	}
	return n
}

// firstSeed says which seed a test begins with; KVJOURNAL_SEED sets it.
func firstSeed(t *testing.T) uint64 {
	seed := rand.Uint64() >> 1
	if s := os.Getenv("KVJOURNAL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("KVJOURNAL_SEED: %v", err)
		}
	}
	t.Logf("KVJOURNAL_SEED=%d", seed)
	return seed
}

// taken is a record of the run, at the offset behind the one before it, and what the oracle must be told of it.
type taken struct {
	rec  capture.Record
	flag bool            // it flags the epoch
	read *oracle.Reading // it ends this reading
}

// run is one life of a data directory.
type run struct {
	seed   uint64
	rng    *rand.Rand
	fs     vfs.FS
	fatal  datadir.FatalFunc
	stream *oracle.Stream
	oracle *oracle.Oracle // of all that was taken
	next   int            // of the stream's records

	j    *journal.Journal
	x    *index.Index
	feed *recorder.Feed
	open *oracle.Reading // that was begun

	backups int // taken, or tried to

	// mayWithhold: an answer may be uncertain where the oracle is sure, which is counted in withheld.
	mayWithhold bool
	withheld    int

	mu      sync.Mutex
	taken   []taken
	durable func() uint64 // of the journal that is open, nil: none
	acked   uint64        // while none is
}

// newRun prepares a run. Two of the same seed do the same, as far as the storage lets them.
func newRun(seed uint64, fs vfs.FS, fatal datadir.FatalFunc) *run {
	return &run{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 23)), fs: fs, fatal: fatal,
		stream: oracle.Generate(seed, oracle.Options{Steps: 150}), oracle: oracle.New(),
	}
}

func (r *run) journalOptions(fs vfs.FS) journal.Options {
	return journal.Options{
		FS: fs, Fatal: r.fatal, CacheSize: 1 << 20, MemTableSize: 64 << 10, BlockRaw: 1 << (9 + r.seed%4), HeadEvery: time.Millisecond,
		NoSealer: r.seed%2 == 0,
	}
}

func (r *run) indexOptions(fs vfs.FS) index.Options {
	return index.Options{FS: fs, Fatal: r.fatal, CacheSize: 1 << 20, MemTableSize: 64 << 10, FlushEvents: 20 + int(r.seed%100), CheckpointEvents: 10 + r.seed%50}
}

// start opens journal and index, as a process that starts.
func (r *run) start() error {
	jo := r.journalOptions(r.fs)
	jo.Indexed = index.KnownTo(dir, r.indexOptions(r.fs))
	j, err := journal.Open(dir, nil, jo)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	r.j = j
	r.mu.Lock()
	r.durable = j.Durable
	r.mu.Unlock()
	s, err := j.EnsureSource(source, nil, nil)
	if err != nil {
		return err
	}
	if r.feed, err = recorder.NewFeed(j, s.ID); err != nil {
		return err
	}
	if r.x, err = openIndex(j, r.indexOptions(r.fs)); err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	return nil
}

// openIndex opens the index as a recorder does.
func openIndex(j *journal.Journal, o index.Options) (*index.Index, error) {
	x, err := index.Open(j, true, o)
	if !errors.Is(err, index.ErrRebuild) {
		return x, err
	}
	if err := index.Remove(j.Dir(), o); err != nil {
		return nil, err
	}
	return index.Open(j, true, o)
}

// stop closes both, as a process that ends in good order.
func (r *run) stop() error {
	var err error
	if r.x != nil {
		err = r.x.Close()
	}
	if r.j != nil {
		err = errors.Join(err, r.j.Close())
		r.mu.Lock()
		r.acked, r.durable = r.j.Durable(), nil
		r.mu.Unlock()
	}
	r.x, r.j = nil, nil
	return err
}

// take follows a record that got an offset.
func (r *run) take(offset uint64, one taken) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if offset != uint64(len(r.taken)+1) {
		return fmt.Errorf("WRONG: record %d got offset %d", len(r.taken)+1, offset)
	}
	r.taken = append(r.taken, one)
	one.tell(r.oracle)
	return nil
}

func (one *taken) tell(o *oracle.Oracle) {
	o.Apply(one.rec)
	if one.flag {
		o.Flag()
	}
	if one.read != nil {
		o.Read(one.read)
	}
}

// standing is what was acknowledged and what was taken, of one moment.
func (r *run) standing() (acked uint64, all []taken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	acked = r.acked
	if r.durable != nil {
		acked = max(acked, r.durable())
	}
	return acked, r.taken
}

// life runs all steps. An error is what a process would end with.
func (r *run) life() (err error) {
	if err := r.start(); err != nil {
		return errors.Join(err, r.stop())
	}
	for r.next < len(r.stream.Records) {
		s := &steps[r.rng.IntN(len(steps))]
		if r.rng.IntN(100) >= s.percent {
			continue
		}
		if err := s.do(r); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), r.stop())
		}
	}
	if err := errors.Join(r.j.Sync(), r.x.CatchUp(ctx, nil)); err != nil {
		return errors.Join(fmt.Errorf("bringing the index up: %w", err), r.stop())
	}
	return r.stop()
}
