package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
)

// headers are those of a block's records. They never change, and are shared by all who read.
type headers struct {
	first   uint64
	entries []entry
	stored  int    // bytes of the block
	sum     uint32 // its checksum
}

func (h *headers) last() uint64 { return h.first + uint64(len(h.entries)) - 1 }

func (h *headers) record(i int) Record {
	return Record{Offset: h.first + uint64(i), Header: h.entries[i].Header}
}

// headersCache is how many bytes of headers are kept: those of about 100 blocks that have one event a message, and thousands of those that
// have 64.
const headersCache = 16 << 20

// headersFrom are those of the block that the iterator stands at: kept ones, if they are of the same block, or decoded from it. What
// is kept under an offset may be of fewer records than the sealer has made the block of by now; those it has never change (firstAbove, headersUpTo).
func (j *Journal) headersFrom(it *pebble.Iterator) (*headers, error) {
	first := last8(it.Key())
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, readError(first, err)
	}
	if len(v) >= 4 {
		sum := binary.LittleEndian.Uint32(v[len(v)-4:])
		if h, ok := j.headers.get(first); ok && h.stored == len(v) && h.sum == sum {
			return h, nil
		}
	}
	var b Block
	if _, err := b.decodeTable(first, v, j.codec); err != nil {
		return nil, err
	}
	h := &headers{first: first, entries: b.entries, stored: len(v), sum: binary.LittleEndian.Uint32(v[len(v)-4:])}
	size := cap(h.entries) * int(unsafe.Sizeof(entry{}))
	for i := range h.entries {
		size += 8 * len(h.entries[i].frames)
	}
	j.headers.put(first, h, size)
	return h, nil
}

// headersAt are those of the block that holds offset, or, where offset is beyond the last, of the last block. ErrNotFound where no block
// begins at or before it.
func (j *Journal) headersAt(offset uint64) (*headers, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: []byte{keyBlock + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	return j.headersOn(it, offset)
}

// headersOn is headersAt with an iterator over the blocks, and maybe over other rows.
func (j *Journal) headersOn(it *pebble.Iterator, offset uint64) (*headers, error) {
	if !it.SeekLT(blockKey(offset + 1)) {
		if err := it.Error(); err != nil {
			return nil, readError(offset, err)
		}
		return nil, fmt.Errorf("offset %d: %w", offset, ErrNotFound)
	}
	return j.headersFrom(it)
}

// headersOf are those of the block that begins at first, as a row says, with an iterator over the blocks and maybe over other rows. The row may be older
// than what the sealer made of the block by now.
func (j *Journal) headersOf(it *pebble.Iterator, first uint64) (*headers, error) {
	// SeekLT would look at the block before too, to know that it stands at the newest row of that key.
	if it.SeekGE(blockKey(first)) && it.Key()[0] == keyBlock && last8(it.Key()) == first {
		return j.headersFrom(it)
	}
	return j.headersOn(it, first)
}

// headersUpTo are those of the block that begins at first, as a row says, with all its records up to offset.
func (j *Journal) headersUpTo(first, offset uint64) (*headers, error) {
	if h, ok := j.headers.get(first); ok && offset <= h.last() {
		return h, nil
	}
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: []byte{keyBlock + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	return j.headersOf(it, first)
}

// firstAbove is the first message of a source whose time is above ms, -1 where there is none.
func (h *headers) firstAbove(source uint32, ms int64) int {
	for i := range h.entries {
		if r := &h.entries[i].Header; r.Source == source && r.Counts() && r.HasTime && r.Time > ms {
			return i
		}
	}
	return -1
}

// lastOf is the newest record of a source among the first n that ok accepts, -1 where there is none.
func (h *headers) lastOf(source uint32, n int, ok func(*Header) bool) int {
	for i := n - 1; i >= 0; i-- {
		if r := &h.entries[i].Header; r.Source == source && ok(r) {
			return i
		}
	}
	return -1
}

// At finds the moment of publisher time ms (Unix milliseconds) in a source's stream; a *PrunedError where it lies before the horizon.
func (j *Journal) At(source uint32, ms int64) (Moment, error) {
	m, _, err := j.AtStanding(source, ms)
	return m, err
}

// AtStanding is At, and says how long that holds: who kept the moment asks Stands, which is cheaper than to look for it again.
func (j *Journal) AtStanding(source uint32, ms int64) (Moment, Standing, error) {
	h := j.horizon.Load()
	if m, s, ok := j.moments.at(source, ms, h, j.wentBack.Load()); ok {
		return m, s, nil
	}
	durable := j.Durable()
	m, in, err := j.at(source, ms)
	if err != nil || in == nil {
		return m, Standing{}, err
	}
	run, err := j.runOf(in, source, ms, &m, h, durable)
	if err != nil || run == nil {
		return m, Standing{}, err
	}
	j.moments.put(source, run)
	return m, run.standing, nil
}

// at is At. in is the block that Next lies in, where records behind do not change what it found, unless they go back in time; else nil.
func (j *Journal) at(source uint32, ms int64) (m Moment, in *headers, err error) {
	h := j.Horizon()
	if clock, ok := h.Clocks[source]; ok && clock > ms {
		m, err = j.passedAgain(source, ms, &h)
		return m, nil, err
	}
	end := j.Durable()
	above, i, err := j.firstAbove(source, ms)
	switch {
	case err == nil && above.first+uint64(i) <= end:
		m.Next = above.record(i)
	case err != nil && !errors.Is(err, ErrNotFound):
		return m, nil, err
	}
	s, ok, err := j.spanBelow(source, ordinalAfter(ms))
	if err != nil {
		return m, nil, err
	}
	twice := ok && ms < s.hi
	if twice && m.Next.Offset != 0 {
		m.Last, err = j.lastWhere(source, min(end, s.last), func(h *Header) bool {
			return h.Counts() && (!h.HasTime || h.Time <= ms)
		})
		// A span is in the database before the batch that went back into it is durable.
		if m.Twice = m.Last.Offset > m.Next.Offset; m.Twice || err != nil && !errors.Is(err, ErrNotFound) {
			return m, nil, err
		}
	}
	if m.Next.Offset != 0 {
		end = m.Next.Offset - 1
		if !twice {
			in = above
		}
		if k := above.lastOf(source, i, (*Header).Counts); k >= 0 && above.first+uint64(k) > h.Offset {
			m.Last = above.record(k)
			return m, in, nil
		}
	}
	if m.Last, err = j.LastBatch(source, end); errors.Is(err, ErrNotFound) {
		err = nil
	}
	return m, in, err
}
