package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// blockAt fills b (nil: a new one) with the block that holds offset, or, where offset is beyond the last, the last
// block. ErrNotFound where no block begins at or before it.
func (j *Journal) blockAt(b *Block, offset uint64) (*Block, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: []byte{keyBlock + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.SeekLT(blockKey(offset + 1)) {
		if err := it.Error(); err != nil {
			return nil, readError(offset, err)
		}
		return nil, fmt.Errorf("offset %d: %w", offset, ErrNotFound)
	}
	return j.blockFrom(it, b)
}

func (j *Journal) blockFrom(it *pebble.Iterator, b *Block) (*Block, error) {
	if b == nil {
		b = &Block{}
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, readError(last8(it.Key()), err)
	}
	if err := b.decode(last8(it.Key()), v, j.codec); err != nil {
		return nil, err
	}
	return b, nil
}

// readError says where reading failed; offset is 0 where no block was being read. It is nil where err is.
func readError(offset uint64, err error) error {
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) {
		return &CorruptError{Offset: offset, What: err.Error()}
	}
	if offset == 0 {
		return fmt.Errorf("reading the journal: %w", err)
	}
	return fmt.Errorf("reading the journal at offset %d: %w", offset, err)
}

// Block fills b (nil: a new one) with the block that holds offset. ErrNotFound where the offset is not in the journal:
// not written yet, or lost. A *PrunedError where it lies before the horizon.
func (j *Journal) Block(b *Block, offset uint64) (*Block, error) {
	if err := j.readable(offset); err != nil {
		return nil, err
	}
	return j.kept(b, offset)
}

// readable is why an offset cannot be read, nil where it is durable and lies behind the horizon.
func (j *Journal) readable(offset uint64) error {
	if offset == 0 || offset > j.Durable() {
		return fmt.Errorf("offset %d: %w, it ends at %d", offset, ErrNotFound, j.Durable())
	}
	return j.pruned(offset)
}

// Kept is Block for an offset that may lie before the horizon, where few records are there still.
func (j *Journal) Kept(b *Block, offset uint64) (*Block, error) {
	if offset == 0 || offset > j.Durable() {
		return nil, fmt.Errorf("offset %d: %w", offset, ErrNotFound)
	}
	return j.kept(b, offset)
}

func (j *Journal) kept(b *Block, offset uint64) (*Block, error) {
	b, err := j.blockAt(b, offset)
	if err != nil {
		return nil, err
	}
	if offset > b.Last() {
		return nil, fmt.Errorf("offset %d: %w", offset, ErrNotFound)
	}
	return b, nil
}

// NextBlock fills b (nil: a new one) with the first block that holds an offset above after and is durable. ErrNotFound where there is
// none yet. Records of it at or below after are in it too: skip them, and those up to the horizon, from which on it is read at least.
func (j *Journal) NextBlock(b *Block, after uint64) (*Block, error) {
	for {
		h := j.Horizon().Offset
		next, err := j.nextBlock(b, max(after, h))
		if j.Horizon().Offset == h {
			return next, err
		}
		// The horizon moved: what was found may have been found behind a hole.
	}
}

