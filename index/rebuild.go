package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal"
)

// Create computes the index of a directory anew, beside an old one if there is one, and puts it in its place. The caller
// holds the directory's claim, or its access lock alone. After an interruption the old index is as it was. What it knows of a loss that the
// journal does not tell of is kept (KnownTo).
func Create(ctx context.Context, j *journal.Journal, o Options, progress func(applied uint64)) (*Index, error) {
	o = o.withDefaults()
	if err := keepKnown(j, o); err != nil {
		return nil, fmt.Errorf("keeping how far the old index knew the journal to go: %w", err)
	}
	fresh, err := build(ctx, j, o, progress)
	if err != nil {
		return nil, err
	}
	if err := fresh.Close(); err != nil {
		return nil, err
	}
	if err := exchange(o, j.Dir()); err != nil {
		return nil, err
	}
	return Open(j, false, o)
}

// Rebuild computes the index anew while this one goes on serving, then exchanges them; readers wait for the exchange only.
func (x *Index) Rebuild(ctx context.Context, progress func(applied uint64)) error {
	x.pruning.Lock() // index.new/ is one's alone, and the horizon stays
	defer x.pruning.Unlock()
	return x.rebuild(ctx, progress)
}

func (x *Index) rebuild(ctx context.Context, progress func(applied uint64)) error {
	fresh, err := build(ctx, x.j, x.opts, progress)
	if err != nil {
		return err
	}
	x.take()
	defer x.writing.Unlock()
	if err := fresh.CatchUp(ctx, progress); err != nil {
		fresh.Close()
		return err
	}
	if err := fresh.Close(); err != nil {
		return err
	}
	if err := x.awaitScans(ctx); err != nil {
		return errors.Join(err, x.opts.FS.RemoveAll(x.opts.FS.PathJoin(x.dir, newFolder)))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.shut(errors.New("the index was lost while it was exchanged for a rebuilt one; the next start computes it anew")); err != nil {
		return fmt.Errorf("closing the old index: %w", err)
	}
	if err := exchange(x.opts, x.dir); err != nil {
		return err
	}
	db, a, err := openDB(ctx, x.opts.FS.PathJoin(x.dir, folder), x.j, x.opts)
	if err != nil {
		return err
	}
	x.gone = nil
	x.use(db, a)
	x.generation.Add(1)
	return nil
}

// renewEvents is how many events must be missing for an index to be computed anew instead.
const renewEvents = 200_000

// Renew brings the index up to the journal's durable offset: it applies what is missing, or, where that is most of the journal and there is room
// for it, computes all anew, which costs a third as much an event and leaves nothing to Settle. A *NoRoomError where there is no room for either.
func (x *Index) Renew(ctx context.Context, progress func(applied uint64)) error {
	if has, all := x.progress(); mostlyMissing(has, all, x.opts.renew) {
		if err := x.Rebuild(ctx, progress); !noRoom(err) {
			return err
		}
	}
	if err := x.Room(); err != nil {
		return err
	}
	return x.CatchUp(ctx, progress)
}

// mostlyMissing reports whether an index with that many events of all is better computed anew; least is how many must be missing.
func mostlyMissing(has, all, least uint64) bool { return all >= has+least && all-has >= has }

// ErrBusy: the rebuilt index was not put in place, because questions were still being answered from the old one, which stays.
var ErrBusy = errors.New("questions that take long are being answered from the old index, which stays: rebuild again when they are done")

// scanPatience is how long an exchange waits for scans under way (View.Scans).
const scanPatience = time.Minute

// awaitScans waits until no scan is under way, for a while: if the exchange waited for one with the lock asked for, every new
// question would wait with it, for as long as whoever asked takes nothing of the answer.
func (x *Index) awaitScans(ctx context.Context) error {
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	patience := time.NewTimer(scanPatience)
	defer patience.Stop()
	for x.scans.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return ErrBusy
		case <-retry.C:
		}
	}
	return nil
}

// build fills index.new/ from the journal, in the way that there is room for (spools). progress is told how far it is as if that were an offset:
// where the rows are sorted first, half of the way is to sort them, the other half to write them. After an error nothing is left.
func build(ctx context.Context, j *journal.Journal, o Options, progress func(applied uint64)) (_ *Index, err error) {
	if err := j.Sound(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(uint64) {}
	}
	path := o.FS.PathJoin(j.Dir(), newFolder)
	if err := errors.Join(o.FS.RemoveAll(path), o.FS.RemoveAll(path+rowsSuffix)); err != nil {
		return nil, fmt.Errorf("removing the rest of an earlier rebuild: %w", err)
	}
	sorted, err := spools(j, o)
	if err != nil {
		return nil, err
	}
	fresh, err := buildIn(ctx, path, j, sorted, o, progress)
	if err != nil {
		return nil, filledUp(errors.Join(err, o.FS.RemoveAll(path)), j, o)
	}
	progress(fresh.Applied())
	return fresh, nil
}

// buildIn is build with the rows sorted in a spool first, or not.
func buildIn(ctx context.Context, path string, j *journal.Journal, sorted bool, o Options, progress func(applied uint64)) (_ *Index, err error) {
	sorting := o
	if sorted {
		if sorting.bulk, err = newBulk(path, o); err != nil {
			return nil, err
		}
	}
	db, a, err := openDB(ctx, path, j, sorting)
	if err != nil {
		return nil, errors.Join(err, sorting.bulk.remove())
	}
	fresh := &Index{dir: j.Dir(), j: j, opts: o}
	fresh.use(db, a)
	if !sorted {
		if err = fresh.CatchUp(ctx, progress); err != nil {
			return nil, errors.Join(err, fresh.Close())
		}
		return fresh, nil
	}
	err = fresh.CatchUp(ctx, func(applied uint64) { progress(applied / 2) })
	if err == nil {
		half := fresh.Applied() / 2
		err = sorting.bulk.finish(ctx, db, func(done, total uint64) { progress(half + uint64(float64(half)*float64(done)/float64(total))) })
		a.bulk = nil
	}
	if err != nil {
		return nil, errors.Join(err, sorting.bulk.remove(), fresh.Close()) // the spool first: closing may need the room
	}
	return fresh, nil
}

// exchange puts index.new/ in the place of index/. A crash between its steps leaves no index at all, or the new one: the
// next start makes the missing one.
func exchange(o Options, dir string) error {
	old, fresh := o.FS.PathJoin(dir, folder), o.FS.PathJoin(dir, newFolder)
	if err := o.FS.RemoveAll(old); err != nil {
		return fmt.Errorf("removing the old index: %w", err)
	}
	if err := o.FS.Rename(fresh, old); err != nil {
		return fmt.Errorf("putting the new index in place: %w", err)
	}
	d, err := o.FS.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Remove throws the index of a directory away. The caller holds the directory's claim.
func Remove(dir string, o Options) error {
	o = o.withDefaults()
	if err := o.FS.RemoveAll(o.FS.PathJoin(dir, folder)); err != nil {
		return fmt.Errorf("removing the index: %w", err)
	}
	return nil
}
