package service

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/query/backup"
)

// Backup implements httpapi.Source: a consistent copy of the directory, while recording goes on.
func (s *Service) Backup(ctx context.Context, to string, progress func(backup.Progress)) (*backup.Report, error) {
	if !s.backups.TryLock() {
		return nil, errors.New("another backup of this directory is being taken: wait for it")
	}
	defer s.backups.Unlock()
	return backup.Live(ctx, s.journal, s.index.Load(), to, backup.Options{Log: s.log, Progress: progress})
}

// BackupAtRest copies a directory that nobody writes to. It returns a *LiveError where a writer runs, or comes.
func BackupAtRest(ctx context.Context, dir, to string, o backup.Options) (r *backup.Report, err error) {
	err = whileShared(ctx, dir, &o, func(a *AtRest) (err error) {
		r, err = backup.AtRest(ctx, dir, to, a.Undisturbed, o)
		return err
	})
	return r, err
}

// Restore makes dir, missing or empty, a data directory with what is in from. It returns a *LiveError where a writer runs on from.
func Restore(ctx context.Context, from, dir string, o backup.Options) (r *backup.Report, err error) {
	err = whileShared(ctx, from, &o, func(*AtRest) (err error) {
		r, err = backup.Restore(ctx, from, dir, o)
		return err
	})
	return r, err
}

// whileShared calls f under the reader's lock of dir.
func whileShared(ctx context.Context, dir string, o *backup.Options, f func(*AtRest) error) error {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if err := datadir.Check(o.FS, dir); err != nil {
		return err
	}
	a, err := shared(ctx, o.FS, dir)
	if err != nil {
		return err
	}
	defer a.lock.Release()
	return f(a)
}
