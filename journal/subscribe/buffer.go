package subscribe

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// ErrBufferClosed: the Buffer was closed while a Subscriber still ran; its items are thrown away.
var ErrBufferClosed = errors.New("buffer closed")

// Item is a record of a source, on its way to the writer.
type Item struct {
	Source int // as in Options; of a record
	capture.Record
	// Slow: since the last item of this subscriber, the Buffer was full and the loop did not read.
	Slow bool
	// Backlog: what a full Buffer made the publisher drop may show as a gap at this item. A publisher drops
	// at the *end* of its queue, so the gap comes behind everything that was queued then: some 10,000 messages
	// after the item that is Slow. Set from there until the socket was silent for a while or backlogMessages have come.
	Backlog bool
	// Call is not nil for an item that is no record: the writer calls it when its turn comes.
	Call func()
}

// Costs of an item beside the bytes of its frames: the item itself, and per frame a slice header and what the allocator
// rounds up. They keep the bound honest for small messages.
const (
	itemBytes  = 128
	frameBytes = 48
)

func (i *Item) cost() int64 {
	n := int64(itemBytes)
	for _, f := range i.Frames {
		n += frameBytes + int64(len(f))
	}
	return n
}

// Buffer is a FIFO of items, bounded in bytes, between subscribers and one writer. All methods may be called at once.
//
// Items of one pushing goroutine come out in the order it pushed them, and no item is dropped while the Buffer is open.
type Buffer struct {
	max int64

	mu     sync.Mutex
	ring   []Item // length is 0 or a power of two
	head   int    // index of the oldest
	count  int
	bytes  int64
	closed bool
	gather int64     // bytes that Gather waits for; 0: nobody waits so
	items  broadcast // an item came, or as many as are gathered, or Close
	space  broadcast // items went, or Close
}

// NewBuffer returns a Buffer for maxBytes of items. One item is always taken, however large it is.
func NewBuffer(maxBytes int64) *Buffer { return &Buffer{max: maxBytes} }

// Push appends item. It blocks while the Buffer is full and says whether it had to. After Close it does nothing.
func (b *Buffer) Push(item Item) (waited bool) {
	for {
		space, err := b.offer(item, false)
		if space == nil || err != nil {
			return waited
		}
		waited = true
		<-space
	}
}

// offer appends item if there is space or if force is set. Otherwise it returns a channel that is closed
// when there may be space. Its error is ErrBufferClosed.
func (b *Buffer) offer(item Item, force bool) (space <-chan struct{}, err error) {
	cost := item.cost()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, ErrBufferClosed
	case !force && b.count > 0 && b.bytes+cost > b.max:
		b.items.fire() // there will be no more
		return b.space.wait(), nil
	}
	if b.count == len(b.ring) {
		b.resize(max(64, 2*len(b.ring)))
	}
	b.ring[(b.head+b.count)&(len(b.ring)-1)] = item
	b.count++
	b.bytes += cost
	if b.bytes >= b.gather {
		b.items.fire()
	}
	return nil, nil
}

// Gather waits until so many bytes are there, as Bytes counts them, or no more can come, or the time has passed. Only the writer may call it. The
// items that come meanwhile wake nobody.
func (b *Buffer) Gather(bytes int64, wait time.Duration) {
	b.mu.Lock()
	if b.closed || b.bytes >= bytes {
		b.mu.Unlock()
		return
	}
	b.gather = bytes
	enough := b.items.wait()
	b.mu.Unlock()
	passed := time.NewTimer(wait)
	defer passed.Stop()
	select {
	case <-enough:
	case <-passed.C:
	}
	b.mu.Lock()
	b.gather = 0
	b.mu.Unlock()
}

// Pop waits for items and returns the oldest: as many as fit maxBytes, at least one.
//
// Errors: io.EOF after Close, when all items are out; ctx's error if there is no item and ctx is done. Items
// that are there come out whatever ctx says, so a writer that is told to stop can pop until io.EOF.
func (b *Buffer) Pop(ctx context.Context, maxBytes int64) ([]Item, error) {
	for {
		b.mu.Lock()
		if b.count > 0 {
			items := b.take(maxBytes)
			b.mu.Unlock()
			return items, nil
		}
		if b.closed {
			b.mu.Unlock()
			return nil, io.EOF
		}
		more := b.items.wait()
		b.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *Buffer) take(maxBytes int64) []Item {
	var n int
	var bytes int64
	for n < b.count {
		cost := b.ring[(b.head+n)&(len(b.ring)-1)].cost()
		if n > 0 && bytes+cost > maxBytes {
			break
		}
		bytes += cost
		n++
	}
	items := make([]Item, n)
	for i := range items {
		slot := &b.ring[(b.head+i)&(len(b.ring)-1)]
		items[i], *slot = *slot, Item{} // the ring must not keep the frames alive
	}
	b.head = (b.head + n) & (len(b.ring) - 1)
	b.count -= n
	b.bytes -= bytes
	if b.count == 0 && len(b.ring) > 1<<14 && n < len(b.ring)/16 {
		b.ring, b.head = nil, 0 // give back what a stall made it grow to
	}
	b.space.fire()
	return items
}

func (b *Buffer) resize(n int) {
	ring := make([]Item, n)
	for i := range b.count {
		ring[i] = b.ring[(b.head+i)&(len(b.ring)-1)]
	}
	b.ring, b.head = ring, 0
}

// Close ends the Buffer: Pop drains it and then reports io.EOF, later pushes are thrown away, blocked
// ones return. Close it when all subscribers have returned, or when the writer cannot go on.
func (b *Buffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.items.fire()
	b.space.fire()
}

// Len is the number of items in the Buffer.
func (b *Buffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Bytes is what the items in the Buffer count against Max: their frames and a fixed overhead.
func (b *Buffer) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Max is the bound in bytes.
func (b *Buffer) Max() int64 { return b.max }

// broadcast wakes everyone who waits. The mutex of its owner guards it. It costs nothing while no one waits.
type broadcast struct{ ch chan struct{} }

func (b *broadcast) wait() <-chan struct{} {
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) fire() {
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
