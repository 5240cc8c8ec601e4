package index

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
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
	hurry   chan struct{}                                    // holds one: Follow is not to rest (Hurry)
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
	x := &Index{dir: j.Dir(), j: j, opts: o, flushedAt: time.Now(), anew: anew, hurry: make(chan struct{}, 1)}
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
	x.fresh.begin(allKeyspaces) // it is another database's
	x.fresh.end()
	x.hot.reset()
	applied, _ := readApplied(db)
	x.applied.Store(applied)
	x.unflushed = 0
}

// applyWith has records be applied by a.
func (x *Index) applyWith(a *applier) {
	x.a = a
	a.fresh, a.hot = &x.fresh, x.hot
}

// Generation counts how often the index was exchanged for one computed anew.
func (x *Index) Generation() uint64 { return x.generation.Load() }

// Applied is the offset up to which the journal is in the index.
func (x *Index) Applied() uint64 { return x.applied.Load() }

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
