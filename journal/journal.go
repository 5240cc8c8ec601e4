package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// ID names a journal for ever; the index remembers which journal it was computed from.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Journal is an open journal. One goroutine may append (NewGroup, Commit, EnsureSource); all other methods may be
// called from any number of goroutines at once, and none after Close.
type Journal struct {
	dir   string
	opts  Options
	db    *pebble.DB
	codec *codec
	id    ID
	lock  *datadir.Lock
	guard *datadir.Guard
	hole  error // a *CorruptError where records are missing in the middle, see Sound

	next   uint64 // offset of the next record; the appending goroutine's
	clocks map[uint32]*clock
	totals Totals // of all records below next; the appending goroutine's

	builders []*builder     // to be used again; the appending goroutine's
	packing  sync.WaitGroup // blocks that are being compressed, of a group that was given up, too

	sourcesMu sync.RWMutex
	sources   map[uint32]Source

	pending chan commit // commits whose log is being synced, in order
	slots   chan struct{}
	syncMu  sync.Mutex // held by the one that takes all slots
	failure atomic.Pointer[error]

	durable   atomic.Pointer[acknowledged]
	durableMu sync.Mutex
	moved     chan struct{} // closed and replaced when durable moves

	horizon atomic.Pointer[Horizon]
	flushed atomic.Pointer[written] // when the newest flush that worked began

	opened   *openedBlocks
	headers  *recent[uint64, *headers] // by the offset of the block's first record
	moments  moments
	wentBack atomic.Uint64 // offset of the newest record whose publisher time lies before an older one's, since Open

	headMu sync.Mutex
	head   head  // what the head file says, under headMu
	untold *Torn // the loss that was found at Open, where sources may be lost that nobody told it of; the appending goroutine's

	sealMu     sync.Mutex
	sealedTo   uint64   // every block that begins below is as large as it gets; under sealMu
	unsealed   run      // the small blocks from sealedTo on that were seen before; under sealMu
	merging    *merging // of the merge before; under sealMu
	sealWanted chan struct{}

	stopping   context.Context
	stop       context.CancelFunc
	background sync.WaitGroup // sealer, head file
	syncing    sync.WaitGroup
	closeOnce  sync.Once
	closeErr   error
}

// acknowledged is what is durable, of one moment: the newest offset, and the totals up to it.
type acknowledged struct {
	last   uint64
	totals Totals
}

type commit struct {
	batch *pebble.Batch
	// upTo is what is durable once the batch is.
	upTo acknowledged
	// records of the group, their raw bytes, and when its commit began.
	records, raw int
	began        time.Time
}

// outstanding is how many commits may wait for their sync at once. While one is synced the next group grows: with more,
// groups (and blocks) get smaller under load and nothing gets faster.
const outstanding = 2

// Open opens the journal of dir for writing, making it where the directory is missing or empty. lock is the
// directory's claim, which the journal releases at Close. If Options.Indexed or
// the head file knows of offsets that the journal lacks, its tail was lost, and Open appends a TailLost record for every source before it
// returns.
func Open(dir string, lock *datadir.Lock, o Options) (*Journal, error) {
	o = o.withDefaults()
	if o.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := datadir.Prepare(o.FS, dir); err != nil {
		return nil, err
	}
	s, err := examine(dir, o.FS.PathJoin(dir, folder), o)
	if err == nil {
		err = precheck(dir, s, o)
	}
	if err != nil {
		return nil, err
	}
	j, err := openExamined(dir, s, o)
	if err != nil {
		return nil, err
	}
	j.lock = lock
	if j.hole != nil {
		o.Log.Error("recording goes on, but no question is answered from this journal", "error", j.hole)
	}
	err = j.sweepBaselines()
	if err == nil {
		err = datadir.Raise(o.FS, dir, j.Format())
	}
	if err != nil {
		j.db.Close()
		j.codec.close()
		return nil, err
	}
	j.syncing.Add(1)
	go j.awaitSyncs()
	if err := j.recoverTail(); err != nil {
		j.Close()
		return nil, err
	}
	// From now on a directory without a head file is one that lost it.
	j.head.offset = j.next - 1 // a loss that there was no source to tell of is found again
	if err := j.writeHead(); err != nil {
		j.Close()
		return nil, err
	}
	j.background.Add(1)
	go j.keepHead(j.Durable())
	if !o.NoSealer {
		j.background.Add(1)
		go j.keepSealing()
	}
	return j, nil
}