func (j *Journal) nextBlock(b *Block, after uint64) (*Block, error) {
	if after >= j.Durable() {
		return nil, ErrNotFound
	}
	b, err := j.blockAt(b, after+1)
	if err == nil && b.Last() > after {
		return b, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	// A hole in the offsets: a loss that a record tells of, or a beginning that is not there. Everything else is damage, and what lies
	// behind it must not be taken for what follows.
	beginning := errors.Is(err, ErrNotFound)
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: blockKey(after + 1), UpperBound: []byte{keyBlock + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.First() || last8(it.Key()) > j.Durable() {
		if err := it.Error(); err != nil {
			return nil, readError(after+1, err)
		}
		return nil, ErrNotFound
	}
	if b, err = j.blockFrom(it, b); err != nil || beginning {
		return b, err
	}
	told, err := b.tells(after + 1)
	if err == nil && !told {
		err = missing(after+1, b.First-1)
	}
	return b, err
}

// Record is one record, copied out of its block.
type Record struct {
	Offset uint64
	Header
}

// Record returns the record at offset.
func (j *Journal) Record(offset uint64) (Record, error) {
	if err := j.readable(offset); err != nil {
		return Record{}, err
	}
	if b := j.opened.at(offset); b != nil {
		return b.record(int(offset - b.first))
	}
	h, err := j.headersAt(offset)
	if err != nil {
		return Record{}, err
	}
	if offset > h.last() {
		return Record{}, fmt.Errorf("offset %d: %w", offset, ErrNotFound)
	}
	return h.record(int(offset - h.first)), nil
}

// LastBatch returns the newest message of a source's stream at or before offset; damaged ones count.
// ErrNotFound where there is none, a *PrunedError where the offset lies before the horizon's Cut of the source. Between that and the horizon,
// the newest up to there and those up to the records that were kept for it (BaselineWriter.Prune) are known.
func (j *Journal) LastBatch(source uint32, offset uint64) (Record, error) {
	if h := j.horizon.Load(); offset < h.Offset && offset < h.cutOr(source, h.Offset) {
		return Record{}, &PrunedError{*h}
	}
	return j.lastWhere(source, offset, func(h *Header) bool { return h.Counts() })
}

// lastWhere returns the newest durable record of a source at or before offset that ok accepts.
func (j *Journal) lastWhere(source uint32, offset uint64, ok func(*Header) bool) (Record, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: placeKey(source, 0), UpperBound: sourceKey(keyPlace, source+1)})
	if err != nil {
		return Record{}, err
	}
	defer it.Close()
	offset = min(offset, j.Durable())
	for more := it.SeekLT(placeKey(source, offset+1)); more; more = it.Prev() {
		h, err := j.headersUpTo(last8(it.Key()), offset)
		if err != nil {
			return Record{}, err
		}
		if i := h.lastOf(source, int(min(offset, h.last())-h.first)+1, ok); i >= 0 {
			return h.record(i), nil
		}
	}
	if err := it.Error(); err != nil {
		return Record{}, readError(0, err)
	}
	return Record{}, ErrNotFound
}

// BySeq returns the record of a source's batch by epoch and sequence number. ErrNotFound where it was never received, or is not
// durable yet, or lies before the horizon.
func (j *Journal) BySeq(source uint32, epoch, seq uint64) (Record, error) {
	if b, i := j.opened.withSeq(streamKey{source, epoch}, seq); b != nil && j.readable(b.first+uint64(i)) == nil {
		return b.record(i)
	}
	it, err := j.blockOfSeq(source, epoch, seq)
	if err != nil {
		return Record{}, err
	}
	defer it.Close()
	h, err := j.headersFrom(it)
	if err != nil {
		return Record{}, err
	}
	i, err := j.findSeq(h.first, h.entries, source, epoch, seq)
	if err != nil {
		return Record{}, err
	}
	return h.record(i), nil
}

// blockOfSeq returns an iterator that stands at the block that holds a batch, if any does.
func (j *Journal) blockOfSeq(source uint32, epoch, seq uint64) (*pebble.Iterator, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: sourceKey(keySeq, source+1)})
	if err != nil {
		return nil, err
	}
	found := it.SeekLT(seqKey(source, epoch, seq, math.MaxUint64)) && bytes.HasPrefix(it.Key(), seqKey(source, epoch, 0, 0)[:13])
	if found { // forward: of what it finds backward, the database makes a copy
		key := blockKey(last8(it.Key()))
		found = it.SeekGE(key) && bytes.Equal(it.Key(), key)
	}
	if found {
		return it, nil
	}
	err = it.Error()
	if it.Close(); err != nil {
		return nil, readError(0, err)
	}
	return nil, ErrNotFound
}

