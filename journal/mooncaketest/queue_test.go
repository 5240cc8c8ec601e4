package mooncaketest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

func puts(keys ...string) (changes []Change) {
	for _, k := range keys {
		changes = append(changes, put(k))
	}
	return changes
}

// takeUpTo takes at most n changes.
func takeUpTo(q *queue, n int) []Change {
	dst := make([]Change, n)
	return dst[:q.take(dst)]
}

func wantSeq(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: seq %d, want %d", what, got, want)
	}
}

func TestQueueDropsTheOldestAndReservesItsNumber(t *testing.T) {
	q := newQueue(3)
	q.push(puts("a", "b", "c"))
	wantSeq(t, "nothing dropped", q.seq, 0)
	q.push(puts("d", "e"))
	if q.dropped != 2 {
		t.Errorf("dropped %d, want 2", q.dropped)
	}
	wantKeys(t, "what is left", takeUpTo(q, 64), "c", "d", "e")
	wantSeq(t, "the batch behind two drops", q.number(), 3)
	q.sent()
	q.push(puts("f"))
	wantKeys(t, "the next", takeUpTo(q, 64), "f")
	wantSeq(t, "no drop between", q.number(), 4)
	q.sent()
	if q.batches != 2 || q.events != 4 || q.batches+q.dropped != q.seq {
		t.Errorf("batches %d, events %d, dropped %d, seq %d", q.batches, q.events, q.dropped, q.seq)
	}
}

// R4: what is dropped while a taken batch has no number is newer than it and has a smaller seq.
func TestQueueNumbersATakenBatchOnlyWhenItIsSent(t *testing.T) {
	q := newQueue(2)
	q.push(puts("a", "b"))
	wantKeys(t, "taken", takeUpTo(q, 64), "a", "b")
	q.push(puts("c", "d", "e")) // c is dropped: it is newer than a and b
	wantSeq(t, "reserved for c", q.seq, 1)
	wantSeq(t, "a, b", q.number(), 2)
	q.push(puts("f")) // d is dropped after a, b got their number
	wantSeq(t, "reserved for d", q.seq, 3)
	q.sent()
	wantKeys(t, "the next", takeUpTo(q, 64), "e", "f")
	wantSeq(t, "e, f", q.number(), 4)
}

func TestQueueTakesAtMostABatchInOrder(t *testing.T) {
	q := newQueue(1000) // the ring grows and wraps several times
	want := 0
	for round := range 50 {
		for i := range 37 {
			q.push(puts(fmt.Sprint(round*37 + i)))
		}
		for q.length() > 10 {
			got := takeUpTo(q, 16)
			if len(got) != min(16, len(got)+q.length()) {
				t.Fatalf("took %d with %d left", len(got), q.length())
			}
			for _, c := range got {
				if c.Key != fmt.Sprint(want) {
					t.Fatalf("got %s, want %d", c.Key, want)
				}
				want++
			}
			q.number()
			q.sent()
		}
	}
	if q.dropped != 0 {
		t.Errorf("dropped %d", q.dropped)
	}
}

func TestQueueKeepsOnePushTogether(t *testing.T) {
	q := newQueue(1 << 20)
	const pushers, pushes = 4, 500
	var wait sync.WaitGroup
	for p := range pushers {
		wait.Go(func() {
			for i := range pushes {
				k := fmt.Sprint(p, "/", i)
				q.push(puts(k, k, k))
			}
		})
	}
	seen := 0
	var before, key string
	for seen < pushers*pushes*3 {
		for _, c := range takeUpTo(q, BatchEvents) {
			if seen%3 > 0 && c.Key != key || seen%3 == 0 && c.Key == before {
				t.Fatalf("change %d is %s behind %s", seen, c.Key, key)
			}
			before, key = key, c.Key
			seen++
		}
		q.number()
		q.sent()
	}
	wait.Wait()
}

func TestQueueRest(t *testing.T) {
	q := newQueue(10)
	ctx := t.Context()
	if ok, err := q.waitRest(ctx); !ok || err != nil {
		t.Fatalf("an empty queue is not at rest: %v %v", ok, err)
	}
	q.push(puts("a"))
	takeUpTo(q, 64)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if ok, err := q.waitRest(done); ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("at rest with a batch in hand: %v %v", ok, err)
	}
	rested := make(chan bool)
	go func() {
		ok, _ := q.waitRest(ctx)
		rested <- ok
	}()
	q.number()
	q.sent()
	if !<-rested {
		t.Fatal("not at rest though all was sent")
	}
	q.push(puts("b"))
	go func() {
		ok, _ := q.waitRest(ctx)
		rested <- ok
	}()
	q.close(true)
	if <-rested {
		t.Fatal("a killed queue is at rest with a change in it")
	}
}

func TestQueueCloseSendsWhatIsThere(t *testing.T) {
	q := newQueue(10)
	q.push(puts("a", "b"))
	q.close(false)
	q.push(puts("late"))
	wantKeys(t, "left", takeUpTo(q, 64), "a", "b")
	q.number()
	q.sent()
	if n := q.take(make([]Change, 1)); n != 0 {
		t.Errorf("took %d from a closed queue", n)
	}
	k := newQueue(10)
	k.push(puts("a"))
	k.close(true)
	if n := k.take(make([]Change, 1)); n != 0 {
		t.Errorf("took %d from a killed queue", n)
	}
}
