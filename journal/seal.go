package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Sealing merges runs of small consecutive blocks, as light load leaves them, into blocks of Options.BlockRaw. It never
// changes a record: the merged block is decoded and compared with its sources before it replaces them, block and
// deletions in one atomic batch. A crash leaves the one or the other.

// keepSealing seals in the background whenever enough has become durable.
func (j *Journal) keepSealing() {
	defer j.background.Done()
	for {
		select {
		case <-j.stopping.Done():
			return
		case <-j.sealWanted:
		}
		if err := j.seal(j.stopping, false); err != nil && !errors.Is(err, context.Canceled) {
			j.opts.Log.Error("sealing the journal", "error", err)
		}
	}
}

// unseen is what became durable since the sealer was last called. A pass that finds nothing to merge costs as much as to merge a small block, so
// there is none for each commit.
type unseen struct{ records, raw int }

// add counts a commit in, and reports whether the sealer should look.
func (u *unseen) add(records, raw, blockRaw int) bool {
	u.records += records
	u.raw += raw
	if u.raw < blockRaw/4 && u.records < maxBlockRecords/4 {
		return false
	}
	*u = unseen{}
	return true
}

// Seal merges all small blocks, the last and incomplete run too.
func (j *Journal) Seal(ctx context.Context) error {
	if j.opts.ReadOnly {
		return ErrReadOnly
	}
	return j.seal(ctx, true)
}

// run is a row of consecutive small blocks that will be one.
type run struct {
	blocks []uint64 // first offsets
	last   uint64   // last offset
	raw    int
}

// records is how many it holds.
func (r *run) records() int {
	if len(r.blocks) == 0 {
		return 0
	}
	return int(r.last - r.blocks[0] + 1)
}

func (j *Journal) seal(ctx context.Context, all bool) error {
	j.sealMu.Lock()
	defer j.sealMu.Unlock()
	// The run that the pass before left unfinished goes on: to read it again for every commit would cost more than all else.
	r, from := j.unsealed, j.sealedTo
	j.unsealed = run{}
	if len(r.blocks) > 0 {
		from = r.last + 1
	}
	durable := j.Durable()
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: blockKey(from), UpperBound: blockKey(durable + 1)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := sizeOf(it)
		if err != nil {
			return err
		}
		if b.last > durable {
			break
		}
		hole := len(r.blocks) > 0 && b.first != r.last+1
		large := j.large(b.raw, b.records)
		if hole || large || (len(r.blocks) > 0 && (r.raw+b.raw > maxBlockRaw || r.records()+b.records > maxBlockRecords)) {
			if err := j.merge(r, b.first); err != nil {
				return err
			}
			r = run{}
		}
		if large {
			j.sealedTo = b.last + 1
			continue
		}
		r.blocks = append(r.blocks, b.first)
		r.last = b.last
		r.raw += b.raw
		if r.raw >= j.opts.BlockRaw || r.records() >= maxBlockRecords {
			if err := j.merge(r, r.last+1); err != nil {
				return err
			}
			r = run{}
		}
	}
	if err := it.Error(); err != nil {
		return readError(j.sealedTo, err)
	}
	if all {
		return j.merge(r, 0)
	}
	j.unsealed = r
	return nil
}

// large reports whether sealing leaves a block of that many raw bytes and records as it is.
func (j *Journal) large(raw, records int) bool {
	return raw >= j.opts.BlockRaw/2 || records >= maxBlockRecords/2
}

// blockSize is what decides whether a block is merged. Its head tells it: most blocks are large, and to unpack the headers of each for that was a
// third of all that an append cost, where a message is one event.
type blockSize struct {
	first, last  uint64
	records, raw int
}

// sizeOf is the size of the block that it stands at.
func sizeOf(it *pebble.Iterator) (blockSize, error) {
	first := last8(it.Key())
	v, err := it.ValueAndErr()
	if err != nil {
		return blockSize{}, readError(first, err)
	}
	p, err := blockPartsOf(first, v)
	return blockSize{first, first + p.count - 1, int(p.count), int(p.payloadRaw)}, err
}

// merge replaces the run's blocks by one. sealedTo, if not 0, is where sealing goes on.
func (j *Journal) merge(r run, sealedTo uint64) error {
	if sealedTo != 0 {
		j.sealedTo = sealedTo
	}
	if len(r.blocks) < 2 {
		return nil
	}
	m := j.merging
	if m == nil {
		m = &merging{}
	}
	j.merging = nil // not kept behind an error
	batch := j.db.NewBatch()
	defer batch.Close()
	var rows blockRows
	highest, err := j.takeRun(m, r, &rows, batch)
	if err != nil {
		return err
	}
	m.build.pack(j.codec)
	if err := m.sameRecords(r, j.codec); err != nil {
		return err
	}
	if err := batch.Set(blockKey(r.blocks[0]), m.build.stored, nil); err != nil {
		return err
	}
	if err := batch.DeleteRange(blockKey(r.blocks[0]+1), blockKey(r.last+1), nil); err != nil {
		return err
	}
	if err := rows.write(batch, r.blocks[0], func(source uint32) (int64, bool) {
		t, ok := highest[source]
		return t, ok
	}); err != nil {
		return err
	}
	if sealedTo != 0 {
		if err := batch.Set(metaSealed, binary.BigEndian.AppendUint64(nil, sealedTo), nil); err != nil {
			return err
		}
	}
	if err := j.failed(); err != nil {
		return err // Pebble panics where its log has failed
	}
	j.merging = m
	// Not synced: if a crash loses it, the small blocks are still there.
	return j.db.Apply(batch, pebble.NoSync)
}

