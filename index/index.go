package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

const (
	// formatVersion is that of the rows. An index of an older version is rebuilt, never converted; one of a newer version is refused.
	formatVersion = 4

	folder    = "index"
	newFolder = "index.new"
)

// ErrRebuild is returned by Open for an index that cannot be used (missing, damaged, of an older format, of another
// journal, or ahead of the journal): it must be rebuilt. The error around it says why.
var ErrRebuild = errors.New("the index must be rebuilt")

// ErrClosed: the index was closed.
var ErrClosed = errors.New("the index is closed")

// Index is an open index. One goroutine may write (CatchUp, Follow, Rebuild); any number may read through View.
type Index struct {
	dir  string
	j    *journal.Journal
	opts Options

	writing sync.Mutex                                       // held by whoever applies records
	wanted  atomic.Int32                                     // who waits for writing before the index has caught up (take)
	anew    func(rows, events, gone, free, size uint64) bool // how Prune trims; tests set it
	pruning sync.Mutex                                       // held by Prune, Trim and Rebuild; taken before writing

	mu      sync.RWMutex // held for reading by every View; for writing while the database is exchanged
	db      *pebble.DB
	gone    error // not nil: db is closed, and this is why
	applied atomic.Uint64
	scans   atomic.Int64 // views that are open for long

	generation atomic.Uint64 // how often the database was exchanged

	fresh fresh // the newest state, for views; every write to db lies between its begin and end
	hot   *hot  // nil: nothing is kept of objects

	a         *applier            // under writing
	free      chan *journal.Block // blocks to read into, under writing
	unflushed int
	flushedAt time.Time
}

// KnownTo returns the offset up to which the index in dir was applied, 0 where it is missing or cannot be read.
func KnownTo(dir string, o Options) uint64 {
	o = o.withDefaults()
	db, err := datadir.OpenPebble(o.FS.PathJoin(dir, folder), o.pebble(o.FS, true))
	if err != nil {
		return 0
	}
	defer db.Close()
	applied, _ := readApplied(db)
	return applied
}

// Current reports whether the index in the journal's directory is of this format and has all of the journal, so that Open has
// nothing to do.
func Current(j *journal.Journal, o Options) bool {
	o = o.withDefaults()
	db, err := datadir.OpenPebble(o.FS.PathJoin(j.Dir(), folder), o.pebble(o.FS, true))
	if err != nil {
		return false
	}
	defer db.Close()
	applied, err := readApplied(db)
	id, iderr := get(db, []byte{keyJournal})
	return err == nil && iderr == nil && applied == j.Durable() && string(id) == string(identity(j))
}

// identity is what an index says of itself: the format of its rows, and its journal.
func identity(j *journal.Journal) []byte {
	return append(binary.BigEndian.AppendUint32(nil, formatVersion), idBytes(j)...)
}

// Open opens the index of the journal's directory. With create, a missing one is made, empty. The caller holds the
// directory's claim, or its access lock alone, or gives an Options.FS that keeps writes to itself.
func Open(j *journal.Journal, create bool, o Options) (*Index, error) {
	o = o.withDefaults()
	if err := j.Sound(); err != nil {
		return nil, err
	}
	path := o.FS.PathJoin(j.Dir(), folder)
	if _, err := o.FS.Stat(path); err != nil && !create {
		return nil, fmt.Errorf("there is none: %w", ErrRebuild)
	}
	x := &Index{dir: j.Dir(), j: j, opts: o, flushedAt: time.Now(), anew: anew}
	if o.ObjectCache > 0 {
		x.hot = newHot(&x.fresh, o.ObjectCache)
	}
	db, a, err := openDB(context.Background(), path, j, o)
	if err != nil {
		return nil, err
	}
	x.use(db, a)
	return x, nil
}

func (x *Index) use(db *pebble.DB, a *applier) {
	x.db = db
	x.applyWith(a)
	x.fresh.tell(sourcesAt{})
	if x.hot != nil {
		x.hot.reset()
	}
	applied, _ := readApplied(db)
	x.applied.Store(applied)
	x.unflushed = 0
}

// applyWith has records be applied by a.
func (x *Index) applyWith(a *applier) {
	x.a = a
	a.fresh, a.rows.touched.hot = &x.fresh, x.hot
}

// openDB opens the database at path and checks that it fits the journal.
func openDB(ctx context.Context, path string, j *journal.Journal, o Options) (*pebble.DB, *applier, error) {
	if err := datadir.MakePrivate(o.FS, path); err != nil {
		return nil, nil, fmt.Errorf("making the index: %w: %w", err, ErrRebuild) // a file lies in its place
	}
	db, err := openPebble(path, o)
	if datadir.Passes(err) { // nothing is wrong with the index
		return nil, nil, fmt.Errorf("opening %s: %w", path, err)
	}
	if err != nil {
		if what := newerDatabase(err.Error()); what != "" {
			return nil, nil, newerIndex(path, what)
		}
		return nil, nil, fmt.Errorf("opening %s: %w: %w", path, err, ErrRebuild)
	}
	a, err := check(ctx, db, path, j, o)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, a, nil
}

