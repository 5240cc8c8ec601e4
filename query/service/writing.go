package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/backup"
)

// Writing is a data directory that this process alone writes to.
type Writing struct {
	Journal *journal.Journal
	Index   *index.Index
	o       Options
	cache   *pebble.Cache
}

// OpenForWriting claims the directory for who (the command), making it if it is missing or empty.
func OpenForWriting(ctx context.Context, dir, who string, o Options) (*Writing, error) {
	j, cache, err := openJournal(ctx, dir, who, false, o, journal.Options{})
	if err != nil {
		return nil, err
	}
	w := &Writing{Journal: j, o: o, cache: cache}
	if w.Index, err = openIndex(j, index.Options{FS: o.FS, Log: o.Log, Cache: cache}); err != nil {
		err = errors.Join(err, j.Close())
		cache.Unref()
		return nil, err
	}
	return w, nil
}

// openJournal claims the directory and opens its journal; with anew, whatever its index is: that will be computed anew.
func openJournal(ctx context.Context, dir, who string, anew bool, o Options, jo journal.Options) (*journal.Journal, *pebble.Cache, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if err := datadir.Prepare(o.FS, dir); err != nil {
		return nil, nil, err
	}
	lock, err := datadir.Claim(ctx, o.FS, dir, who)
	if err != nil {
		return nil, nil, err
	}
	if !anew {
		if err := index.Newer(dir, index.Options{FS: o.FS}); err != nil {
			lock.Release()
			return nil, nil, err
		}
	}
	if err := backup.Clear(dir, backup.Options{FS: o.FS}); err != nil {
		lock.Release()
		return nil, nil, err
	}
	cache := pebble.NewCache(journal.SharedCache)
	jo.FS, jo.Log, jo.Cache, jo.Indexed = o.FS, o.Log, cache, index.KnownTo(dir, index.Options{FS: o.FS})
	j, err := journal.Open(dir, lock, jo)
	if err == nil {
		if err = index.Told(j, index.Options{FS: o.FS}); err != nil {
			err = errors.Join(err, j.Close())
		}
	}
	if err != nil {
		cache.Unref()
		lock.Release()
		return nil, nil, err
	}
	return j, cache, nil
}

// openIndex opens the index of a journal being written. One that cannot be used is thrown away: it is computed anew as the
// journal is followed, and answers as of where it is meanwhile.
func openIndex(j *journal.Journal, o index.Options) (*index.Index, error) {
	x, err := index.Open(j, true, o)
	if !errors.Is(err, index.ErrRebuild) {
		return x, err
	}
	if o.Log != nil {
		o.Log.Warn("the index is computed anew from the journal", "reason", err.Error())
	}
	if err := index.Remove(j.Dir(), o); err != nil {
		return nil, err
	}
	return index.Open(j, true, o)
}

// Import takes a capture into the source of that name.
func (w *Writing) Import(ctx context.Context, source, path string, o recorder.ImportOptions) (journal.Import, error) {
	s, err := w.Journal.EnsureSource(source, nil, nil)
	if err != nil {
		return journal.Import{}, err
	}
	o.FS = w.o.FS
	return recorder.Import(ctx, w.Journal, s, path, o)
}

// Finish seals the journal, brings the index up, and flushes both.
func (w *Writing) Finish(ctx context.Context) error {
	if err := w.Journal.Seal(ctx); err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	if err := w.Journal.Flush(); err != nil {
		return fmt.Errorf("flushing the journal: %w", err)
	}
	if err := w.Index.Renew(ctx, progressOf(w.Journal, w.o)); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	if err := w.Index.Flush(); err != nil {
		return fmt.Errorf("flushing the index: %w", err)
	}
	return w.Index.Settle(ctx)
}

// Close closes both databases and releases the directory.
func (w *Writing) Close() error {
	err := w.Index.Close()
	err = errors.Join(err, w.Journal.Close())
	w.cache.Unref()
	return err
}

// RebuildAtRest computes the index of a directory anew. It returns a *LiveError where a writer runs.
func RebuildAtRest(ctx context.Context, dir string, o Options) (err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if err := datadir.Check(o.FS, dir); err != nil {
		return err
	}
	j, cache, err := openJournal(ctx, dir, "kvjournal rebuild", true, o, journal.Options{})
	if errors.Is(err, datadir.ErrLocked) {
		return &LiveError{err.Error()}
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, j.Close())
		cache.Unref()
	}()
	x, err := index.Create(ctx, j, index.Options{FS: o.FS, Log: o.Log, Cache: cache}, progressOf(j, o))
	if err != nil {
		return err
	}
	return errors.Join(x.Settle(ctx), x.Close())
}
