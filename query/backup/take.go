package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// stageFolder is where the databases of a live directory are linked on the way to another volume.
const stageFolder = "backup.tmp"

// Clear removes what an interrupted backup left in a directory that the caller holds the claim of.
func Clear(dir string, o Options) error {
	o = o.withDefaults()
	path := o.FS.PathJoin(dir, stageFolder)
	if _, err := o.FS.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := o.FS.RemoveAll(path); err != nil {
		return fmt.Errorf("removing the rest of an interrupted backup: %w", err)
	}
	return nil
}

// Live backs up the directory of a journal that is being written to, and of its index (nil: there is none, and the backup's is
// computed), to the new directory to. One at a time.
func Live(ctx context.Context, j *journal.Journal, x *index.Index, to string, o Options) (*Report, error) {
	o = o.withDefaults()
	begun, before := time.Now(), j.Durables()
	p, err := partialOf(ctx, o.FS, j.Dir(), to)
	if err != nil {
		return nil, err
	}
	c := &copier{fs: o.FS, link: linkable(o.FS, j.Dir(), p.dir), progress: o.Progress}
	if err := checkpoint(ctx, j, x, p, c, o); err != nil {
		p.abandon()
		return nil, err
	}
	r, err := p.finish(ctx, j, &before, to, c, o)
	if err != nil {
		return nil, err
	}
	r.Live, r.TookMs = true, time.Since(begun).Milliseconds()
	return r, nil
}

// checkpoint fills the place with both databases: directly where it is on the same volume, else by way of the stage.
func checkpoint(ctx context.Context, j *journal.Journal, x *index.Index, p *place, c *copier, o Options) error {
	at := p.dir
	if !c.link {
		if err := Clear(j.Dir(), o); err != nil {
			return err
		}
		at = o.FS.PathJoin(j.Dir(), stageFolder)
		if err := datadir.MakePrivate(o.FS, at); err != nil {
			return fmt.Errorf("making %s: %w", at, err)
		}
		defer func() {
			if err := Clear(j.Dir(), o); err != nil {
				o.Log.Warn("what a backup needed for a while stays until the next start", "error", err)
			}
		}()
	}
	if err := checkpoints(ctx, j, x, at, o); err != nil {
		return err
	}
	if at == p.dir {
		return c.count(p.dir)
	}
	return c.databases(ctx, at, p.dir, indexFolder, journalFolder)
}