// takeRun reads the run's blocks into m and rows, and has the batch delete their rows. It returns the highest time of each source that a time
// row of theirs told.
func (j *Journal) takeRun(m *merging, r run, rows *blockRows, batch *pebble.Batch) (highest map[uint32]int64, err error) {
	m.build.reset(r.blocks[0])
	m.src.reset()
	var part blockRows
	var frames [][]byte
	var seq [8]byte
	highest = map[uint32]int64{}
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: blockKey(r.blocks[0]), UpperBound: blockKey(r.last + 1)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	b := &m.block
	on := it.First()
	for _, first := range r.blocks {
		if !on || last8(it.Key()) != first {
			if err := it.Error(); err != nil {
				return nil, readError(first, err)
			}
			return nil, &CorruptError{Offset: first, What: "block is gone"}
		}
		if b, err = j.blockFrom(it, b); err != nil {
			return nil, err
		}
		on = it.Next()
		part.reset()
		for i := range b.Len() {
			h := b.Header(i)
			if frames, err = b.Frames(i, frames[:0], &seq); err != nil {
				return nil, err
			}
			m.build.add(h, frames)
			rows.add(h)
			part.add(h)
		}
		m.src.add(b)
		for _, s := range part.places {
			t, ok, err := j.timeRow(s, first)
			if err != nil {
				return nil, err
			}
			if ok {
				highest[s] = t
				if err := batch.Delete(timeKey(s, t, first), nil); err != nil {
					return nil, err
				}
			}
			if err := batch.Delete(placeKey(s, first), nil); err != nil {
				return nil, err
			}
		}
		for _, s := range part.seqs {
			if err := batch.Delete(seqKey(s.source, s.epoch, s.seq, first), nil); err != nil {
				return nil, err
			}
		}
	}
	return highest, nil
}

// timeRow finds the time in the time row of the block that begins at first.
func (j *Journal) timeRow(source uint32, first uint64) (int64, bool, error) {
	v, err := j.get(placeKey(source, first))
	if err != nil || len(v) == 0 {
		return 0, false, err
	}
	if len(v) != 8 {
		return 0, false, &CorruptError{Offset: first, What: "place row has the wrong length"}
	}
	return unordered(last8(v)), true, nil
}

// merging is what a merge works with. It is kept for the next, since making room for it all cost a third of a merge: some 1 MiB, 8 at most.
type merging struct {
	block  Block   // of those to be merged, the one that is read
	src    sources // what was read
	build  builder
	merged Block // what was built, decoded again
}

// sources are the records of a run's blocks as they were read, maxBlockRaw bytes of payload at most.
type sources struct {
	entries []entry // start counts from the beginning of payload
	payload []byte
}

func (s *sources) reset() { s.entries, s.payload = s.entries[:0], s.payload[:0] }

// add takes all records of a block whose payload is unpacked.
func (s *sources) add(b *Block) {
	at := len(s.payload)
	s.payload = append(s.payload, b.payload...)
	for _, e := range b.entries {
		e.start += at
		s.entries = append(s.entries, e)
	}
}

// sameRecords decodes the block that was built and compares it, record by record, with what the blocks hold that it is to replace.
func (m *merging) sameRecords(r run, c *codec) error {
	src, merged := &m.src, &m.merged
	if err := merged.decode(r.blocks[0], m.build.stored, c); err != nil {
		return err
	}
	if merged.Len() != len(src.entries) || merged.Last() != r.last {
		return fmt.Errorf("sealed block at offset %d holds %d records up to %d, expected %d up to %d",
			r.blocks[0], merged.Len(), merged.Last(), len(src.entries), r.last)
	}
	var seqA, seqB [8]byte
	var a, b [][]byte
	for i := range src.entries {
		e, offset := &src.entries[i], r.blocks[0]+uint64(i)
		if e.Header != *merged.Header(i) {
			return &CorruptError{Offset: offset, What: "sealed block differs from its source; it was not used"}
		}
		var err error
		if b, err = merged.Frames(i, b[:0], &seqB); err != nil {
			return err
		}
		if a = e.framesOf(src.payload, a[:0], &seqA); !slices.EqualFunc(a, b, bytes.Equal) {
			return &CorruptError{Offset: offset, What: "sealed block has other frames; it was not used"}
		}
	}
	return nil
}
