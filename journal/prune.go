package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Prune makes the baseline current and deletes the records that it stands for, in one synced batch: a crash leaves the old horizon or the
// new one. Whole blocks go; of one that reaches beyond the horizon nothing is shown up to there. The records at keep stay readable (Kept).
// Appending goes on meanwhile; the space is free once Reclaim ends.
func (w *BaselineWriter) Prune(keep []uint64) (Horizon, error) {
	j := w.j
	if err := w.finishBlock(); err != nil {
		return Horizon{}, err
	}
	if err := w.finishTable(); err != nil {
		return Horizon{}, err
	}
	if err := j.opts.FS.RemoveAll(j.opts.FS.PathJoin(j.dir, baselineFolder)); err != nil {
		return Horizon{}, fmt.Errorf("removing the baseline's tables: %w", err)
	}
	j.sealMu.Lock() // blocks stay as they are meanwhile
	defer j.sealMu.Unlock()
	h := &w.horizon
	at, err := j.blockAt(nil, h.Offset)
	if err != nil {
		return Horizon{}, err
	}
	if h.Offset > at.Last() {
		return Horizon{}, fmt.Errorf("offset %d: %w", h.Offset, ErrNotFound)
	}
	if h.Clocks, err = j.clocksAt(h.Offset, at); err != nil {
		return Horizon{}, err
	}
	end := h.Offset + 1 // blocks that begin before it go
	if at.Last() > h.Offset {
		end = at.First
	}
	kept, err := j.keptBlocks(h.Offset, keep)
	if err != nil {
		return Horizon{}, err
	}
	batch := j.db.NewBatch()
	defer batch.Close()
	if err := j.deleteRecords(batch, end, kept); err != nil {
		return Horizon{}, err
	}
	if err := batch.DeleteRange(baselineKey(0, 0), baselineKey(h.Generation, 0), nil); err != nil {
		return Horizon{}, err
	}
	v, err := json.Marshal(h)
	if err == nil {
		err = batch.Set(metaBaseline, v, nil)
	}
	if err == nil {
		err = batch.Set(metaSealed, binary.BigEndian.AppendUint64(nil, max(j.sealedTo, end)), nil)
	}
	if err == nil {
		err = j.failed() // Pebble panics where its log has failed
	}
	if err != nil {
		return Horizon{}, err
	}
	j.horizon.Store(h) // first: who finds no record must find why
	if err := j.db.Apply(batch, pebble.Sync); err != nil {
		err = fmt.Errorf("pruning the journal: %w", err)
		j.failure.CompareAndSwap(nil, &err)
		return Horizon{}, err
	}
	j.sealedTo, j.unsealed = max(j.sealedTo, end), run{}
	w.j = nil
	return *h, nil
}

// deleteRecords deletes the blocks that begin before end, and the rows beside them, but for those that begin at kept.
func (j *Journal) deleteRecords(batch *pebble.Batch, end uint64, kept []uint64) error {
	from := uint64(0)
	for _, first := range append(slices.Clone(kept), end) {
		if first > end {
			break
		}
		if from < first {
			if err := batch.DeleteRange(blockKey(from), blockKey(first), nil); err != nil {
				return err
			}
		}
		from = first + 1
	}
	for _, family := range []byte{keyPlace, keySeq, keyTime} {
		if err := j.deleteRuns(batch, family, func(first uint64) bool {
			_, stays := slices.BinarySearch(kept, first)
			return first < end && !stays
		}); err != nil {
			return err
		}
	}
	return nil // spans stay: they are few, and newer ones may grow into them
}

// deleteRuns deletes the rows of a family, whose keys end in the first offset of a block, for which gone holds: a range for each run.
func (j *Journal) deleteRuns(batch *pebble.Batch, family byte, gone func(first uint64) bool) error {
	var from, to []byte
	flush := func() error {
		if from == nil {
			return nil
		}
		err := batch.DeleteRange(from, append(bytes.Clone(to), 0), nil)
		from = nil
		return err
	}
	err := j.scan(family, func(k, _ []byte) error {
		if !gone(last8(k)) {
			return flush()
		}
		if from == nil {
			from = bytes.Clone(k)
		}
		to = append(to[:0], k...)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// Reclaim gives the space of what was pruned back to the filesystem. Appending goes on meanwhile.
func (j *Journal) Reclaim(ctx context.Context) error {
	h := j.Horizon()
	if h.Generation == 0 {
		return nil
	}
	for _, r := range [][2][]byte{{blockKey(0), blockKey(h.Offset)}, {baselineKey(0, 0), baselineKey(h.Generation, 0)}, {{keyPlace}, {keyPlace + 1}}, {{keySeq}, {keyTime + 1}}} {
		if err := j.failed(); err != nil {
			return err
		}
		if err := j.db.Compact(ctx, r[0], r[1], false); err != nil {
			return fmt.Errorf("giving the space of pruned records back: %w", err)
		}
	}
	return nil
}

// BytesBehind is about how many bytes the blocks take that begin behind an offset.
func (j *Journal) BytesBehind(offset uint64) (uint64, error) {
	return j.db.EstimateDiskUsage(blockKey(offset+1), []byte{keyBlock + 1})
}

// BaselineBytes is about how many bytes the baseline takes.
func (j *Journal) BaselineBytes() (uint64, error) {
	return j.db.EstimateDiskUsage([]byte{keyBaseline}, []byte{keyBaseline + 1})
}
