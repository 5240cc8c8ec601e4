package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// A baseline is kept whole or not at all: without one of its rows an answer could be wrong and confirmed. Where it is kept, nothing is lost
// by what lies before its horizon, whatever is there. Where it is not, all before the horizon is lost, and marked like any other loss.

// keepBaseline puts a block of a baseline on the pile, if it is whole: 'a' · key · ^sequence number -> block.
func (r *repairer) keepBaseline(row pebblefile.Row) error {
	if row.Deleted || len(row.Key) != 17 {
		return nil
	}
	var err error
	if r.rows, err = r.codec.baselineBlock(r.rows, row.Key, row.Value); err != nil {
		return nil
	}
	return r.pile.Set(binary.BigEndian.AppendUint64(bytes.Clone(row.Key), ^row.Seq), row.Value, pebble.NoSync)
}

// chooseBaseline takes the newest of the horizons that were found whose baseline is whole.
func (r *repairer) chooseBaseline() error {
	slices.SortFunc(r.horizons, func(a, b Horizon) int { return int(b.Generation) - int(a.Generation) })
	for i := range r.horizons {
		h := &r.horizons[i]
		whole, err := r.eachBaselineBlock(h, func(_, _ []byte) error { return nil })
		if err != nil {
			return err
		}
		if whole {
			r.horizon, r.beginning, r.Horizon, r.BaselineRows = *h, h.Offset, h.Offset, h.Rows
			return nil
		}
	}
	r.BaselineLost = len(r.horizons) > 0
	return nil
}

// eachBaselineBlock calls f with the blocks of a baseline in order, and says whether all of them are there.
func (r *repairer) eachBaselineBlock(h *Horizon, f func(key, block []byte) error) (whole bool, err error) {
	it, err := r.pile.NewIter(&pebble.IterOptions{LowerBound: baselineKey(h.Generation, 0), UpperBound: baselineKey(h.Generation, h.Blocks)})
	if err != nil {
		return false, err
	}
	defer it.Close()
	in := &baselineReader{h: h, codec: r.codec}
	for ok := it.First(); ok; ok = it.Next() {
		if err := r.ctx.Err(); err != nil {
			return false, err
		}
		key := it.Key()[:17]
		if in.blocks > 0 && bytes.Equal(key, baselineKey(h.Generation, in.blocks-1)) {
			continue // an older one, of a baseline that was given up
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		if in.block(key, v, func(_, _ []byte) error { return nil }) != nil {
			return false, nil
		}
		if err := f(key, v); err != nil {
			return false, err
		}
	}
	return it.Error() == nil && in.end() == nil, it.Error()
}

// writeBaseline begins the new journal with the baseline, if there is one.
func (r *repairer) writeBaseline(j *Journal, to string) error {
	h := &r.horizon
	if h.Generation == 0 {
		return nil
	}
	if err := datadir.Raise(r.o.FS, to, datadir.FormatPruned); err != nil {
		return err
	}
	if _, err := r.eachBaselineBlock(h, func(key, block []byte) error { return j.db.Set(key, block, pebble.NoSync) }); err != nil {
		return err
	}
	v, err := json.Marshal(h)
	if err == nil {
		err = j.db.Set(metaBaseline, v, pebble.NoSync)
	}
	if err == nil { // what was kept is not sealed, as behind a prune
		err = j.db.Set(metaSealed, binary.BigEndian.AppendUint64(nil, h.Offset+1), pebble.Sync)
	}
	j.horizon.Store(h)
	r.atHorizon(j)
	return err
}

// atHorizon makes the clocks of the new journal what they were at the horizon. Of what was kept before it, they show nothing.
func (r *repairer) atHorizon(j *Journal) {
	for source, highest := range r.horizon.Clocks {
		*j.clockOf(source) = clock{has: true, highest: highest}
	}
}

// totalsAtHorizon are what the totals count up to the horizon. Of the messages that were pruned only the old row of totals tells, if all
// behind the horizon is there.
func (r *repairer) totalsAtHorizon() Totals {
	t := Totals{Events: r.horizon.Events}
	was, behind := r.totals, &r.behind
	if was == nil || r.Holes > 0 || was.Messages < behind.Messages || was.RawBytes < behind.RawBytes || was.Duplicates < behind.Duplicates || was.Damaged < behind.Damaged {
		return t
	}
	t.Messages, t.RawBytes = was.Messages-behind.Messages, was.RawBytes-behind.RawBytes
	t.Duplicates, t.Damaged = was.Duplicates-behind.Duplicates, was.Damaged-behind.Damaged
	return t
}

// cross goes from what was kept up to the horizon to what lies behind it. The horizon's own record must be there; if it is not, one that
// tells so takes its place. It changes nothing: the baseline tells what was so behind it.
func (w *rewriter) cross() error {
	if w.crossed || w.r.horizon.Generation == 0 {
		return nil
	}
	w.crossed = true
	at := w.r.horizon.Offset
	if !w.r.hasHorizon {
		if err := w.loss(at, at, at, nil); err != nil {
			return err
		}
	}
	if err := w.commit(); err != nil {
		return err
	}
	w.r.atHorizon(w.j)
	w.j.totals = w.r.totalsAtHorizon()
	return nil
}

// count adds the records of a block from an offset on to those behind the horizon.
func (r *repairer) count(b *Block, from uint64) error {
	for o := from; o <= b.Last(); o++ {
		i := int(o - b.First)
		frames, err := b.Frames(i, r.frames[:0], new([8]byte))
		if err != nil {
			return err
		}
		r.frames = frames
		size := 0
		for _, f := range frames {
			size += len(f)
		}
		r.behind.count(b.Header(i), size)
	}
	return nil
}
