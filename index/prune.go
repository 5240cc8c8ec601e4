package index

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/kvjournal/kvjournal/journal"
)

// Point is a place up to which the journal may be pruned.
type Point struct {
	Offset   uint64
	Received int64  // receive time, ns, of the record behind it
	Events   uint64 // up to it
}

// Points lists the checkpoints behind the horizon, the oldest first.
func (v *View) Points() (points []Point, err error) {
	err = v.each(checkpointKey(v.base.Offset+1), checkpointKey(v.applied+1), false, func(key, value []byte) error {
		c, err := decodeCheckpoint(key, value)
		if err == nil {
			points = append(points, Point{c.Offset, c.Received, c.Events})
		}
		return err
	})
	return points, err
}

// ErrNothingToPrune: there is no place behind the horizon up to which the journal may be pruned as was asked.
var ErrNothingToPrune = errors.New("nothing to prune")

// Prune moves the horizon to the newest checkpoint up to an offset: it writes the baseline, deletes the records it stands for, computes the
// index anew from it or takes from it what is too much, and gives the space back. Appending, following and questions go on meanwhile. progress
// is told of each step how far it is. With ErrSpaceLater all is done but giving the space back. Another error behind the deletion leaves the new
// horizon, and an index that gives the same answers and is larger than it need be.
func (x *Index) Prune(ctx context.Context, offset uint64, o BaselineOptions, progress func(step string, done, total uint64)) (journal.Horizon, error) {
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	x.pruning.Lock()
	defer x.pruning.Unlock()
	applied := x.Applied()
	if err := x.Flush(); err != nil { // the horizon must not pass what a crash leaves of the index
		return journal.Horizon{}, err
	}
	before := x.j.Horizon()
	h, err := x.pruneJournal(ctx, min(offset, applied), o, progress)
	if err != nil {
		return h, err
	}
	return h, x.trim(ctx, before.Rows+h.Events-before.Events, progress)
}

// Trim takes from the index what it holds more than the journal's baseline leaves it, as after an interrupted Prune.
func (x *Index) Trim(ctx context.Context, progress func(step string, done, total uint64)) error {
	x.pruning.Lock()
	defer x.pruning.Unlock()
	v, err := x.View()
	if err != nil {
		return err
	}
	whole := v.Base().Generation == x.j.Horizon().Generation
	if err := v.Close(); err != nil || whole {
		return err
	}
	if progress == nil {
		progress = func(string, uint64, uint64) {}
	}
	return x.trim(ctx, x.j.Horizon().Events, progress)
}

// trim takes from the index what the baseline has not, which are about so many rows less those of the baseline.
func (x *Index) trim(ctx context.Context, rows uint64, progress func(step string, done, total uint64)) error {
	h := x.j.Horizon()
	events := x.j.Durables().Totals.Events
	events -= min(events, h.Events)
	free := uint64(math.MaxUint64) // where it is not known
	if usage, err := x.opts.FS.GetDiskUsage(x.dir); err == nil {
		free = usage.AvailBytes
	}
	var err error
	again := x.anew(h.Rows, events, rows-min(rows, h.Rows), free, x.Bytes())
	if again {
		total := x.j.Durable()
		err = x.rebuild(ctx, func(applied uint64) { progress("computing the index anew", min(applied, total), total) })
		again = !noRoom(err)
	}
	if !again {
		if err = x.deletePruned(ctx, func(done, total uint64) { progress("trimming the index", done, total) }); err == nil {
			err = x.compactHistory(ctx, func(done, total uint64) { progress("compacting the index", done, total) })
		}
	}
	if err != nil && !errors.Is(err, ErrSpaceLater) {
		return fmt.Errorf("the journal was pruned, but not its index, which gives the same answers: %w", err)
	}
	progress("giving the space back", 0, 1)
	if jerr := patiently(ctx, x.opts.ReclaimPatience, x.j.Reclaim); jerr != nil {
		err = jerr
	}
	if err == nil {
		progress("giving the space back", 1, 1)
	}
	return err
}

// pruneJournal writes the baseline and deletes the records.
func (x *Index) pruneJournal(ctx context.Context, offset uint64, o BaselineOptions, progress func(step string, done, total uint64)) (h journal.Horizon, err error) {
	v, err := x.View()
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	v.Scans()
	c, err := v.PruneTo(offset)
	if err != nil {
		return h, err
	}
	if now := x.j.Horizon(); c == nil || c.Offset <= now.Offset && !(o.ForgetRemoved && now.Forgotten < now.Offset) {
		return now, ErrNothingToPrune
	}
	at, err := x.j.Record(c.Offset)
	if err != nil {
		return h, err
	}
	o.Generation = x.j.Horizon().Generation + 1
	base := v.NewBase(c, o)
	h = journal.Horizon{Offset: c.Offset, Received: at.Received, Format: formatVersion, Cuts: base.Cuts, Forgotten: base.Forgotten, Events: c.Events}
	for _, s := range c.Sources {
		if s.Last.HasTime && (!h.HasTime || h.Time < s.Last.Time) {
			h.HasTime, h.Time = true, s.Last.Time
		}
	}
	w, err := x.j.NewBaseline(h)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	if err := v.Baseline(ctx, c, o, w.Add, func(done, total uint64) { progress("writing the baseline", done, total) }); err != nil {
		return h, err
	}
	keep, err := v.keptMarks(c, &base)
	if err != nil {
		return h, err
	}
	for id, s := range c.Sources { // the batch before what answers speak of by default
		if s.AsOf.Offset == 0 {
			continue
		}
		last, err := x.j.LastBatch(id, s.AsOf.Offset)
		if err == nil {
			keep = append(keep, last.Offset)
		} else if !errors.Is(err, journal.ErrNotFound) {
			return h, err
		}
	}
	return w.Prune(keep)
}

// keptMarks are the offsets of the records of the marks that answers from a checkpoint on tell of.
func (v *View) keptMarks(c *Checkpoint, b *Base) (offsets []uint64, err error) {
	for id := range c.Sources {
		for _, at := range []uint64{b.Cuts[id], c.Offset} {
			m, ok, err := v.Mark(id, at)
			if err != nil {
				return nil, err
			}
			if ok {
				offsets = append(offsets, m.From)
			}
		}
	}
	return offsets, nil
}