// checkpoints writes those of both databases into a directory: of the index first, so that it is never ahead of the journal. If the horizon
// moves in between, the journal may have lost what that index must go on from; a prune takes longer than this, so the next try is the last.
func checkpoints(ctx context.Context, j *journal.Journal, x *index.Index, at string, o Options) error {
	for {
		generation := j.Horizon().Generation
		o.Progress(Progress{Step: "flushing", Total: 2})
		if x != nil {
			if err := x.Checkpoint(o.FS.PathJoin(at, indexFolder)); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o.Progress(Progress{Step: "flushing", Done: 1, Total: 2})
		if err := j.Checkpoint(o.FS.PathJoin(at, journalFolder)); err != nil {
			return err
		}
		o.Progress(Progress{Step: "flushing", Done: 2, Total: 2})
		if x == nil || j.Horizon().Generation == generation {
			return nil
		}
		for _, name := range []string{indexFolder, journalFolder} {
			if err := o.FS.RemoveAll(o.FS.PathJoin(at, name)); err != nil {
				return fmt.Errorf("copying once more, since the journal was pruned meanwhile: %w", err)
			}
		}
	}
}

// databases copies those databases in from to the directory to.
func (c *copier) databases(ctx context.Context, from, to string, which ...string) error {
	for _, name := range which {
		_, n, err := files(c.fs, c.fs.PathJoin(from, name))
		if err != nil {
			return err
		}
		c.total += n
	}
	if !c.link {
		if err := room(c.fs, to, c.total); err != nil {
			return err
		}
	}
	for _, name := range which {
		if err := c.database(ctx, c.fs.PathJoin(from, name), c.fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// count adds up what a checkpoint linked and wrote.
func (c *copier) count(dir string) error {
	for _, name := range []string{journalFolder, indexFolder} {
		names, _, err := files(c.fs, c.fs.PathJoin(dir, name))
		if err != nil {
			return err
		}
		for _, file := range names {
			info, err := c.fs.Stat(c.fs.PathJoin(dir, name, file))
			if err != nil {
				return fmt.Errorf("reading %s: %w", dir, err)
			}
			if immutable(file) {
				c.linked += uint64(info.Size())
			} else {
				c.copied += uint64(info.Size())
			}
		}
	}
	return nil
}

// AtRest backs up a directory that nobody writes to. The caller holds its reader's lock (datadir.Share); undisturbed fails where a writer
// came nevertheless.
func AtRest(ctx context.Context, dir, to string, undisturbed func() error, o Options) (r *Report, err error) {
	o = o.withDefaults()
	begun := time.Now()
	j, err := journal.OpenReadOnly(dir, readerOptions(o))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	p, err := partialOf(ctx, o.FS, dir, to)
	if err != nil {
		return nil, err
	}
	c := &copier{fs: o.FS, link: linkable(o.FS, dir, p.dir), progress: o.Progress}
	err = c.databases(ctx, dir, p.dir, indexFolder, journalFolder)
	if err == nil {
		err = c.heads(ctx, dir, p.dir)
	}
	if live := undisturbed(); live != nil {
		err = live
	}
	if err != nil {
		p.abandon()
		return nil, err
	}
	was := j.Durables()
	if r, err = p.finish(ctx, j, &was, to, c, o); err != nil {
		return nil, err
	}
	r.TookMs = time.Since(begun).Milliseconds()
	return r, nil
}

// heads copies the files that may know of a lost end: the head file, and what an older index knew.
func (c *copier) heads(ctx context.Context, from, to string) error {
	for _, name := range []string{headFile, index.KnownFile} {
		if _, err := c.fs.Stat(c.fs.PathJoin(from, name)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := c.file(ctx, c.fs.PathJoin(from, name), c.fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the copy in p whole, compares it with j, of which least is the least that it must hold, and puts it in its place.
func (p *place) finish(ctx context.Context, j *journal.Journal, least *journal.Stats, to string, c *copier, o Options) (r *Report, err error) {
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	if err := writeHead(p.dir, o); err != nil {
		return nil, err
	}
	r, facts, err := verify(ctx, p.dir, j, least, o)
	if errors.Is(err, errIndex) { // what is copied is what the directory has: damage there is none of the copy's
		o.Log.Warn("the index of the directory is damaged; `kvjournal rebuild` computes it anew", "reason", err)
		if err := p.leaveIndexOut(); err != nil {
			return nil, err
		}
		r, facts, err = verify(ctx, p.dir, j, least, o)
	}
	if err == nil && r.AppliedOffset == 0 {
		err = p.leaveIndexOut()
	}
	if err != nil {
		return nil, err
	}
	from := j.Dir()
	if abs, err := filepath.Abs(from); err == nil {
		from = abs
	}
	facts.Created, facts.From = time.Now().UTC().Truncate(time.Millisecond), from
	text, err := json.Marshal(facts)
	if err != nil {
		return nil, err
	}
	if err := datadir.WriteFile(o.FS, p.dir, datadir.BackupFile, append(text, '\n')); err != nil {
		return nil, err
	}
	if err := datadir.Finish(o.FS, p.dir, r.format); err != nil {
		return nil, err
	}
	if err := o.FS.Rename(p.dir, to); err != nil {
		return nil, fmt.Errorf("putting the backup in its place: %w", err)
	}
	p.lock.Release()
	if err := datadir.SyncDir(o.FS, o.FS.PathDir(to)); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("syncing %s: %w; the backup in it is whole, and may be gone after a loss of power", o.FS.PathDir(to), err)
	}
	r.Dir, r.From, r.Bytes, r.Linked = to, from, c.linked+c.copied, c.linked
	return r, nil
}

func (p *place) leaveIndexOut() error {
	if err := p.fs.RemoveAll(p.fs.PathJoin(p.dir, indexFolder)); err != nil {
		return fmt.Errorf("leaving the index out: %w", err)
	}
	return nil
}
