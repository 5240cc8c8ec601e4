package journal

import (
	"cmp"
	"slices"
	"sync"
)

// openedBlocks keeps opened blocks, up to a size together: what was not asked for the longest time goes first. They are found without the
// database, by the offsets and by the sequence numbers that they hold.
//
// What is kept is never what was. A record at an offset is the same for ever (invariant 1), and so is the one batch of a sequence
// number in an epoch, for a lower or equal number begins another (R5). What can change is which block holds it, by the sealer: kept are blocks
// that it leaves as they are, so that none is kept beside one that it was merged into, and even that one would say the same. Blocks
// come here only when all of them is durable. What is pruned meanwhile is still here: who reads asks for the horizon each time (Journal.readable, Journal.openedWithSeq).
type openedBlocks struct {
	room int // bytes

	mu       sync.Mutex
	size     int
	byOffset []*openedBlock // ascending
	bySeq    map[streamKey][]seqSpan
	// newest and oldest are the ends of the list of all, by when they were asked for.
	newest, oldest *openedBlock
}

// seqSpan are the sequence numbers of a stream that a block has. Those of a stream ascend, and have none in common.
type seqSpan struct {
	low, high uint64
	block     *openedBlock
}

func newOpenedBlocks(room int) *openedBlocks {
	return &openedBlocks{room: room, bySeq: map[streamKey][]seqSpan{}}
}

// at is the block that holds an offset, nil where it is not kept.
func (o *openedBlocks) at(offset uint64) *openedBlock {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.placeOf(offset+1) - 1
	if n < 0 || o.byOffset[n].last < offset {
		return nil
	}
	return o.touch(o.byOffset[n])
}

// withSeq is the block that holds a batch, and the batch's place in it; nil where it is not kept.
func (o *openedBlocks) withSeq(k streamKey, seq uint64) (*openedBlock, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	spans := o.bySeq[k]
	n := spanAt(spans, seq+1) - 1
	if n < 0 || seq > spans[n].high {
		return nil, -1
	}
	b := spans[n].block
	i := b.find(k, seq)
	if i < 0 {
		return nil, -1
	}
	return o.touch(b), i
}

// placeOf is where a block that begins at first stands, or would.
func (o *openedBlocks) placeOf(first uint64) int {
	n, _ := slices.BinarySearchFunc(o.byOffset, first, func(b *openedBlock, first uint64) int { return cmp.Compare(b.first, first) })
	return n
}

// touch makes b the newest.
func (o *openedBlocks) touch(b *openedBlock) *openedBlock {
	if b != o.newest {
		o.unlink(b)
		o.link(b)
	}
	return b
}

func (o *openedBlocks) link(b *openedBlock) {
	b.older, b.newer = o.newest, nil
	if o.newest != nil {
		o.newest.newer = b
	} else {
		o.oldest = b
	}
	o.newest = b
}

func (o *openedBlocks) unlink(b *openedBlock) {
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		o.newest = b.older
	}
	if b.older != nil {
		b.older.newer = b.newer
	} else {
		o.oldest = b.newer
	}
}

// put keeps a block, unless it is kept already or alone takes more than a quarter of the room.
func (o *openedBlocks) put(b *openedBlock) {
	if b.size > o.room/4 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.placeOf(b.first)
	if n < len(o.byOffset) && o.byOffset[n].first <= b.last || n > 0 && o.byOffset[n-1].last >= b.first {
		return
	}
	o.byOffset = slices.Insert(o.byOffset, n, b)
	b.eachSpan(func(k streamKey, s seqSpan) {
		o.bySeq[k] = slices.Insert(o.bySeq[k], spanAt(o.bySeq[k], s.low), s)
	})
	o.link(b)
	for o.size += b.size; o.size > o.room; {
		o.drop(o.oldest)
	}
}

func (o *openedBlocks) drop(b *openedBlock) {
	n := o.placeOf(b.first)
	o.byOffset = slices.Delete(o.byOffset, n, n+1)
	b.eachSpan(func(k streamKey, s seqSpan) {
		spans := o.bySeq[k]
		n := spanAt(spans, s.low)
		for spans[n].block != b {
			n++
		}
		if o.bySeq[k] = slices.Delete(spans, n, n+1); len(spans) == 1 {
			delete(o.bySeq, k)
		}
	})
	o.unlink(b)
	o.size -= b.size
}

func spanAt(spans []seqSpan, low uint64) int {
	n, _ := slices.BinarySearchFunc(spans, low, func(s seqSpan, low uint64) int { return cmp.Compare(s.low, low) })
	return n
}

// eachSpan calls f with each stream of the block.
func (b *openedBlock) eachSpan(f func(k streamKey, s seqSpan)) {
	for from := 0; from < len(b.runs); {
		to := from
		for to < len(b.runs) && b.runs[to].streamKey == b.runs[from].streamKey {
			to++
		}
		f(b.runs[from].streamKey, seqSpan{b.runs[from].seq, b.runs[to-1].last(), b})
		from = to
	}
}