// check compares the index with the journal; a fresh database is given the journal's baseline and id.
func check(ctx context.Context, db *pebble.DB, path string, j *journal.Journal, o Options) (*applier, error) {
	want := identity(j)
	got, err := get(db, []byte{keyJournal})
	if errors.Is(err, pebble.ErrNotFound) {
		if err := begin(ctx, db, path, j, o); err != nil {
			return nil, err
		}
		if err := db.Set([]byte{keyJournal}, want, pebble.NoSync); err != nil {
			return nil, err
		}
		return newApplier(db, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if err := newerRows(folder, got); err != nil {
		return nil, err
	}
	if string(got) != string(want) {
		if len(got) == len(want) && string(got[:4]) == string(want[:4]) {
			return nil, fmt.Errorf("it belongs to another journal: %w", ErrRebuild)
		}
		return nil, fmt.Errorf("it has another format: %w", ErrRebuild)
	}
	applied, err := readApplied(db)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if h := j.Horizon(); applied < h.Offset {
		return nil, fmt.Errorf("it ends at offset %d, and the journal begins at %d since it was pruned: %w", applied, h.Offset, ErrRebuild)
	}
	if applied > 0 {
		if _, err := j.Record(applied); errors.Is(err, datadir.ErrNewer) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("it knows offset %d, which the journal has not (%v): %w", applied, err, ErrRebuild)
		}
	}
	a, err := newApplier(db, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if h := j.Horizon(); a.horizon > h.Offset {
		return nil, fmt.Errorf("it begins at offset %d, and the journal at %d: %w", a.horizon, h.Offset, ErrRebuild)
	}
	return a, nil
}

func idBytes(j *journal.Journal) []byte {
	id := j.ID()
	return id[:]
}

func get(db pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := db.Get(key)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte(nil), v...), nil
}

func readApplied(db pebble.Reader) (uint64, error) {
	v, err := get(db, []byte{keyApplied})
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, errEvidence
	}
	return binary.BigEndian.Uint64(v), nil
}

func readSources(db pebble.Reader) (map[uint32]*SourceState, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyState}, UpperBound: []byte{keyState + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	out := map[uint32]*SourceState{}
	for ok := it.First(); ok; ok = it.Next() {
		s := &SourceState{}
		if len(it.Key()) != 5 || json.Unmarshal(it.Value(), s) != nil {
			return nil, errEvidence
		}
		out[binary.BigEndian.Uint32(it.Key()[1:])] = s
	}
	return out, it.Error()
}

// Generation counts how often the index was exchanged for one computed anew.
func (x *Index) Generation() uint64 { return x.generation.Load() }

// Applied is the offset up to which the journal is in the index.
func (x *Index) Applied() uint64 { return x.applied.Load() }

// CatchUp applies the journal up to its durable offset, or until ctx ends. progress, if not nil, is told the offset
// after each write.
func (x *Index) CatchUp(ctx context.Context, progress func(applied uint64)) error {
	to := x.j.Durable()
	for {
		x.writing.Lock()
		more, err := x.catchUp(ctx, to, progress)
		x.writing.Unlock()
		if err != nil || !more {
			return err
		}
	}
}

// take locks writing before the index has caught up, however far it is behind.
func (x *Index) take() {
	x.wanted.Add(1)
	defer x.wanted.Add(-1)
	x.writing.Lock()
}

// catchUp applies the journal up to an offset; more tells that somebody wanted to write before it was there. After an error nothing of what was
// not committed is remembered, so that it can be asked for again.
func (x *Index) catchUp(ctx context.Context, to uint64, progress func(applied uint64)) (more bool, err error) {
	if x.gone != nil {
		return false, x.gone
	}
	if more, err = x.applyTo(ctx, to, progress); err != nil {
		a, rerr := newApplier(x.db, x.opts)
		if rerr != nil {
			return false, errors.Join(err, rerr)
		}
		x.a.batch.Close()
		x.applyWith(a)
	}
	return more, err
}

