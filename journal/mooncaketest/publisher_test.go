package mooncaketest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
)

func waitIdle(t *testing.T, p *Publisher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestPublisherNumbers(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	p := start(t, Options{Now: func() time.Time { return now }, BackendID: "b7"})
	s, got := subscribe(t, p.Endpoint(), func() { p.Enqueue(put("probe")) })
	var sent []Change
	for i := range 1000 {
		sent = append(sent, put(fmt.Sprint(i)))
	}
	sent = append(sent,
		Change{Type: event.Stored, Tenant: "t", Medium: Disk, Key: "odd \x00\xff, key", Group: "g"},
		Change{Type: event.Removed, Tenant: "t", Medium: Disk, Key: "odd \x00\xff, key"},
		Change{Type: event.Cleared, Tenant: "t"})
	waitIdle(t, p)
	p.Enqueue(sent...)
	waitIdle(t, p)
	stats := p.Stats()
	got = append(got, s.until(seqIs(stats.PublishedBatches))...)

	for i, m := range got {
		if len(m.changes) == 0 || len(m.changes) > BatchEvents {
			t.Errorf("a batch of %d events", len(m.changes))
		}
		if m.time != now.UnixMilli() {
			t.Errorf("time %d", m.time)
		}
		if i > 0 && m.seq != got[i-1].seq+1 {
			t.Errorf("seq %d behind %d", m.seq, got[i-1].seq)
		}
	}
	var changes []Change
	var ids []uint64
	for _, m := range got {
		changes, ids = append(changes, m.changes...), append(ids, m.ids...)
	}
	for i := range ids[1:] {
		if ids[i+1] != ids[i]+1 {
			t.Errorf("event_id %d behind %d", ids[i+1], ids[i])
		}
	}
	if last := ids[len(ids)-1]; last != stats.PublishedEvents || stats.DroppedEvents != 0 {
		t.Errorf("last event_id %d, counters %+v", last, stats)
	}
	if tail := changes[max(0, len(changes)-len(sent)):]; !slices.Equal(tail, sent) {
		t.Errorf("received %d changes, not those that were sent", len(tail))
	}
	if string(s.batch.Events[0].Backend) != "b7" {
		t.Errorf("backend %q", s.batch.Events[0].Backend)
	}
}

// R4 on the wire: while the sender holds a batch without a number, the queue overflows.
func TestPublisherDropsNewerEventsBeforeATakenBatch(t *testing.T) {
	taken, goOn := make(chan int), make(chan struct{})
	hold := make(chan bool, 1)
	hold <- false
	p := start(t, Options{QueueCapacity: 4, OnTaken: func(n int) {
		if on := <-hold; on {
			hold <- on
			taken <- n
			<-goOn
		} else {
			hold <- on
		}
	}})
	s, _ := subscribe(t, p.Endpoint(), func() { p.Enqueue(put("probe")) })
	waitIdle(t, p)
	base := p.Stats()
	<-hold
	hold <- true
	p.Enqueue(put("old"))
	if n := <-taken; n != 1 {
		t.Fatalf("the sender took %d", n)
	}
	for i := range 10 { // 4 fit
		p.Enqueue(put(fmt.Sprint("new", i)))
	}
	<-hold
	hold <- false
	goOn <- struct{}{}
	waitIdle(t, p)

	if dropped := p.Stats().DroppedEvents - base.DroppedEvents; dropped != 6 {
		t.Fatalf("dropped %d, want 6", dropped)
	}
	last := base.PublishedBatches + base.DroppedEvents
	got := s.until(func(m message) bool { return m.changes[0].Key == "old" })
	old := got[len(got)-1]
	if old.seq != last+7 {
		t.Errorf("the batch that was taken first has seq %d, want %d: behind the six that were dropped later", old.seq, last+7)
	}
	next := s.until(seqIs(last + 8))[0]
	wantKeys(t, "the next batch", next.changes, "new6", "new7", "new8", "new9")
	if next.ids[0] != old.ids[0]+1 {
		t.Errorf("event_id %d behind %d: dropped events must not take ids", next.ids[0], old.ids[0])
	}
}

func TestPublisherKeyless(t *testing.T) {
	p := start(t, Options{NoObjectKey: true})
	clear := Change{Type: event.Cleared, Tenant: "default"}
	s, _ := subscribe(t, p.Endpoint(), func() { p.Enqueue(clear) })
	waitIdle(t, p)
	before := p.Stats()
	p.Enqueue(put("a"), Change{Type: event.Removed, Tenant: "default", Medium: CPU, Key: "a"}, clear, put("b"))
	waitIdle(t, p)
	after := p.Stats()
	if after.SkippedKeylessEvents != 3 || after.PublishedEvents != before.PublishedEvents+1 || after.DroppedEvents != 0 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	for _, m := range s.until(seqIs(after.PublishedBatches)) {
		for _, c := range m.changes {
			if c != clear {
				t.Errorf("received %v", c)
			}
		}
	}
}

// A publisher knows of a subscription once nothing is missed any more, and when it is gone.
func TestPublisherSubscribed(t *testing.T) {
	p := start(t, Options{TellsSubscribed: true})
	if p.Subscribed() {
		t.Error("subscribed by nobody")
	}
	s, first := subscribe(t, p.Endpoint(), func() {
		if p.Subscribed() {
			p.Enqueue(put("first"))
		}
	})
	if first[0].seq != 1 {
		t.Errorf("the first message that came is %d", first[0].seq)
	}
	if err := s.socket.Disconnect(p.Endpoint()); err != nil {
		t.Fatal(err)
	}
	until(t, "the subscription is gone", func() bool {
		s.try() // libzmq needs the socket to be used
		return !p.Subscribed()
	})
	p.Kill()
	if p.Subscribed() || start(t, Options{}).Subscribed() {
		t.Error("subscribed, though ended, or though it does not tell")
	}
}

// A killed publisher frees its port at once, and the next one numbers from 1.
func TestPublisherRestart(t *testing.T) {
	p := start(t, Options{Bind: reserved(t)})
	s, _ := subscribe(t, p.Endpoint(), func() { p.Enqueue(put("first")) })
	p.Kill()
	p.Enqueue(put("late"))
	q := start(t, Options{Bind: p.Endpoint()})
	if q.Endpoint() != p.Endpoint() {
		t.Fatalf("bound to %s instead of %s", q.Endpoint(), p.Endpoint())
	}
	var got message
	for end := time.Now().Add(patience); len(got.changes) == 0 || got.changes[0].Key != "second"; {
		q.Enqueue(put("second"))
		got, _ = s.try()
		if time.Now().After(end) {
			t.Fatal("nothing received from the new publisher")
		}
	}
	waitIdle(t, q)
	if stats := q.Stats(); got.seq > stats.PublishedBatches || got.ids[0] > stats.PublishedEvents {
		t.Errorf("seq %d, event_id %d, but the new publisher has sent %+v", got.seq, got.ids[0], stats)
	}
}

// Close sends what is queued, and waits for the subscriber to take it.
func TestPublisherClose(t *testing.T) {
	p := start(t, Options{Linger: patience})
	s, _ := subscribe(t, p.Endpoint(), func() { p.Enqueue(put("probe")) })
	for range 5000 {
		p.Enqueue(put("x"))
	}
	p.Enqueue(put("last"))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	s.until(func(m message) bool { return m.changes[len(m.changes)-1].Key == "last" })
	if stats := p.Stats(); stats.DroppedEvents != 0 || p.QueueLength() != 0 {
		t.Errorf("%+v, %d queued", stats, p.QueueLength())
	}
	if err := p.Close(); err != nil {
		t.Error("a second Close:", err)
	}
	p.Kill()
}

func TestPublisherRefuses(t *testing.T) {
	for _, o := range []Options{{Bind: "nonsense"}, {Bind: "tcp://1.2.3.4:1"}, {QueueCapacity: -1}, {SendHWM: -1}} {
		if p, err := Start(o); err == nil {
			p.Kill()
			t.Errorf("%+v was accepted", o)
		}
	}
}
