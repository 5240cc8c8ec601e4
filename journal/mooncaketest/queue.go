package mooncaketest

import (
	"context"
	"sync"
	"time"
)

// queue is the publisher's bounded queue together with the numbers that depend on it. Two orders are kept:
//
//  1. A change that is dropped reserves the next seq at that moment. A batch gets the next seq at number, not at take:
//     whatever is dropped between the two has a smaller seq than the batch, although it is newer.
//  2. The changes of one push lie side by side.
//  3. A take of fewer changes than it has room for leaves the queue empty, whatever the delay: from a short batch a
//     reader concludes that all changes made before it was taken have been announced (R9).
//
// One goroutine takes, numbers and reports sent, in this order, again and again; any number may push.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // something to take, closed, or at rest

	ring    []Change // its length is a power of two; it grows up to what limit needs
	since   []int64  // with a delay: when each change of the ring came, Unix ns
	head, n int
	limit   int

	delay time.Duration    // a change rests for as long before it starts a take
	lag   time.Duration    // for as long after it was sent, a batch is not shown as published
	now   func() time.Time // for delay and lag
	held  bool             // nothing is taken

	seq     uint64 // the last one given or reserved
	taken   int    // changes taken and not yet reported sent
	closing bool   // take what is there, then stop
	killed  bool   // stop at once

	batches, events, dropped uint64

	shownBatches, shownEvents uint64    // batches and events before the newest batch that was numbered
	sentAt                    time.Time // with a lag: when that batch was sent
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, now: time.Now}
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
	var came int64
	if q.delay > 0 {
		came = q.now().UnixNano()
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
		at := (q.head + q.n) & (len(q.ring) - 1)
		q.ring[at] = changes[i]
		if q.delay > 0 {
			q.since[at] = came
		}
		q.n++
	}
	q.changed.Broadcast()
}

// grow doubles the ring.
func (q *queue) grow() {
	if q.delay > 0 {
		q.since = doubled(q.since, q.head)
	}
	q.ring, q.head = doubled(q.ring, q.head), 0
}

// doubled copies a ring that begins at head into one of twice the size that begins at 0.
func doubled[T any](ring []T, head int) []T {
	out := make([]T, max(64, 2*len(ring)))
	k := copy(out, ring[head:])
	copy(out[k:], ring[:head])
	return out
}

// look is how often a rest of a queue with a delay is ended at the latest, to look at the clock: it may be a scripted one.
const look = 5 * time.Millisecond

// rests reports whether the oldest change must still wait, and for how long; 0 is until something changes.
func (q *queue) rests() (bool, time.Duration) {
	switch {
	case q.closing || q.killed:
		return false, 0
	case q.n == 0 || q.held:
		return true, 0
	case q.delay == 0:
		return false, 0
	}
	left := time.Duration(q.since[q.head] + int64(q.delay) - q.now().UnixNano())
	return left > 0, left
}

// take moves the oldest changes, up to len(dst), into dst. It waits for one, and for the delay of the oldest; 0 means
// that the queue was closed.
func (q *queue) take(dst []Change) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		rests, left := q.rests()
		if !rests {
			break
		}
		if left > 0 {
			timer := time.AfterFunc(min(left, look), q.wake)
			q.changed.Wait()
			timer.Stop()
			continue
		}
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

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// hold stops takes, or lets them go on. A closed queue is not held.
func (q *queue) hold(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = on
	q.changed.Broadcast()
}

// number gives the batch that was taken its sequence number.
func (q *queue) number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	q.shownBatches, q.shownEvents = q.batches, q.events
	return q.seq
}

// sent counts the batch that was taken as published.
func (q *queue) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches++
	q.events += uint64(q.taken)
	q.taken = 0
	if q.lag > 0 {
		q.sentAt = q.now()
	}
	if q.n == 0 {
		q.changed.Broadcast()
	}
}

// shown returns the counters of batches and events as a poll sees them: behind by the newest batch while its lag lasts,
// and never by more, because the real sender counts a batch before it takes the next.
func (q *queue) shown() (batches, events uint64) {
	if q.lag > 0 && q.batches > 0 && q.now().Sub(q.sentAt) < q.lag {
		return q.shownBatches, q.shownEvents
	}
	return q.batches, q.events
}

// length returns the number of changes in the queue; what was taken is not in it any more.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// waitRest waits until the queue is empty and nothing taken is unsent. It returns false if the queue was killed before.
func (q *queue) waitRest(ctx context.Context) (bool, error) {
	stop := context.AfterFunc(ctx, q.wake)
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
