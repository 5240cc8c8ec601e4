package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Restore makes the missing or empty directory dir a data directory with what is in from: a backup, or any directory at rest. The caller
// holds the reader's lock of from (datadir.Share). Where it fails or is interrupted dir is left as it was; where it is killed, dir is no
// data directory, and the next restore into it begins anew.
func Restore(ctx context.Context, from, dir string, o Options) (r *Report, err error) {
	o = o.withDefaults()
	begun := time.Now()
	if err := apart(from, dir); err != nil {
		return nil, err
	}
	source, err := openBackup(ctx, from, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.close()) }()
	p := &place{fs: o.FS, dir: dir}
	if err := p.claim(ctx, from); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	c := &copier{fs: o.FS, progress: o.Progress}
	databases := []string{journalFolder}
	if source.x != nil {
		databases = append(databases, indexFolder)
	}
	if err := c.databases(ctx, from, dir, databases...); err != nil {
		return nil, err
	}
	if err := c.heads(ctx, from, dir); err != nil {
		return nil, err
	}
	if err := writeHead(dir, o); err != nil {
		return nil, err
	}
	if err := settle(ctx, dir, o); err != nil {
		return nil, err
	}
	least := source.j.Durables()
	if r, _, err = verify(ctx, dir, source.j, &least, o); err != nil {
		return nil, err
	}
	if err := p.fork(r, o); err != nil {
		return nil, err
	}
	if err := datadir.Finish(o.FS, dir, r.format); err != nil {
		return nil, err
	}
	p.lock.Release()
	r.Dir, r.From, r.Bytes, r.TookMs = dir, from, c.copied, time.Since(begun).Milliseconds()
	return r, nil
}

// openBackup opens from and checks what is cheap: the gate, what backup.json says, a sample of records.
func openBackup(ctx context.Context, from string, o Options) (*copied, error) {
	if err := datadir.Check(o.FS, from); err != nil {
		return nil, err
	}
	facts, err := readFacts(o.FS, from)
	if err != nil {
		return nil, err
	}
	c, err := openCopy(from, false, o)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", from, err)
	}
	if facts != nil {
		err = facts.check(c.j)
	}
	if err == nil {
		err = c.sound(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// sound looks whether a sample of the backup can be read. An index that does not fit is closed: it will not be copied.
func (c *copied) sound(ctx context.Context, o Options) error {
	_, err := c.compare(ctx, nil, o)
	if errors.Is(err, errIndex) {
		o.Log.Warn("the index of the backup is damaged and is computed anew from its journal", "reason", err)
		x := c.x
		c.x = nil
		if err := x.Close(); err != nil {
			return err
		}
		_, err = c.compare(ctx, nil, o)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be restored as it is: %w", c.j.Dir(), err)
	}
	return nil
}

// fork gives the copy an id of its own, and looks whether index and journal agree on it.
func (p *place) fork(r *Report, o Options) error {
	jo, xo := readerOptions(o), indexOptions(o)
	was, is, err := journal.Fork(p.dir, jo, time.Now())
	if err != nil {
		return err
	}
	if err := index.Adopt(p.dir, was, is, xo); err != nil {
		return err
	}
	jo.Unfinished = true
	j, err := journal.OpenReadOnly(p.dir, jo)
	if err != nil {
		return err
	}
	current := j.ID() == is && index.Current(j, xo)
	if err := j.Close(); err != nil {
		return err
	}
	if !current {
		return errors.New("the restored index does not fit the restored journal; nothing was restored")
	}
	r.JournalID, r.Origin = is.String(), was.String()
	return nil
}

// settle brings the index of a copy up to its journal; one that cannot be used is computed anew.
func settle(ctx context.Context, dir string, o Options) (err error) {
	jo, xo := readerOptions(o), indexOptions(o)
	jo.Unfinished = true
	j, err := journal.OpenReadOnly(dir, jo)
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	progress := func(applied uint64) { o.Progress(Progress{Step: "indexing", Done: applied, Total: j.Durable()}) }
	x, err := index.Open(j, false, xo)
	if errors.Is(err, index.ErrRebuild) {
		o.Log.Warn("the index is computed anew from the journal", "reason", err)
		x, err = index.Create(ctx, j, xo, progress)
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	return errors.Join(x.CatchUp(ctx, progress), x.Close())
}