// OpenReadOnly opens the journal of a directory at rest. The caller holds datadir.Share.
func OpenReadOnly(dir string, o Options) (*Journal, error) {
	o.ReadOnly = true
	o = o.withDefaults()
	if !o.Unfinished {
		if err := datadir.Check(o.FS, dir); err != nil {
			return nil, err
		}
	}
	j, err := open(dir, o)
	if err != nil {
		return nil, err
	}
	if j.hole != nil {
		return nil, errors.Join(j.hole, j.Close())
	}
	if t, torn := j.Torn(nil); torn {
		t.Warn(o.Log)
	}
	return j, nil
}

func open(dir string, o Options) (*Journal, error) {
	s, err := examine(dir, o.FS.PathJoin(dir, folder), o)
	if err != nil {
		return nil, err
	}
	return openExamined(dir, s, o)
}

// openExamined opens the database of dir, whose files s tells of.
func openExamined(dir string, s *survey, o Options) (*Journal, error) {
	path := o.FS.PathJoin(dir, folder)
	guard := o.guard()
	_, err := o.FS.Stat(path)
	missing := errors.Is(err, os.ErrNotExist)
	if _, whole := pebblefile.MarkerValue(s.files, "manifest"); missing || !whole && !o.ReadOnly {
		if o.ReadOnly {
			return nil, fmt.Errorf("%s: %w: nothing was ever recorded", dir, datadir.ErrMissing)
		}
		if err := create(guard, dir, path, o); err != nil {
			return nil, fmt.Errorf("making the journal: %w", err)
		}
	} else if !o.ReadOnly {
		if err := datadir.MakePrivate(o.FS, path); err != nil {
			return nil, fmt.Errorf("keeping the journal from others: %w", err)
		}
	}
	db, err := datadir.OpenPebble(path, o.pebble(guard))
	if err != nil {
		return nil, openError(path, err)
	}
	j := &Journal{
		dir: dir, opts: o, db: db, guard: guard, clocks: map[uint32]*clock{}, sources: map[uint32]Source{},
		pending: make(chan commit, outstanding), slots: make(chan struct{}, outstanding),
		moved: make(chan struct{}), sealWanted: make(chan struct{}, 1),
		opened: newOpenedBlocks(o.MessageCache), headers: newRecent[uint64, *headers](headersCache),
	}
	j.stopping, j.stop = context.WithCancel(context.Background())
	if j.codec, err = newCodec(); err == nil {
		err = s.whole(j, j.load())
	}
	if err == nil {
		err = j.sound(s)
		if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
			j.hole, err = err, nil
		}
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return j, nil
}

// folder is the database's, in the data directory.
const folder = "journal"

func openError(path string, err error) error {
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return fmt.Errorf("%s: %w", path, datadir.ErrMissing)
	}
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("opening %s: %w", path, &CorruptError{What: err.Error()})
	}
	if errors.Is(err, pebble.ErrDBNotPristine) {
		return fmt.Errorf("opening %s: %w", path, &CorruptError{What: "marker.format-version.* is gone"})
	}
	if strings.Contains(err.Error(), "unknown format major version") { // Pebble has no value for it
		return fmt.Errorf("opening %s: %w: %w", path, datadir.ErrNewer, err)
	}
	var system syscall.Errno
	if !errors.As(err, &system) || system == syscall.ENOENT { // a file that the manifest names is gone, or the files contradict each other
		return fmt.Errorf("opening %s: %w", path, &CorruptError{What: err.Error()})
	}
	return fmt.Errorf("opening %s: %w", path, err)
}

// load reads id, sources, clocks and the last offset.
func (j *Journal) load() error {
	id, err := j.get(metaID)
	switch {
	case err == nil && len(id) == len(j.id):
		j.id = ID(id)
	case err == nil:
		return &CorruptError{What: "its id has the wrong length"}
	case !errors.Is(err, ErrNotFound):
		return err
	case !j.empty():
		return &CorruptError{What: "its id is gone, and with it the records that were written first"}
	case j.opts.ReadOnly:
		return fmt.Errorf("%s: %w", j.dir, errNothing)
	default:
		if _, err := rand.Read(j.id[:]); err != nil {
			return err
		}
		if err := j.db.Set(metaID, j.id[:], pebble.Sync); err != nil {
			return err
		}
	}
	if err := j.loadSources(); err != nil {
		return err
	}
	if err := j.loadHorizon(); err != nil {
		return err
	}
	for id := range j.sources {
		c, err := j.loadClock(id)
		if err != nil {
			return err
		}
		j.clocks[id] = c
	}
	if sealed, err := j.get(metaSealed); err == nil && len(sealed) == 8 {
		j.sealedTo = last8(sealed)
	}
	if t, err := j.get(metaTotals); err == nil {
		if j.totals, err = decodeTotals(t); err != nil {
			return err
		}
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	last, err := j.lastOffset()
	if err != nil {
		return err
	}
	j.next = last + 1
	j.durable.Store(&acknowledged{last, j.totals})
	return nil
}

// lastOffset is the offset of the newest record, 0 where there is none.
func (j *Journal) lastOffset() (uint64, error) {
	b, err := j.blockAt(nil, 1<<63)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return b.Last(), nil
}

func (j *Journal) get(key []byte) ([]byte, error) {
	v, closer, err := j.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, readError(0, err)
	}
	defer closer.Close()
	return append([]byte(nil), v...), nil
}