// findSeq finds a batch that may be shown among the records of the block that begins at first.
func (j *Journal) findSeq(first uint64, entries []entry, source uint32, epoch, seq uint64) (int, error) {
	for i := range entries {
		h := &entries[i].Header
		if h.Source == source && h.Counts() && h.HasSeq && h.Epoch == epoch && h.Seq == seq && j.readable(first+uint64(i)) == nil {
			return i, nil
		}
	}
	return 0, ErrNotFound
}

// Moment is where a publisher time lies in a source's stream.
type Moment struct {
	// Last is the newest message at or before the time; Last.Offset is 0 where there is none.
	Last Record
	// Next is the first message behind the time; Next.Offset is 0 where there is none yet.
	Next Record
	// Twice: the publisher's clock passed the time more than once.
	Twice bool
}

// passedAgain is At for a time that the publisher's clock was above before the horizon: only where it came back to it behind the horizon is
// anything known of the moment, and then it is one that the clock passed twice.
func (j *Journal) passedAgain(source uint32, ms int64, h *Horizon) (Moment, error) {
	s, ok, err := j.spanBelow(source, ordinalAfter(ms))
	if err != nil {
		return Moment{}, err
	}
	if ok && ms < s.hi && s.last > h.Offset {
		last, err := j.lastWhere(source, min(j.Durable(), s.last), func(h *Header) bool {
			return h.Counts() && (!h.HasTime || h.Time <= ms)
		})
		if err == nil && last.Offset > h.Offset {
			return Moment{Last: last, Next: Record{Offset: h.Offset}, Twice: true}, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Moment{}, err
		}
	}
	return Moment{}, &PrunedError{*h}
}

func ordinalAfter(ms int64) int64 {
	if ms == math.MaxInt64 {
		return ms
	}
	return ms + 1
}

// firstAbove finds the first message of a source whose time is above ms.
func (j *Journal) firstAbove(source uint32, ms int64) (*headers, int, error) {
	if ms == math.MaxInt64 {
		return nil, 0, ErrNotFound
	}
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: sourceKey(keyTime, source+1)})
	if err != nil {
		return nil, 0, err
	}
	defer it.Close()
	if !it.SeekGE(timeKey(source, ms+1, 0)) {
		if err := it.Error(); err != nil {
			return nil, 0, readError(0, err)
		}
		return nil, 0, ErrNotFound
	}
	row := bytes.Clone(it.Key())
	if b, ok := j.headers.get(last8(row)); ok { // maybe of fewer records than the block has by now, but those are its first
		if i := b.firstAbove(source, ms); i >= 0 {
			return b, i, nil
		}
	}
	b, err := j.headersOf(it, last8(row))
	if err != nil {
		return nil, 0, err
	}
	if i := b.firstAbove(source, ms); i >= 0 {
		return b, i, nil
	}
	return nil, 0, &CorruptError{Offset: b.first, What: fmt.Sprintf("its time row says %d, but no record is that late", unordered(binary.BigEndian.Uint64(row[5:])))}
}

// spanBelow returns the newest span of twice-passed time of a source that begins below the given time.
func (j *Journal) spanBelow(source uint32, below int64) (span, bool, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: sourceKey(keySpan, source), UpperBound: sourceKey(keySpan, source+1)})
	if err != nil {
		return span{}, false, err
	}
	defer it.Close()
	if !it.SeekLT(spanKey(source, below)) {
		return span{}, false, readError(0, it.Error())
	}
	s, ok := decodeSpan(it.Key(), it.Value())
	if !ok {
		return span{}, false, &CorruptError{What: "time span row has the wrong length"}
	}
	return s, true, nil
}

// loadClock reads a source's highest publisher time back.
func (j *Journal) loadClock(source uint32) (*clock, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: sourceKey(keyTime, source), UpperBound: sourceKey(keyTime, source+1)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	c := &clock{}
	if it.Last() {
		if len(it.Key()) != 21 {
			return nil, &CorruptError{What: "time row has the wrong length"}
		}
		c.has, c.highest = true, unordered(binary.BigEndian.Uint64(it.Key()[5:]))
	}
	return c, readError(0, it.Error())
}