func (x *Index) applyTo(ctx context.Context, to uint64, progress func(applied uint64)) (more bool, err error) {
	at := x.applied.Load()
	fetching, stop := context.WithCancel(ctx)
	blocks := x.fetch(fetching, at, to)
	defer func() {
		stop()
		for range blocks { // the journal may be closed once this returns
		}
	}()
	write := func(upTo uint64) (more bool, err error) {
		if err := x.commit(upTo); err != nil {
			return false, err
		}
		if progress != nil {
			progress(upTo)
		}
		return upTo < to && x.wanted.Load() > 0, nil
	}
	for f := range blocks {
		if f.err != nil {
			return false, f.err
		}
		if h := x.j.Horizon(); at < h.Offset {
			return false, fmt.Errorf("the journal was pruned up to offset %d, and the index is at %d: %w", h.Offset, at, ErrRebuild)
		}
		if x.opts.Pause != nil {
			x.opts.Pause(ctx)
		}
		for i := range f.b.Len() {
			o := f.b.First + uint64(i)
			if o <= at || o > to {
				continue
			}
			if err := x.a.record(f.b, i); err != nil {
				return false, err
			}
			if x.a.full() && i+1 < f.b.Len() {
				if more, err := write(o); more || err != nil {
					return more, err
				}
			}
		}
		at = min(f.b.Last(), to)
		x.free <- f.b
		if x.a.full() || at >= to {
			if more, err := write(at); more || err != nil {
				return more, err
			}
		}
	}
	if at > x.applied.Load() {
		if err := x.commit(at); err != nil {
			return false, err
		}
	}
	return false, ctx.Err()
}

// fetched is a block, unpacked, or why there is none.
type fetched struct {
	b   *journal.Block
	err error
}

// prefetch is how many blocks are held at once: one being applied, the others read and unpacked meanwhile.
const prefetch = 3

// fetch reads the blocks behind at, up to the one that holds to, ahead of the one being applied. A block goes back to
// x.free when it is done with. The channel is closed at the end, or when ctx ends.
func (x *Index) fetch(ctx context.Context, at, to uint64) <-chan fetched {
	x.free = make(chan *journal.Block, prefetch)
	for range prefetch {
		x.free <- nil
	}
	out := make(chan fetched, prefetch)
	free := x.free
	go func() {
		defer close(out)
		for at < to {
			var b *journal.Block
			select {
			case b = <-free:
			case <-ctx.Done():
				return
			}
			b, err := x.j.NextBlock(b, at)
			if errors.Is(err, journal.ErrNotFound) {
				return
			}
			if err == nil {
				err = b.Load()
			}
			out <- fetched{b, err} // there is room: no more than prefetch are under way
			if err != nil {
				return
			}
			at = b.Last()
		}
	}()
	return out
}

func (x *Index) commit(offset uint64) error {
	x.unflushed += x.a.events
	if err := x.a.commit(offset); err != nil {
		return err
	}
	x.applied.Store(offset)
	if x.a.bulk != nil {
		return nil // what is not whole is not kept
	}
	due := x.opts.FlushEvents
	if offset < x.j.Durable() {
		// Behind the journal, what a crash would repeat is little beside what is still to do, and larger tables cost less.
		due *= 4
	}
	if x.unflushed >= due {
		return x.startFlush()
	}
	return nil
}

func (x *Index) startFlush() error {
	x.unflushed, x.flushedAt = 0, time.Now()
	_, err := x.db.AsyncFlush()
	return err
}

// Follow keeps the index behind the journal until ctx ends. It returns ctx's error, or what went wrong.
func (x *Index) Follow(ctx context.Context) error {
	for {
		wait, cancel := context.WithTimeout(ctx, x.opts.FlushEvery)
		_, err := x.j.WaitDurable(wait, x.Applied())
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := x.CatchUp(ctx, nil); err != nil {
			return err
		}
		if err := x.flushIfDue(); err != nil {
			return err
		}
	}
}

func (x *Index) flushIfDue() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.gone != nil {
		return nil
	}
	if err := x.fresh.drop(); err != nil { // where nothing is applied it would hold tables that are compacted away
		return err
	}
	if x.unflushed == 0 || time.Since(x.flushedAt) < x.opts.FlushEvery {
		return nil
	}
	return x.startFlush()
}

// Flush writes everything applied into tables, so that nothing must be replayed.
func (x *Index) Flush() error {
	x.take()
	defer x.writing.Unlock()
	if x.gone != nil {
		return x.gone
	}
	x.unflushed, x.flushedAt = 0, time.Now()
	return x.db.Flush()
}

// Close flushes and closes, when all Views are closed. Closing again does nothing.
func (x *Index) Close() error {
	err := x.Flush()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if cerr := x.shut(ErrClosed); err == nil {
		err = cerr
	}
	return err
}

// shut closes the database; why is what later calls are told. The caller holds both locks.
func (x *Index) shut(why error) error {
	if x.gone != nil {
		return nil
	}
	x.gone = why
	return errors.Join(x.a.batch.Close(), x.fresh.drop(), x.db.Close())
}

// Bytes is the size of the index's tables on disk.
func (x *Index) Bytes() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return 0
	}
	total := x.db.Metrics().Total()
	return uint64(total.TablesSize)
}

// Database are the figures of the index's database; nil where it is just being replaced.
func (x *Index) Database() *pebble.Metrics {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return nil
	}
	return x.db.Metrics()
}