// ID returns the journal's id.
func (j *Journal) ID() ID { return j.id }

// Dir returns the data directory.
func (j *Journal) Dir() string { return j.dir }

// Durable is the newest acknowledged offset: it and all before it survive a crash of the process and of the machine.
func (j *Journal) Durable() uint64 { return j.durable.Load().last }

// WaitDurable returns the durable offset as soon as it is above after.
func (j *Journal) WaitDurable(ctx context.Context, after uint64) (uint64, error) {
	for {
		j.durableMu.Lock()
		moved := j.moved
		j.durableMu.Unlock()
		if d := j.Durable(); d > after {
			return d, nil
		}
		select {
		case <-ctx.Done():
			return j.Durable(), ctx.Err()
		case <-j.stopping.Done():
			if d := j.Durable(); d > after {
				return d, nil
			}
			return j.Durable(), ErrClosed
		case <-moved:
		}
	}
}

// awaitSyncs waits for the commits' syncs, in order, and moves the durable offset.
func (j *Journal) awaitSyncs() {
	defer j.syncing.Done()
	var unseen unseen
	for c := range j.pending {
		err := c.batch.SyncWait()
		if cerr := c.batch.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = fmt.Errorf("syncing the journal: %w", err)
			j.failure.CompareAndSwap(nil, &err)
		}
		if j.failure.Load() == nil {
			j.durable.Store(&c.upTo)
			if j.opts.Committed != nil {
				j.opts.Committed(c.records, time.Since(c.began))
			}
			j.durableMu.Lock()
			close(j.moved)
			j.moved = make(chan struct{})
			j.durableMu.Unlock()
			if unseen.add(c.records, c.raw, j.opts.BlockRaw) {
				select {
				case j.sealWanted <- struct{}{}:
				default:
				}
			}
		}
		<-j.slots
	}
}

// Sync waits until all that was committed is durable.
func (j *Journal) Sync() error {
	j.syncMu.Lock() // two that hold one slot each would wait for ever
	defer j.syncMu.Unlock()
	for range outstanding {
		j.slots <- struct{}{}
	}
	for range outstanding {
		<-j.slots
	}
	return j.failed()
}

func (j *Journal) failed() error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Flush writes everything committed into tables, so that the log of the database is empty. Where nothing comes behind it, Close leaves
// no more of the log than an empty file.
func (j *Journal) Flush() error {
	if j.opts.ReadOnly {
		return ErrReadOnly
	}
	before := j.written()
	if err := j.db.Flush(); err != nil {
		return err
	}
	j.flushed.Store(&before)
	return nil
}

// WaitsForRoom reports whether a write waits because the disk is full.
func (j *Journal) WaitsForRoom() bool { return j.guard.Waits() }

// Close waits for the commits that are under way, stops the background work, and releases the lock.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() {
		if !j.opts.ReadOnly {
			j.closeErr = j.Sync()
		}
		j.stop()
		j.background.Wait()
		close(j.pending)
		j.syncing.Wait()
		idle := !j.opts.ReadOnly && j.closeErr == nil && j.inTables()
		if err := j.db.Close(); j.closeErr == nil {
			j.closeErr = err
		}
		if idle && j.closeErr == nil {
			if err := dropLogs(j.opts.FS, j.opts.FS.PathJoin(j.dir, folder)); err != nil {
				j.opts.Log.Warn("logs that are not needed any more are kept until the next start", "error", err)
			}
		}
		j.packing.Wait()
		j.codec.close()
		j.lock.Release()
	})
	return j.closeErr
}
