package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
)

// LiveError tells that a writer holds the directory: ask it, or wait.
type LiveError struct{ Who string }

func (e *LiveError) Error() string { return "a writer runs on this directory: " + e.Who }

// AtRest is a data directory that nobody writes to, open for questions. It changes nothing on disk but an index that was
// behind, or is damaged.
type AtRest struct {
	query.Engine
	fs   vfs.FS
	lock *datadir.Lock
}

// Options of OpenAtRest.
type Options struct {
	// FS; nil: the operating system's.
	FS  vfs.FS
	Log *slog.Logger
	// Progress is told how far an index that is behind was brought: applied of total offsets.
	Progress func(applied, total uint64)
}

// OpenAtRest opens the directory for questions. If its index is behind the journal it is brought up first: on disk if that
// can be had, else in memory. It returns a *LiveError where a writer runs.
func OpenAtRest(ctx context.Context, dir string, o Options) (*AtRest, error) {
	return openAtRest(ctx, dir, o, false)
}

// HealAtRest is OpenAtRest behind a question that met a damage of the index: all of it is computed anew from the journal.
func HealAtRest(ctx context.Context, dir string, o Options) (*AtRest, error) {
	return openAtRest(ctx, dir, o, true)
}

func openAtRest(ctx context.Context, dir string, o Options, anew bool) (*AtRest, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := datadir.Check(o.FS, dir); err != nil {
		return nil, err
	}
	a, err := shared(ctx, o.FS, dir)
	if err != nil {
		return nil, err
	}
	if a.Journal, err = journal.OpenReadOnly(dir, journal.Options{FS: o.FS, Log: o.Log}); err != nil {
		return nil, a.failed(err)
	}
	known, current := index.Look(a.Journal, index.Options{FS: o.FS})
	if !current || anew {
		if err := index.Newer(dir, index.Options{FS: o.FS}); err != nil {
			return nil, a.failed(err)
		}
		a.lock.Release()
		if err := bringUp(ctx, a.Journal, o, anew); err == nil {
			anew = false
		} else if ctx.Err() != nil {
			return nil, a.failed(err)
		} else if anew {
			o.Log.Warn("the index is computed anew in memory, for this question alone; `kvjournal rebuild` does it for good", "reason", err.Error())
		} else if room := (*index.NoRoomError)(nil); errors.As(err, &room) {
			o.Log.Warn("the index is brought up in memory, for this question alone", "reason", err.Error())
		}
		if err := a.share(ctx); err != nil {
			return nil, a.failed(err)
		}
	}
	if err = a.openIndex(ctx, o, anew); err == nil {
		err = a.suspect(known, o)
	}
	if err != nil {
		return nil, a.failed(err)
	}
	return a, nil
}

// shared is a directory at rest under the reader's lock, nothing of it open yet.
func shared(ctx context.Context, fs vfs.FS, dir string) (*AtRest, error) {
	a := &AtRest{Engine: query.Engine{Dir: dir}, fs: fs}
	return a, a.share(ctx)
}

// share takes the reader's lock and sees whether a writer is there.
func (a *AtRest) share(ctx context.Context) error {
	lock, err := datadir.Share(ctx, a.fs, a.Dir)
	if err != nil {
		return err
	}
	a.lock = lock
	if err := a.Undisturbed(); err != nil {
		lock.Release()
		return err
	}
	return nil
}

// Undisturbed returns a *LiveError if a writer has claimed the directory. Call it after reading and before
// printing: what was read meanwhile may be torn.
func (a *AtRest) Undisturbed() error {
	if who, claimed := datadir.Claimed(a.fs, a.Dir); claimed {
		return &LiveError{who}
	}
	return nil
}

// failed closes what is open. An error that a starting writer may have caused becomes a *LiveError.
func (a *AtRest) failed(err error) error {
	if live := a.Undisturbed(); live != nil {
		err = live
	}
	a.Close()
	return err
}

