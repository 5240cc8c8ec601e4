package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
)

// Retention says what a recorder keeps; the zero value is everything.
type Retention struct {
	// Keep is how long what was received stays, and at most a twentieth longer; 0: for ever.
	Keep time.Duration
	// KeepBytes is how large journal and index may become together, about; then a tenth of it goes at once. 0: any size. Where what
	// stands for objects that are gone takes a quarter of it, those are forgotten too: else more and more records would go, for no room.
	KeepBytes uint64
	// Every is how often that is looked at. 0: a minute.
	Every time.Duration
}

// held is what a directory holds.
type held struct {
	// oldest is when the oldest place was passed, ns on our clock, up to which it could be pruned, 0: there is none.
	oldest int64
	// bytes of journal and index, and of the journal's baseline.
	bytes, baseline uint64
}

// due says what to prune at a time, ns; ok is false where nothing is. It leaves room, so that the index is not computed anew all the time.
func (r *Retention) due(now int64, h held) (q query.PruneQuestion, ok bool) {
	forget := h.baseline > r.KeepBytes/4
	switch {
	case r.KeepBytes > 0 && h.bytes > r.KeepBytes && (h.oldest != 0 || forget):
		return query.PruneQuestion{KeepBytes: r.KeepBytes - r.KeepBytes/10, ForgetRemoved: forget}, true
	case r.Keep > 0 && h.oldest != 0 && now-h.oldest > int64(r.Keep+r.Keep/20):
		return query.PruneQuestion{Keep: r.Keep}, true
	}
	return q, false
}

// VolumeShare is a number of percent of the volume that a directory, which may be missing yet, is on, in bytes.
func VolumeShare(fs vfs.FS, dir string, percent uint64) (uint64, error) {
	size, err := VolumeSize(fs, dir)
	return size / 100 * percent, err
}

// VolumeSize is the size of that volume in bytes. A nil fs is the operating system's.
func VolumeSize(fs vfs.FS, dir string) (uint64, error) {
	if fs == nil {
		fs = vfs.Default
	}
	for {
		usage, err := fs.GetDiskUsage(dir)
		parent := fs.PathDir(dir)
		if err == nil || parent == dir {
			return usage.TotalBytes, err
		}
		dir = parent
	}
}

// heldNow looks at what the directory holds.
func heldNow(e *query.Engine) (h held, err error) {
	v, err := e.Index.View()
	if err != nil {
		return h, err
	}
	points, err := v.Points()
	if err := errors.Join(err, v.Close()); err != nil {
		return h, err
	}
	if len(points) > 0 {
		h.oldest = points[0].Received
	}
	h.bytes = e.Journal.Stats().TableBytes + e.Index.Bytes()
	h.baseline, err = e.Journal.BaselineBytes()
	return h, err
}

// keepPruned prunes when it is due, until ctx ends. A failure is said and tried again; recording goes on.
func (s *Service) keepPruned(ctx context.Context, r Retention) {
	if r.Every == 0 {
		r.Every = time.Minute
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
		return
	}
	if x := s.index.Load(); x != nil { // what an interrupted prune left
		if err := x.Trim(ctx, nil); err != nil && !errors.Is(err, index.ErrSpaceLater) && ctx.Err() == nil {
			s.log.Error("trimming the index behind an interrupted prune; it gives the same answers", "error", err)
		}
	}
	for ctx.Err() == nil {
		if err := s.pruneIfDue(ctx, &r); err != nil && ctx.Err() == nil {
			s.log.Error("pruning; recording goes on, and it is tried again", "error", err)
		}
		if pause.For(ctx, r.Every) != nil {
			return
		}
	}
}

func (s *Service) pruneIfDue(ctx context.Context, r *Retention) error {
	if r.Keep == 0 && r.KeepBytes == 0 {
		return nil
	}
	e, err := s.Engine()
	if err != nil {
		return err
	}
	h, err := heldNow(e)
	if err != nil {
		return err
	}
	q, ok := r.due(e.Clock().UnixNano(), h)
	if !ok {
		return nil
	}
	report, err := e.Prune(ctx, &q, nil)
	if err != nil || !report.Pruned {
		return err
	}
	s.log.Info("pruned", "horizon", report.Horizon.Offset, "events", report.EventsPruned, "forgot_removed", report.ForgetRemoved, "space_later", report.SpaceLater,
		"bytes_before", report.JournalBytesBefore+report.IndexBytesBefore, "bytes_after", report.JournalBytesAfter+report.IndexBytesAfter, "took_ms", report.TookMs)
	return nil
}

// PruneAtRest prunes a directory. It returns a *LiveError where a writer runs.
func PruneAtRest(ctx context.Context, dir string, q *query.PruneQuestion, o Options, progress func(step string, done, total uint64)) (report *query.PruneReport, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if err := datadir.Check(o.FS, dir); err != nil {
		return nil, err
	}
	w, err := OpenForWriting(ctx, dir, "kvjournal prune", o)
	if errors.Is(err, datadir.ErrLocked) {
		return nil, &LiveError{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Index.CatchUp(ctx, progressOf(w.Journal, o)); err != nil {
		return nil, fmt.Errorf("indexing: %w", err)
	}
	if !q.DryRun {
		if err := w.Index.Trim(ctx, progress); err != nil {
			return nil, err
		}
	}
	e := &query.Engine{Journal: w.Journal, Index: w.Index}
	if report, err = e.Prune(ctx, q, progress); err != nil || !report.Pruned || q.DryRun {
		return report, err
	}
	if err := w.Index.Flush(); err != nil {
		return nil, err
	}
	if err := w.Index.Settle(ctx); err != nil {
		return nil, err
	}
	report.IndexBytesAfter = w.Index.Bytes()
	return report, nil
}
