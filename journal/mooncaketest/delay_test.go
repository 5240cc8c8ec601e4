package mooncaketest

import (
	"fmt"
	"testing"
	"time"
)

// tryTake takes up to 64 changes on another goroutine; wait returns their keys.
func tryTake(q *queue) (got <-chan []string) {
	c := make(chan []string, 1)
	go func() { c <- keysOf(takeUpTo(q, BatchEvents)) }()
	return c
}

func wantTaken(t *testing.T, what string, got <-chan []string, want string) {
	t.Helper()
	select {
	case keys := <-got:
		if fmt.Sprint(keys) != want {
			t.Errorf("%s: took %v, want %v", what, keys, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s: nothing was taken", what)
	}
}

func wantRest(t *testing.T, what string, q *queue, want bool, left time.Duration) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if rests, l := q.rests(); rests != want || rests && l != left {
		t.Errorf("%s: rests %t for %v, want %t for %v", what, rests, l, want, left)
	}
}

// The oldest change rests for the delay and takes younger ones with it: a take of fewer than 64 leaves the queue empty.
func TestQueueDelay(t *testing.T) {
	c := newClock()
	q := newQueue(1000)
	q.delay, q.now = time.Second, c.now
	q.push(puts("a"))
	c.add(400 * time.Millisecond)
	q.push(puts("b", "c"))
	wantRest(t, "a is young", q, true, 600*time.Millisecond)
	got := tryTake(q)
	c.add(600 * time.Millisecond)
	wantTaken(t, "a is due", got, "[a b c]")
	q.number()
	q.sent()

	// More than a batch: the rest waits for the delay of its own oldest.
	c.add(time.Second)
	for i := range 200 { // the rings grow
		q.push(puts(fmt.Sprint(i)))
		c.add(time.Millisecond)
	}
	wantRest(t, "0 is young", q, true, 800*time.Millisecond)
	c.add(800 * time.Millisecond)
	if keys := keysOf(takeUpTo(q, BatchEvents)); len(keys) != 64 || keys[63] != "63" {
		t.Errorf("took %v", keys)
	}
	wantRest(t, "64 is young", q, true, 64*time.Millisecond)
	q.close(false)
	wantRest(t, "closed", q, false, 0)
	if keys := keysOf(takeUpTo(q, BatchEvents)); len(keys) != 64 || keys[0] != "64" {
		t.Errorf("took %v", keys)
	}
}

// What is dropped from a queue with a delay does not rest for what is left.
func TestQueueDelayWithDrops(t *testing.T) {
	c := newClock()
	q := newQueue(2)
	q.delay, q.now = time.Second, c.now
	q.push(puts("a", "b"))
	c.add(500 * time.Millisecond)
	q.push(puts("c", "d"))
	wantRest(t, "c is the oldest", q, true, time.Second)
	if q.dropped != 2 {
		t.Errorf("dropped %d", q.dropped)
	}
}

func TestQueueHold(t *testing.T) {
	q := newQueue(10)
	q.hold(true)
	q.push(puts("a"))
	wantRest(t, "held", q, true, 0)
	got := tryTake(q)
	q.push(puts("b"))
	q.hold(false)
	wantTaken(t, "let go", got, "[a b]")
	q.number()
	q.sent()
	q.hold(true)
	q.push(puts("c"))
	q.close(false)
	wantTaken(t, "closed", tryTake(q), "[c]")
}

// A poll is behind by one batch at most, for the lag at most.
func TestQueueStatusLag(t *testing.T) {
	c := newClock()
	q := newQueue(10)
	q.lag, q.now = time.Second, c.now
	send := func(keys ...string) {
		q.push(puts(keys...))
		takeUpTo(q, BatchEvents)
		q.number()
		q.sent()
	}
	wantShown := func(what string, batches, events uint64) {
		t.Helper()
		if b, e := q.shown(); b != batches || e != events {
			t.Errorf("%s: shown %d batches, %d events, want %d, %d", what, b, e, batches, events)
		}
	}
	wantShown("nothing sent", 0, 0)
	send("a", "b")
	wantShown("just sent", 0, 0)
	c.add(time.Second - 1)
	wantShown("still", 0, 0)
	c.add(1)
	wantShown("the lag is over", 1, 2)
	send("c")
	wantShown("the second", 1, 2)
	q.push(puts("d"))
	takeUpTo(q, BatchEvents)
	wantShown("a third was taken", 1, 2)
	q.number()
	wantShown("a third is being sent: the second counts", 2, 3)
	q.sent()
	wantShown("the third", 2, 3)
	c.add(time.Second)
	wantShown("all", 3, 4)
	if q.batches != 3 || q.events != 4 {
		t.Errorf("%d batches, %d events", q.batches, q.events)
	}
}

// Status lags behind Stats and never by more than a batch.
func TestPublisherStatusLag(t *testing.T) {
	c := newClock()
	p := start(t, Options{StatusLag: time.Minute, Now: c.now})
	for range 3 {
		p.Enqueue(put("a"))
		waitIdle(t, p)
	}
	if s, l := p.Stats(), p.Status(); s.PublishedBatches != 3 || l.PublishedBatches != 2 || l.PublishedEvents != 2 {
		t.Errorf("%+v, polled %+v", s, l)
	}
	c.add(time.Minute)
	if s, l := p.Stats(), p.Status(); s != l {
		t.Errorf("%+v, polled %+v", s, l)
	}
}

// What is lost on the wire is numbered and counted; only the next message shows it, by both numbers.
func TestPublisherLose(t *testing.T) {
	p := start(t, Options{})
	s, got := subscribe(t, p.Endpoint(), func() { p.Enqueue(put("probe")) })
	waitIdle(t, p)
	before := p.Stats()
	if got[0].seq < before.PublishedBatches {
		s.until(seqIs(before.PublishedBatches))
	}
	p.Lose(true)
	for range 2 {
		p.Enqueue(put("lost"), put("lost"))
		waitIdle(t, p)
	}
	p.Lose(false)
	if after := p.Stats(); after.PublishedBatches != before.PublishedBatches+2 || after.PublishedEvents != before.PublishedEvents+4 || after.DroppedEvents != 0 {
		t.Errorf("%+v, before %+v", after, before)
	}
	p.Enqueue(put("next"))
	next := s.until(func(message) bool { return true })[0]
	wantKeys(t, "received next", next.changes, "next")
	if next.seq != before.PublishedBatches+3 || next.ids[0] != before.PublishedEvents+5 {
		t.Errorf("seq %d, event_id %d behind %+v", next.seq, next.ids[0], before)
	}
}

// The store is ahead of the stream while the queue delays.
func TestPublisherQueueDelay(t *testing.T) {
	c := newClock()
	m := newMaster(t, SimOptions{Publisher: Options{QueueDelay: time.Hour, Now: c.now}}, AdminOptions{})
	m.do(put("a"))
	c.add(time.Hour - 1)
	if m.listing()[0] != "a" {
		t.Error("not stored")
	}
	m.want("/kv_events/status", 200, `{"enabled":true,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_keyless_events":0}`)
	c.add(1)
	waitIdle(t, m.Publisher())
	m.want("/kv_events/status", 200, `{"enabled":true,"published_batches":1,"published_events":1,"dropped_events":0,"skipped_keyless_events":0}`)
}
