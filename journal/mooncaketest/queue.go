package mooncaketest

import (
	"context"
	"sync"
)

// queue is the publisher's bounded queue together with the numbers that depend on it. Two orders are kept:
//
//  1. A change that is dropped reserves the next seq at that moment. A batch gets the next seq at number, not at take:
//     whatever is dropped between the two has a smaller seq than the batch, although it is newer.
//  2. The changes of one push lie side by side.
//
// One goroutine takes, numbers and reports sent, in this order, again and again; any number may push.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // something to take, closed, or at rest

	ring    []Change // its length is a power of two; it grows up to what limit needs
	head, n int
	limit   int

	seq     uint64 // the last one given or reserved
	taken   int    // changes taken and not yet reported sent
	closing bool   // take what is there, then stop
	killed  bool   // stop at once

	batches, events, dropped uint64
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.changed.L = &q.mu
	return q
}

// push appends changes under one lock, dropping the oldest where there is no room.
func (q *queue) push(changes []Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing || q.killed {
		return
	}
	for i := range changes {
		if q.n == q.limit {
			q.head = (q.head + 1) & (len(q.ring) - 1)
			q.n--
			q.seq++
			q.dropped++
		}
		if q.n == len(q.ring) {
			q.grow()
		}
		q.ring[(q.head+q.n)&(len(q.ring)-1)] = changes[i]
		q.n++
	}
	q.changed.Broadcast()
}

// grow doubles the ring.
func (q *queue) grow() {
	ring := make([]Change, max(64, 2*len(q.ring)))
	k := copy(ring, q.ring[q.head:])
	copy(ring[k:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}

// take moves the oldest changes, up to len(dst), into dst. It waits for one; 0 means that the queue was closed.
func (q *queue) take(dst []Change) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n == 0 && !q.closing && !q.killed {
		q.changed.Wait()
	}
	if q.killed {
		return 0
	}
	n := min(q.n, len(dst))
	first := copy(dst[:n], q.ring[q.head:])
	copy(dst[first:n], q.ring)
	if n > 0 {
		q.head = (q.head + n) & (len(q.ring) - 1)
		q.n -= n
	}
	q.taken = n
	return n
}

// number gives the batch that was taken its sequence number.
func (q *queue) number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	return q.seq
}

// sent counts the batch that was taken as published.
func (q *queue) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches++
	q.events += uint64(q.taken)
	q.taken = 0
	if q.n == 0 {
		q.changed.Broadcast()
	}
}

// length returns the number of changes in the queue; what was taken is not in it any more.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// waitRest waits until the queue is empty and nothing taken is unsent. It returns false if the queue was killed before.
func (q *queue) waitRest(ctx context.Context) (bool, error) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n > 0 || q.taken > 0 {
		if q.killed {
			return false, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		q.changed.Wait()
	}
	return true, nil
}

// close ends the queue: later pushes are ignored; with kill also what is in it.
func (q *queue) close(kill bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing = true
	q.killed = q.killed || kill
	q.changed.Broadcast()
}
