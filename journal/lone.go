package journal

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Lone is a record that is read alone, and the memory for it: used again for the next one, it takes no more.
type Lone struct {
	Record
	// Frames are exactly as received. They are valid until the next record is read into it.
	Frames [][]byte

	entry   entry
	payload []byte
	scratch []byte
	seq     [8]byte
}

// Lone reads the record at an offset, with its frames. Errors as of Block.
func (j *Journal) Lone(r *Lone, offset uint64) error {
	if err := j.readable(offset); err != nil {
		return err
	}
	b := j.opened.at(offset)
	if b == nil {
		it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyBlock}, UpperBound: []byte{keyBlock + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		if !it.SeekLT(blockKey(offset + 1)) {
			if err := it.Error(); err != nil {
				return readError(offset, err)
			}
			return fmt.Errorf("offset %d: %w", offset, ErrNotFound)
		}
		if b, err = j.openFrom(it); err != nil {
			return err
		}
		if offset > b.last {
			return fmt.Errorf("offset %d: %w", offset, ErrNotFound)
		}
	}
	return r.read(b, int(offset-b.first))
}

// LoneBySeq reads a source's batch by epoch and sequence number, with its frames. Errors as of BySeq.
func (j *Journal) LoneBySeq(r *Lone, source uint32, epoch, seq uint64) error {
	b, i, err := j.openedWithSeq(source, epoch, seq)
	if err != nil {
		return err
	}
	return r.read(b, i)
}

// openedWithSeq is the block that holds a batch that may be shown, and the batch's place in it.
func (j *Journal) openedWithSeq(source uint32, epoch, seq uint64) (*openedBlock, int, error) {
	k := streamKey{source, epoch}
	b, i := j.opened.withSeq(k, seq)
	if b == nil {
		it, err := j.blockOfSeq(source, epoch, seq)
		if err != nil {
			return nil, 0, err
		}
		defer it.Close()
		if b, err = j.openFrom(it); err != nil {
			return nil, 0, err
		}
		i = b.find(k, seq)
	}
	if i < 0 || j.readable(b.first+uint64(i)) != nil {
		return nil, 0, ErrNotFound
	}
	return b, i, nil
}

// openFrom opens the block that the iterator stands at, and keeps it, if nothing about it can change any more.
func (j *Journal) openFrom(it *pebble.Iterator) (*openedBlock, error) {
	first := last8(it.Key())
	v, err := it.ValueAndErr()
	if err != nil {
		return nil, readError(first, err)
	}
	b, err := openBlock(first, v, j.codec)
	if err == nil && b.last <= j.Durable() && j.large(b.payloadLen(), b.len()) {
		j.opened.put(b)
	}
	return b, err
}

// read fills r with record i of a block.
func (r *Lone) read(b *openedBlock, i int) error {
	e := &r.entry
	if err := b.entry(e, i); err != nil {
		return err
	}
	p, err := b.messages.Append(r.payload[:0], i, e.length, &r.scratch)
	if err != nil {
		return payloadError(b.first, err)
	}
	e.start, r.payload = 0, p
	r.Record = Record{Offset: b.first + uint64(i), Header: e.Header}
	r.Frames = e.framesOf(p, r.Frames[:0], &r.seq)
	return nil
}
