package subscribe

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func item(source int, n int64, size int) Item {
	return Item{Source: source, Record: capture.Record{Kind: capture.Message, Received: n, Frames: [][]byte{make([]byte, size)}}}
}

const oneItem = itemBytes + frameBytes // cost of an item with one empty frame

// awaitPush waits until a Push waits for space.
func (b *Buffer) awaitPush(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "a Push waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.space.ch != nil
	})
}

func TestBufferBound(t *testing.T) {
	b := NewBuffer(3 * oneItem)
	for n := range int64(3) {
		if b.Push(item(0, n, 0)) {
			t.Fatal("waited with space left")
		}
	}
	if b.Len() != 3 || b.Bytes() != 3*oneItem || b.Max() != 3*oneItem {
		t.Fatalf("%d items, %d of %d bytes", b.Len(), b.Bytes(), b.Max())
	}
	waited := make(chan bool, 1)
	go func() { waited <- b.Push(item(0, 3, 0)) }()
	b.awaitPush(t)
	if len(waited) > 0 {
		t.Fatal("pushed into a full buffer")
	}
	items, err := b.Pop(context.Background(), 1) // less than one item: still one
	if err != nil || len(items) != 1 || items[0].Received != 0 {
		t.Fatal(items, err)
	}
	if !<-waited {
		t.Fatal("says it did not wait")
	}
	items, err = b.Pop(context.Background(), 2*oneItem+1)
	if err != nil || len(items) != 2 || items[1].Received != 2 {
		t.Fatal(items, err)
	}
	if items, _ = b.Pop(context.Background(), 1<<30); len(items) != 1 || items[0].Received != 3 || b.Bytes() != 0 {
		t.Fatal(items, b.Bytes())
	}
}

func TestBufferTakesOneLargerItem(t *testing.T) {
	b := NewBuffer(100)
	if b.Push(item(0, 0, 1<<20)) {
		t.Fatal("waited")
	}
	if space, err := b.offer(item(0, 1, 0), false); space == nil || err != nil {
		t.Fatal("a second item beyond the bound")
	}
	if space, err := b.offer(item(0, 1, 0), true); space != nil || err != nil {
		t.Fatal("force refused")
	}
	if items, err := b.Pop(context.Background(), 1<<30); len(items) != 2 || err != nil {
		t.Fatal(items, err)
	}
}

// TestBufferGathers: Gather returns when there is enough, when the buffer is full, when it is closed, and when the time has passed.
func TestBufferGathers(t *testing.T) {
	gathering := func(b *Buffer, bytes int64, wait time.Duration) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			b.Gather(bytes, wait)
			close(done)
		}()
		testkit.Eventually(t, "Gather waits", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.gather != 0
		})
		return done
	}
	b := NewBuffer(3 * oneItem)
	done := gathering(b, 2*oneItem, time.Hour)
	b.Push(item(0, 0, 0))
	b.mu.Lock()
	if b.items.ch == nil {
		t.Error("one item of two woke the writer")
	}
	b.mu.Unlock()
	b.Push(item(0, 1, 0))
	<-done
	b.Gather(2*oneItem, time.Hour) // they are there
	if items, err := b.Pop(context.Background(), 1<<30); len(items) != 2 || err != nil {
		t.Fatal(items, err)
	}
	done = gathering(b, 1<<30, time.Hour)
	for n := range int64(3) {
		b.Push(item(0, n, 0))
	}
	if space, err := b.offer(item(0, 3, 0), false); space == nil || err != nil {
		t.Fatal("a fourth item beyond the bound")
	}
	<-done
	done = gathering(b, 1<<30, time.Hour)
	b.Close()
	<-done
	b.Gather(1<<30, time.Hour)
	NewBuffer(1).Gather(1, time.Millisecond)
}

func TestBufferEnds(t *testing.T) {
	b := NewBuffer(oneItem)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Pop(done, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.Push(item(0, 0, 0))
	if items, err := b.Pop(done, 1); err != nil || len(items) != 1 {
		t.Fatal("an item that is there must come out", items, err)
	}
	b.Push(item(0, 1, 0))
	blocked := make(chan bool)
	go func() { blocked <- b.Push(item(0, 2, 0)) }()
	b.awaitPush(t)
	b.Close()
	<-blocked
	b.Push(item(0, 3, 0))
	if items, err := b.Pop(context.Background(), 1<<20); err != nil || len(items) != 1 || items[0].Received != 1 {
		t.Fatal(items, err)
	}
	if _, err := b.Pop(context.Background(), 1); err != io.EOF {
		t.Fatal(err)
	}
	waiting := NewBuffer(1)
	popped := make(chan error)
	go func() { _, err := waiting.Pop(context.Background(), 1); popped <- err }()
	waiting.Close()
	if err := <-popped; err != io.EOF {
		t.Fatal(err)
	}
}

// Several sources, one writer: every item once, in the order of its source, and never more than the bound (but for one
// item that is larger than it).
func TestBufferConcurrent(t *testing.T) {
	const sources, each, seed = 4, 5000, 1
	b := NewBuffer(20 * oneItem)
	var wg sync.WaitGroup
	for source := range sources {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(source)))
			for n := range int64(each) {
				b.Push(item(source, n, rng.IntN(3*oneItem)))
			}
		})
	}
	go func() { wg.Wait(); b.Close() }()
	rng := rand.New(rand.NewPCG(seed, sources))
	var next [sources]int64
	for {
		items, err := b.Pop(context.Background(), rng.Int64N(10*oneItem))
		if err == io.EOF {
			break
		}
		if err != nil || len(items) == 0 {
			t.Fatal(len(items), err)
		}
		for _, it := range items {
			if it.Received != next[it.Source] {
				t.Fatalf("source %d: item %d, want %d", it.Source, it.Received, next[it.Source])
			}
			next[it.Source]++
		}
		if b.Bytes() > b.Max() {
			t.Fatal("over the bound")
		}
	}
	for source, n := range next {
		if n != each {
			t.Errorf("source %d: %d items", source, n)
		}
	}
	if b.Len() != 0 || b.Bytes() != 0 {
		t.Error(b.Len(), b.Bytes())
	}
}

func BenchmarkBuffer(b *testing.B) {
	buf := NewBuffer(64 << 20)
	go func() {
		it := item(0, 0, 500)
		for range b.N {
			buf.Push(it)
		}
		buf.Close()
	}()
	b.ReportAllocs()
	for {
		if _, err := buf.Pop(context.Background(), 1<<20); err == io.EOF {
			return
		}
	}
}
