package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/pause"
)

const (
	// settledSublevels is how many tables of L0 one key may lie in when an index counts as settled: each is one more to look into.
	settledSublevels = 4
	// mostlyFresh: where L0 has more than this share of the bytes, all is compacted at once.
	mostlyFresh = 4
	// settleTries is how often a compaction may fail: Pebble itself never gives up.
	settleTries = 5
	// settleLook is how often is looked whether it has settled, or failed.
	settleLook = 20 * time.Millisecond
)

// Settle compacts what was just written, so that an index that is left at rest answers as fast as it can: with tables of L0 on top of each
// other, and those without filters, a question about a past moment was 20 times slower. It may be interrupted; what was compacted
// by then stays so.
func (x *Index) Settle(ctx context.Context) error {
	if err := x.letCompact(); err != nil {
		return err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return x.gone
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go x.giveUp(ctx, stop)
	m := x.db.Metrics()
	total := m.Total()
	if l0 := &m.Levels[0]; l0.TablesSize*mostlyFresh >= total.TablesSize {
		if err := x.db.Compact(ctx, []byte{0}, []byte{0xff}, true); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("compacting the index: %w", err)
		}
		return nil
	}
	for x.db.Metrics().Levels[0].Sublevels > settledSublevels {
		if pause.For(ctx, settleLook) != nil {
			return fmt.Errorf("compacting the index: %w", context.Cause(ctx))
		}
	}
	return nil
}

// letCompact flushes where compactions are due: a database that was just opened begins none before a flush (openPebble), and without
// new rows none may come.
func (x *Index) letCompact() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.gone != nil || x.db.Metrics().Levels[0].Sublevels <= settledSublevels {
		return x.gone
	}
	applied := binary.BigEndian.AppendUint64(nil, x.applied.Load()) // an empty memtable is not flushed
	if err := x.db.Set([]byte{keyApplied}, applied, pebble.NoSync); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	return x.startFlush()
}

// giveUp ends ctx, by stop, when compactions have failed too often.
func (x *Index) giveUp(ctx context.Context, stop context.CancelCauseFunc) {
	before, _ := x.opts.background.Errors()
	for pause.For(ctx, settleLook) == nil {
		if n, last := x.opts.background.Errors(); n >= before+settleTries {
			stop(last)
			return
		}
	}
}
