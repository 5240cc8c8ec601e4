package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// An index that holds more than its journal's baseline leaves it can be computed anew from the baseline, or have what it has too much
// deleted. The one costs in proportion to what stays, and room for a second index; the other to what goes, and to reading all.

// Costs of a row, relative to that of applying an event.
const (
	costLoad   = 0.3 // of a row of the baseline that is loaded
	costRead   = 0.2 // of a row that is read to see whether it stays
	costDelete = 1.2 // of a row that is deleted, and is compacted away
)

// anew decides how an index is trimmed: whether it is computed anew, where rows of a baseline and events behind it stay and gone rows go. free is
// how much room there is, size that of the index now, bytes. It is pure.
func anew(rows, events, gone, free, size uint64) bool {
	all := float64(rows + events + gone)
	stays := float64(rows + events)
	if all == 0 {
		return true
	}
	if need := float64(size) * stays / all * 1.2; float64(free) < need {
		return false
	}
	return costLoad*float64(rows)+float64(events) < costRead*all+costDelete*float64(gone)
}

// deletedAtOnce is how many rows one batch deletes.
const deletedAtOnce = 10_000

// deletePruned deletes the rows up to the horizon that the baseline has not, while records are applied and questions answered. A crash
// leaves it to be done again.
func (x *Index) deletePruned(ctx context.Context, progress func(done, total uint64)) error {
	v, err := x.View() // holds the database, too
	if err != nil {
		return err
	}
	defer v.Close()
	h := x.j.Horizon()
	it, err := v.snap.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	d := deleter{x: x, horizon: h.Offset, it: it, batch: x.db.NewBatch(), total: v.rowsAbout()}
	defer func() { d.batch.Close() }()
	d.progress = progress
	it.First()
	err = x.j.EachBaseline(ctx, func(key, value []byte) error {
		if key[0] == keyBaseline {
			d.base = bytes.Clone(value)
		}
		return d.upTo(ctx, key)
	})
	if err == nil {
		err = d.upTo(ctx, nil)
	}
	if err == nil {
		err = d.finish()
	}
	if err != nil {
		return fmt.Errorf("deleting what was pruned from the index: %w", err)
	}
	return nil
}

// rowsAbout is about how many rows there are, for progress.
func (v *View) rowsAbout() (n uint64) {
	for _, s := range v.sources {
		n += 2 * s.Events // history and live
	}
	return n
}

// deleter goes over an index beside its baseline.
type deleter struct {
	x        *Index
	horizon  uint64
	it       *pebble.Iterator
	batch    *pebble.Batch
	base     []byte
	done     uint64
	total    uint64
	progress func(done, total uint64)
}

// upTo deletes what lies before the baseline's next key, nil: before the end, and steps over that key.
func (d *deleter) upTo(ctx context.Context, key []byte) error {
	for ; d.it.Valid(); d.it.Next() {
		k := d.it.Key()
		c := -1
		if key != nil {
			c = bytes.Compare(k, key)
		}
		if c > 0 {
			return nil
		}
		if d.done++; d.done%(1<<14) == 0 {
			d.progress(min(d.done, d.total), d.total)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if c == 0 {
			d.it.Next()
			return nil
		}
		gone, err := prunedRow(k, d.horizon)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		if err := d.batch.Delete(k, nil); err != nil {
			return err
		}
		if d.batch.Count() >= deletedAtOnce {
			if err := d.apply(); err != nil {
				return err
			}
		}
	}
	return d.it.Error()
}

// prunedRow reports whether a row that the baseline of a horizon has not is one that it would have if it stayed.
func prunedRow(k []byte, horizon uint64) (bool, error) {
	at := 0
	switch k[0] {
	case keyCheckpoint:
		return len(k) == 9 && binary.BigEndian.Uint64(k[1:]) < horizon, nil
	case keyClear, keyProof, keyException:
		at = split(k)
	case keyHistory:
		n := split(k)
		end := mediumEnd(k[n:])
		if end < 0 {
			return false, errEvidence
		}
		at = n + end
	default:
		return false, nil
	}
	p, ok := cutPosition(k[at:])
	if !ok {
		return false, errEvidence
	}
	return p.Offset <= horizon, nil
}

func (d *deleter) apply() error {
	if err := d.write(); err != nil {
		return err
	}
	if err := d.batch.Close(); err != nil {
		return err
	}
	d.batch = d.x.db.NewBatch()
	return nil
}

// write makes the batch be seen.
func (d *deleter) write() error {
	d.x.fresh.begin(allKeyspaces)
	defer d.x.fresh.end()
	d.x.hot.reset()
	return d.x.db.Apply(d.batch, pebble.NoSync)
}

// finish writes what the rows begin with now: all of it is there.
func (d *deleter) finish() error {
	var b Base
	if err := json.Unmarshal(d.base, &b); err != nil {
		return errors.Join(errEvidence, err)
	}
	if err := d.batch.Set([]byte{keyBaseline}, d.base, nil); err != nil {
		return err
	}
	if err := d.apply(); err != nil {
		return err
	}
	d.x.take()
	defer d.x.writing.Unlock()
	if d.x.gone != nil {
		return d.x.gone
	}
	d.x.a.horizon = b.Offset
	return nil
}

// compactedAtOnce is about how many bytes of tables are compacted at once: so much room it takes.
const compactedAtOnce = 256 << 20

// compactHistory gives the space of deleted rows back, range by range.
func (x *Index) compactHistory(ctx context.Context, progress func(done, total uint64)) error {
	if err := x.Flush(); err != nil {
		return err
	}
	v, err := x.View()
	if err != nil {
		return err
	}
	defer v.Close()
	bounds, err := v.tableBounds()
	if err != nil {
		return err
	}
	step := max(1, compactedAtOnce/(8<<20))
	low := []byte{keyClear}
	for i := 0; ; i += step {
		high := []byte{keyException + 1}
		if i+step < len(bounds) {
			high = bounds[i+step]
		}
		if err := patiently(ctx, x.opts.ReclaimPatience, func(ctx context.Context) error { return x.db.Compact(ctx, low, high, false) }); err != nil {
			return fmt.Errorf("giving the index's space back: %w", err)
		}
		progress(uint64(min(i+step, len(bounds))), uint64(max(1, len(bounds))))
		if i+step >= len(bounds) {
			return nil
		}
		low = high
	}
}

// ErrSpaceLater: the journal was pruned, and the space of that comes back later, as the database finds time.
var ErrSpaceLater = errors.New("compactions are behind; the space comes back as they catch up")

// patiently does something that ends with its context, and waits so long at most (0: for ever); then it returns ErrSpaceLater.
func patiently(ctx context.Context, patience time.Duration, f func(ctx context.Context) error) error {
	if patience == 0 {
		return f(ctx)
	}
	bounded, stop := context.WithTimeoutCause(ctx, patience, ErrSpaceLater)
	defer stop()
	err := f(bounded)
	if err != nil && context.Cause(bounded) == ErrSpaceLater {
		return ErrSpaceLater
	}
	return err
}
