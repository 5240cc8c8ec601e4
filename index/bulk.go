package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// A rebuild knows all events before the first question comes. So their rows pass no memtable and no compaction: they are sorted outside of
// the database and brought into it as tables of its lowest level, each written once.
//
//	journal ─> rows ─ sort ─> run ┐
//	           rows ─ sort ─> run ┼─ merge ─> history ─> tables ┬─> ingest, all or nothing
//	baseline ───────────────> run ┘     └──> live    ─> tables ┘
//
// The live rows follow from the history: the newest event of an object and medium has one where it is `stored`. The other rows are few, and
// are written as ever. Nothing of this is seen before the database takes the place of the old one (exchange), which a crash before
// then leaves as it is.

// runBytes is how much memory the rows of a run take, about; two runs are held at once.
const runBytes = 32 << 20

// bulk takes the history of an index that is computed anew.
type bulk struct {
	o     Options
	dir   string // for files of the rebuild
	spool *spool
	runs  []spooled
	rows  uint64

	// dropped says of scopes (by their prefixes) up to where a clear took the live rows away.
	dropped map[string]Position
	named   int // bytes of the scopes' prefixes

	full, free chan *eventRows
	done       chan struct{}
	err        atomic.Pointer[error] // of sorting and spooling
}

const (
	rowsSuffix = ".rows" // of the directory beside the database's
	spoolFile  = "spool"
)

// newBulk begins to collect the rows of the database at path.
func newBulk(path string, o Options) (*bulk, error) {
	b := &bulk{o: o, dir: path + rowsSuffix, dropped: map[string]Position{}}
	if err := freshFolder(o.FS, b.dir); err != nil {
		return nil, err
	}
	var err error
	if b.spool, err = createSpool(o.FS, b.spoolPath()); err != nil {
		return nil, errors.Join(err, o.FS.RemoveAll(b.dir))
	}
	b.full, b.free, b.done = make(chan *eventRows), make(chan *eventRows, 2), make(chan struct{})
	b.free <- b.room()
	go b.spoolRuns()
	return b, nil
}

func (b *bulk) spoolPath() string { return b.o.FS.PathJoin(b.dir, spoolFile) }

// freshFolder makes an empty directory, whatever was there.
func freshFolder(fs vfs.FS, dir string) error {
	if err := fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the rest of an earlier rebuild: %w", err)
	}
	return datadir.MakePrivate(fs, dir)
}

// spoolRuns sorts and writes what it is handed.
func (b *bulk) spoolRuns() {
	defer close(b.done)
	for r := range b.full {
		if b.err.Load() == nil {
			if err := b.run(r); err != nil {
				b.err.Store(&err)
			}
		}
		r.reset()
		b.free <- r
	}
}

// run writes rows as a run.
func (b *bulk) run(r *eventRows) error {
	r.sort()
	from := b.spool.at
	for i, o := range r.order {
		key := r.historyKey(o.row)
		if i+1 < len(r.order) && r.order[i+1].first == o.first && bytes.Equal(key, r.historyKey(r.order[i+1].row)) {
			continue // what was said last counts
		}
		if err := b.spool.add(key, r.evidence(o.row)); err != nil {
			return err
		}
		b.rows++
	}
	return b.endRun(from)
}

func (b *bulk) endRun(from int64) error {
	run, err := b.spool.endRun(from)
	if err == nil && run.from < run.to {
		b.runs = append(b.runs, run)
	}
	return err
}

// addBaseline takes a history row of the baseline, in the order of keys, before any others.
func (b *bulk) addBaseline(key, value []byte) error {
	b.rows++
	return b.spool.add(key, value)
}

// isFull reports whether rows are enough for a run.
func (b *bulk) isFull(r *eventRows) bool { return len(r.arena)+rowBytes*len(r.rows) >= b.o.runBytes }

// rowBytes is what a row takes beside its key and value: sorting holds its order twice.
const rowBytes = int(unsafe.Sizeof(eventRow{}) + 2*unsafe.Sizeof(rowOrder{}))

// room makes room for the rows of a run, where those are like most: it would double again and again otherwise.
func (b *bulk) room() *eventRows {
	n := b.o.runBytes / (rowBytes + usualRow)
	return &eventRows{arena: make([]byte, 0, n*(usualRow+usualRow/8)), rows: make([]eventRow, 0, n+n/8), order: make([]rowOrder, 0, n+n/8)}
}

// usualRow is how long key and value of a history row are, of a packed key.
const usualRow = 96

// take takes rows and returns empty ones.
func (b *bulk) take(r *eventRows) (*eventRows, error) {
	if err := b.err.Load(); err != nil {
		return r, *err
	}
	if len(r.rows) == 0 {
		return r, nil
	}
	b.full <- r
	return <-b.free, nil
}

