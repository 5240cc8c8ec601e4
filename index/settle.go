package index

import (
	"context"
	"fmt"
	"time"
)

const (
	// settledSublevels is how many tables of L0 one key may lie in when an index counts as settled: each is one more to look into.
	settledSublevels = 4
	// mostlyFresh: where L0 has more than this share of the bytes, all is compacted at once.
	mostlyFresh = 4
)

// Settle compacts what was just written, so that an index that is left at rest answers as fast as it can: with tables of L0 on top of each
// other, and those without filters, a question about a past moment was 20 times slower. It may be interrupted; what was compacted
// by then stays so.
func (x *Index) Settle(ctx context.Context) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return x.gone
	}
	m := x.db.Metrics()
	total := m.Total()
	if l0 := &m.Levels[0]; l0.TablesSize*mostlyFresh >= total.TablesSize {
		if err := x.db.Compact(ctx, []byte{0}, []byte{0xff}, true); err != nil {
			return fmt.Errorf("compacting the index: %w", err)
		}
		return nil
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for x.db.Metrics().Levels[0].Sublevels > settledSublevels {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}
