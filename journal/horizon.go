package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Horizon is where a pruned journal begins: the records before it are gone, and a baseline stands for them. The zero Horizon is
// that of a journal that was never pruned.
type Horizon struct {
	// Generation counts the baselines, from 1 on.
	Generation uint64 `json:"generation"`
	// Offset is that of the newest record that the baseline stands for; it is the first that can still be asked about.
	Offset uint64 `json:"offset"`
	// HasTime and Time are the publisher time (ms) at it, Received is its own time on our clock, ns.
	HasTime  bool  `json:"has_time,omitempty"`
	Time     int64 `json:"time,omitempty"`
	Received int64 `json:"received"`
	// Events is how many of the events that Totals count lie up to Offset.
	Events uint64 `json:"events"`
	// Format is that of the baseline's rows, which are the index's.
	Format uint32 `json:"format"`
	// Blocks and Rows say how many the baseline has; Checksum (crc32c) is over its blocks' own, in their order.
	Blocks   uint64 `json:"blocks"`
	Rows     uint64 `json:"rows"`
	Checksum uint32 `json:"checksum"`
	// Cuts are, by source, the offsets from which on what was so is known: that of the source's newest message, or of what answers
	// spoke of by default, at Offset. They lie before it where the source was silent.
	Cuts map[uint32]uint64 `json:"cuts,omitempty"`
	// Clocks are the highest publisher times up to Offset, by source; absent: it had none.
	Clocks map[uint32]int64 `json:"clocks,omitempty"`
	// Forgotten is the offset up to which objects may have been forgotten of which the last that was known is that they were removed,
	// 0: none were.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// Cut is the offset from which on what was so in a source is known.
func (h *Horizon) Cut(source uint32) uint64 {
	if c, ok := h.Cuts[source]; ok {
		return c
	}
	return 0 // a source that is newer than the horizon: nothing of it is gone
}

// cutOr is the source's cut, or otherwise where it has none.
func (h *Horizon) cutOr(source uint32, otherwise uint64) uint64 {
	if c, ok := h.Cuts[source]; ok {
		return c
	}
	return otherwise
}

// Moment is where the horizon lies, for people.
func (h *Horizon) Moment() string {
	at := time.Unix(0, h.Received)
	if h.HasTime {
		at = time.UnixMilli(h.Time)
	}
	return fmt.Sprintf("offset %d, %s", h.Offset, at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// PrunedError is the answer to a question about what was pruned.
type PrunedError struct{ Horizon Horizon }

func (e *PrunedError) Error() string {
	return fmt.Sprintf("that lies before the horizon: what came before %s was pruned; offset:%d is the earliest moment that can be asked about", e.Horizon.Moment(), e.Horizon.Offset)
}

// Horizon is where the journal begins now.
func (j *Journal) Horizon() Horizon { return *j.horizon.Load() }

// Format is the least format of a data directory (datadir.Format) whose programs read this journal rightly.
func (j *Journal) Format() int {
	if j.Horizon().Generation > 0 {
		return datadir.FormatPruned
	}
	return datadir.FormatWhole
}

// pruned is the error for an offset before the horizon, nil where it lies behind.
func (j *Journal) pruned(offset uint64) error {
	if h := j.horizon.Load(); offset < h.Offset {
		return &PrunedError{*h}
	}
	return nil
}

var metaBaseline = append([]byte{keyMeta}, "baseline"...)

func (j *Journal) loadHorizon() error {
	h := &Horizon{}
	switch v, err := j.get(metaBaseline); {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case json.Unmarshal(v, h) != nil || h.Generation == 0:
		return &CorruptError{What: "the row that makes a baseline current does not decode"}
	}
	j.horizon.Store(h)
	return nil
}

// clocksAt are the highest publisher times up to the record at an offset, by source. b holds the record.
func (j *Journal) clocksAt(offset uint64, b *Block) (map[uint32]int64, error) {
	clocks := maps.Clone(j.horizon.Load().Clocks)
	if clocks == nil {
		clocks = map[uint32]int64{}
	}
	see := func(source uint32, t int64) {
		if old, ok := clocks[source]; !ok || old < t {
			clocks[source] = t
		}
	}
	for _, s := range j.Sources() {
		it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: placeKey(s.ID, 0), UpperBound: placeKey(s.ID, b.First)})
		if err != nil {
			return nil, err
		}
		if it.Last() && len(it.Value()) == 8 {
			see(s.ID, unordered(last8(it.Value())))
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	for i := range b.Len() {
		if h := b.Header(i); b.First+uint64(i) <= offset && h.Counts() && h.HasTime {
			see(h.Source, h.Time)
		}
	}
	return clocks, nil
}

// keptBlocks are the first offsets of the blocks before the horizon that stay: that of the horizon itself, those that hold the newest messages
// of the sources, which answers and recorders go back to, those of the records that the caller names, and the journal's last. They ascend.
func (j *Journal) keptBlocks(horizon uint64, offsets []uint64) ([]uint64, error) {
	offsets = append([]uint64{horizon}, offsets...)
	for _, s := range j.Sources() {
		last, err := j.LastBatch(s.ID, horizon)
		if err == nil {
			offsets = append(offsets, last.Offset)
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		p, err := j.position(s.ID)
		if err != nil {
			return nil, err
		}
		if p.Last != 0 {
			offsets = append(offsets, p.Last)
		}
	}
	var firsts []uint64
	var b *Block
	for _, o := range append(offsets, j.Durable()) {
		var err error
		if b, err = j.blockAt(b, o); errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if o <= b.Last() && b.First <= horizon {
			firsts = append(firsts, b.First)
		}
	}
	slices.Sort(firsts)
	return slices.Compact(firsts), nil
}