// clear takes note that a clear takes the live rows of a scope away; false: it is one scope too many.
func (b *bulk) clear(sc *scope, at Position) bool {
	if _, known := b.dropped[string(sc.prefix)]; !known {
		if len(b.dropped) >= maxScopes || b.named+len(sc.prefix) > maxScopeBytes {
			return false
		}
		b.named += len(sc.prefix)
	}
	b.dropped[string(sc.prefix)] = at
	return true
}

// stop ends the spooling; no more rows can be taken.
func (b *bulk) stop() error {
	if b.full == nil {
		return nil
	}
	close(b.full)
	<-b.done
	b.full = nil
	err := b.spool.close()
	if failed := b.err.Load(); failed != nil {
		err = *failed
	}
	return err
}

// finish brings all rows into db. progress is told how many rows of how many are on their way.
func (b *bulk) finish(ctx context.Context, db *pebble.DB, progress func(done, total uint64)) error {
	err := b.stop()
	if err == nil {
		err = b.ingest(ctx, db, progress)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("writing the index: %w", err)
	}
	return errors.Join(err, b.remove())
}

// remove ends it and removes its files; nil: there are none.
func (b *bulk) remove() error {
	if b == nil {
		return nil
	}
	err := b.stop()
	if rerr := b.o.FS.RemoveAll(b.dir); rerr != nil {
		err = errors.Join(err, fmt.Errorf("removing the files of the rebuild: %w", rerr))
	}
	return err
}

func (b *bulk) ingest(ctx context.Context, db *pebble.DB, progress func(done, total uint64)) error {
	if len(b.runs) == 0 {
		return nil
	}
	f, err := b.o.FS.Open(b.spoolPath())
	if err != nil {
		return err
	}
	defer f.Close()
	t := newTables(db, b.dir, 2, b.o)
	err = b.mergeInto(ctx, f, t, progress)
	if terr := t.finish(); err == nil {
		err = terr
	}
	if err != nil {
		return err
	}
	return db.Ingest(ctx, t.paths)
}

// mergeInto merges the runs and hands the rows to t.
func (b *bulk) mergeInto(ctx context.Context, f vfs.File, t *tables, progress func(done, total uint64)) error {
	m, err := newMerge(f, b.runs)
	if err != nil {
		return err
	}
	history, live := &tableStream{t: t}, &tableStream{t: t}
	l := liveRows{dropped: b.dropped}
	for done := uint64(1); ; done++ {
		key, value, ok, err := m.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		handed := history.add(key, value)
		k, v, ok, err := l.next(key, value)
		if err != nil {
			return err
		}
		if ok {
			handed = live.add(k, v) || handed
		}
		if !handed {
			continue
		}
		if err := errors.Join(ctx.Err(), t.failed()); err != nil {
			return err
		}
		if b.o.Pause != nil {
			b.o.Pause(ctx)
		}
		progress(done, b.rows)
	}
	history.end()
	live.end()
	return ctx.Err()
}

// liveRows tells which rows of a history, which come in the order of their keys, have a live row.
type liveRows struct {
	dropped map[string]Position // as of bulk

	medium     []byte // the history row before: its key up to the position
	scope      []byte // the scope of the row before, without the keyspace
	until      Position
	key, value []byte
}

// next returns the live row of a history row, valid until the next call, if it has one.
func (l *liveRows) next(key, value []byte) (k, v []byte, ok bool, err error) {
	if n := len(l.medium); n > 0 && len(key) > n && bytes.Equal(key[:n], l.medium) {
		return nil, nil, false, nil // a newer event of the object and medium came before
	}
	object := split(key)
	end := mediumEnd(key[object:])
	if end < 0 || len(value) == 0 {
		return nil, nil, false, errEvidence
	}
	l.medium = append(l.medium[:0], key[:object+end]...)
	if value[0]&evStored == 0 {
		return nil, nil, false, nil
	}
	p, ok := cutPosition(key[object+end:])
	if !ok {
		return nil, nil, false, errEvidence
	}
	if len(l.dropped) > 0 && p.Before(l.droppedUntil(key)) {
		return nil, nil, false, nil
	}
	l.key = append(l.key[:0], l.medium...)
	l.key[0] = keyLive
	l.value = appendLive(l.value[:0], p)
	return l.key, l.value, true, nil
}

// droppedUntil is up to where the live rows of a key's scope were taken away.
func (l *liveRows) droppedUntil(key []byte) Position {
	if n := len(l.scope); n == 0 || !bytes.HasPrefix(key[1:], l.scope) {
		l.scope = append(l.scope[:0], key[1:scopeLength(key)]...)
		l.until = l.dropped[string(l.scope)]
	}
	return l.until
}