// Close gives the directory up.
func (a *AtRest) Close() error {
	var err error
	if a.Index != nil {
		err = a.Index.Close()
	}
	if a.Journal != nil {
		err = errors.Join(err, a.Journal.Close())
	}
	a.lock.Release()
	return err
}

// openIndex opens the index so that every change stays in memory, and brings it up there if it is still behind, or computes it anew.
func (a *AtRest) openIndex(ctx context.Context, o Options, anew bool) (err error) {
	opts := index.Options{FS: datadir.Overlay(o.FS), Log: o.Log, Passing: true}
	if !anew {
		a.Index, err = broughtUp(ctx, a.Journal, opts, o)
	}
	if anew || index.Damage(err) {
		a.Index, err = index.Create(ctx, a.Journal, opts, progressOf(a.Journal, o))
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	return nil
}

// broughtUp opens the index and brings it up to the journal; after an error it is closed.
func broughtUp(ctx context.Context, j *journal.Journal, opts index.Options, o Options) (*index.Index, error) {
	x, err := index.Open(j, false, opts)
	if err != nil {
		return nil, err
	}
	if err = x.Room(); err == nil {
		err = x.CatchUp(ctx, progressOf(j, o))
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// suspect puts in doubt, in memory, what the next recorder will put in doubt where acknowledged records are gone from the journal's end:
// they may have told that a master changes things without an event, which is true of all its epoch (R11).
func (a *AtRest) suspect(known journal.Known, o Options) error {
	t, torn := a.Journal.Torn(known)
	if !torn {
		return nil
	}
	if _, told := a.Journal.Torn(nil); !told { // else it was said when the journal was opened
		t.Warn(o.Log)
	}
	a.LostEnd = &query.LostEnd{First: t.First, Last: t.Last}
	for _, s := range a.Journal.Sources() {
		silent, err := a.Journal.Silent(t, &s)
		if err != nil {
			return err
		}
		for _, one := range silent {
			if err := a.Index.Suspect(one.Source, one.Silent); err != nil {
				return err
			}
		}
	}
	return nil
}

func progressOf(j *journal.Journal, o Options) func(uint64) {
	if o.Progress == nil {
		return nil
	}
	return func(applied uint64) { o.Progress(applied, j.Durable()) }
}

// roomToBringUp is the free space below which the index is brought up in memory, not on disk: Pebble does not give up
// writing on a full disk, and the question would never be answered.
const roomToBringUp = 256 << 20

// writable reports whether files can be made in dir, if it is there: a database whose files cannot be written ends the program.
func writable(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, "probe.tmp")
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), fs.Remove(path))
}

// bringUp brings the index on disk up to the journal, or computes it anew, if nobody else is there and the directory can be written. It gives
// way to a writer that claims the directory meanwhile.
func bringUp(ctx context.Context, j *journal.Journal, o Options, anew bool) error {
	if usage, err := o.FS.GetDiskUsage(j.Dir()); err == nil && usage.AvailBytes < roomToBringUp {
		return &index.NoRoomError{Dir: j.Dir(), Need: roomToBringUp, Free: usage.AvailBytes, InPlace: true}
	}
	lock, err := datadir.Alone(o.FS, j.Dir())
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := writable(o.FS, o.FS.PathJoin(j.Dir(), "index")); err != nil {
		return err
	}
	ctx, giveWay := context.WithCancelCause(ctx)
	defer giveWay(nil)
	go func() {
		for pause.For(ctx, 20*time.Millisecond) == nil {
			if who, claimed := datadir.Claimed(o.FS, j.Dir()); claimed {
				giveWay(&LiveError{who})
			}
		}
	}()
	opts := index.Options{FS: o.FS, Log: o.Log}
	if !anew {
		x, err := broughtUp(ctx, j, opts, o)
		if err == nil {
			return x.Close()
		}
		if !index.Damage(err) {
			return err
		}
		o.Log.Warn("the index is computed anew from the journal", "reason", err.Error())
	}
	x, err := index.Create(ctx, j, opts, progressOf(j, o))
	if err != nil {
		return err
	}
	return x.Close()
}
