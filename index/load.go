package index

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/kvjournal/kvjournal/journal"
)

// begin fills a fresh database, at path, with the rows of the journal's baseline, if it has one: all or, after a crash, none. They
// are written as tables, which pass no memtable: a fresh database has nothing that they could overtake.
func begin(ctx context.Context, db *pebble.DB, path string, j *journal.Journal, o Options) error {
	h := j.Horizon()
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	some := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	switch {
	case some:
		return fmt.Errorf("it was not finished: %w", ErrRebuild)
	case h.Generation == 0:
		return nil
	case h.Format != formatVersion:
		return horizonError(&h)
	}
	l := loader{db: db, o: o, dir: path + rowsSuffix}
	if o.bulk != nil {
		l.dir = o.FS.PathJoin(o.bulk.dir, "baseline")
	}
	if err := freshFolder(o.FS, l.dir); err != nil {
		return err
	}
	err = j.EachBaseline(ctx, l.row)
	if err == nil {
		err = l.finish(ctx)
	}
	if err == nil && o.bulk != nil {
		err = o.bulk.endRun(0)
	}
	for _, t := range []*tableWriter{&l.rows, &l.live} {
		t.abandon()
	}
	if rerr := o.FS.RemoveAll(l.dir); err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("loading the baseline: %w", err)
	}
	return db.Set([]byte{keyApplied}, binary.BigEndian.AppendUint64(nil, h.Offset), pebble.NoSync)
}

// loader turns a baseline into tables of an index.
type loader struct {
	db         *pebble.DB
	o          Options
	dir        string
	paths      []string
	rows, live tableWriter
	lives      liveRows
	band       int // of the row before
}

// tableWriter is a table being written.
type tableWriter struct {
	w *sstable.Writer
}

func (t *tableWriter) abandon() {
	if t.w != nil {
		t.w.Close()
		t.w = nil
	}
}

// band says which rows may share a table: none spans the history or the live rows, which may have tables of their own.
func band(keyspace byte) int {
	switch {
	case keyspace < keyHistory:
		return 0
	case keyspace == keyHistory:
		return 1
	case keyspace < keyLive:
		return 2
	}
	return 3
}

// row takes the next row of the baseline; live rows follow from those of the history, which are left to a bulk where there is one.
func (l *loader) row(key, value []byte) error {
	if b := band(key[0]); b != l.band {
		l.band = b
		if err := l.close(&l.rows); err != nil {
			return err
		}
	}
	if key[0] != keyHistory {
		return l.set(&l.rows, key, value)
	}
	if l.o.bulk != nil {
		return l.o.bulk.addBaseline(key, value)
	}
	if err := l.set(&l.rows, key, value); err != nil {
		return err
	}
	k, v, ok, err := l.lives.next(key, value)
	if err != nil || !ok {
		return err
	}
	return l.set(&l.live, k, v)
}

// loadedTable is how large tables are, about.
const loadedTable = 8 << 20

func (l *loader) set(t *tableWriter, key, value []byte) error {
	if t.w == nil {
		path := l.o.FS.PathJoin(l.dir, fmt.Sprintf("%d.sst", len(l.paths)))
		w, err := l.o.createTable(path, l.db)
		if err != nil {
			return err
		}
		l.paths = append(l.paths, path)
		t.w = w
	}
	if err := t.w.Set(key, value); err != nil {
		return err
	}
	if t.w.Raw().EstimatedSize() < loadedTable {
		return nil
	}
	return l.close(t)
}

func (l *loader) close(t *tableWriter) error {
	if t.w == nil {
		return nil
	}
	err := t.w.Close()
	t.w = nil
	return err
}

// finish brings all tables into the database at once.
func (l *loader) finish(ctx context.Context) error {
	if err := l.close(&l.rows); err != nil {
		return err
	}
	if err := l.close(&l.live); err != nil || len(l.paths) == 0 {
		return err
	}
	return l.db.Ingest(ctx, l.paths)
}
