package service

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// RepairOptions of Repair.
type RepairOptions struct {
	Options
	// IgnoreGate takes the directory for one of this program's format whatever its gate file says.
	IgnoreGate bool
	// Salvaging is told how far the reading of the damaged journal is, in bytes; Options.Progress how far its index.
	Salvaging func(done, total uint64)
}

// partialSuffix ends the name of the directory that a repair fills, until it is whole.
const partialSuffix = ".partial"

// Repair makes the new directory to, which is not there yet, of all that can be read of the journal in dir, with an index. Nothing in dir
// is changed. An interrupted repair leaves nothing under the name to. It returns a *LiveError where a writer runs on dir.
func Repair(ctx context.Context, dir, to string, o RepairOptions) (r journal.Repaired, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if _, err := o.FS.Stat(dir); err != nil {
		return r, datadir.Check(o.FS, dir)
	}
	if err := datadir.Check(o.FS, dir); errors.Is(err, datadir.ErrNewer) && !o.IgnoreGate {
		return r, fmt.Errorf("%w; where its %s file is damaged, --ignore-gate goes on", err, datadir.GateFile)
	}
	a, err := shared(ctx, o.FS, dir)
	if err != nil {
		return r, err
	}
	defer a.lock.Release()
	if names, err := o.FS.List(to); err == nil && len(names) > 0 {
		return r, fmt.Errorf("%s is there already and not empty: give --to a new directory", to)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	partial := to + partialSuffix
	if err := o.FS.RemoveAll(partial); err != nil {
		return r, fmt.Errorf("removing the rest of an interrupted repair: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.FS.RemoveAll(partial))
		}
	}()
	if r, err = fill(ctx, dir, partial, o); err != nil {
		return r, a.disturbed(err)
	}
	if err := a.Undisturbed(); err != nil {
		return r, err
	}
	if err := o.FS.RemoveAll(to); err != nil { // an empty one
		return r, err
	}
	if err := o.FS.Rename(partial, to); err != nil {
		return r, fmt.Errorf("naming the repaired directory: %w", err)
	}
	return r, datadir.SyncDir(o.FS, o.FS.PathDir(to))
}

// fill writes the journal and its index.
func fill(ctx context.Context, dir, to string, o RepairOptions) (r journal.Repaired, err error) {
	if err := datadir.Prepare(o.FS, to); err != nil {
		return r, err
	}
	lock, err := datadir.Claim(ctx, o.FS, to, "kvjournal repair")
	if err != nil {
		return r, err
	}
	defer lock.Release()
	jo := journal.Options{FS: o.FS, Log: o.Log}
	damaged := jo
	damaged.Indexed = index.KnownTo(dir, index.Options{FS: o.FS})
	if r, err = journal.Repair(ctx, dir, to, damaged, o.Salvaging); err != nil {
		return r, err
	}
	j, err := journal.Open(to, nil, jo)
	if err != nil {
		return r, err
	}
	x, err := index.Create(ctx, j, index.Options{FS: o.FS, Log: o.Log}, progressOf(j, o.Options))
	if err == nil {
		err = errors.Join(x.Settle(ctx), x.Close())
	}
	return r, errors.Join(err, j.Close())
}
