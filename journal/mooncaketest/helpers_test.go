package mooncaketest

import (
	"bytes"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/event"
)

// patience is how long a test waits for something that must happen. It is not waited for otherwise.
const patience = time.Minute

// place is one row of a store's state.
type place struct{ tenant, key, medium string }

// state is a set of media for each object, as a reader of the stream builds it.
type state map[place]bool

func (s state) stored(tenant, key, medium string)  { s[place{tenant, key, medium}] = true }
func (s state) removed(tenant, key, medium string) { delete(s, place{tenant, key, medium}) }
func (s state) cleared(tenant string) {
	maps.DeleteFunc(s, func(p place, _ bool) bool { return p.tenant == tenant })
}

func (s state) apply(changes ...Change) {
	for _, c := range changes {
		switch c.Type {
		case event.Stored:
			s.stored(c.Tenant, c.Key, c.Medium)
		case event.Removed:
			s.removed(c.Tenant, c.Key, c.Medium)
		case event.Cleared:
			s.cleared(c.Tenant)
		}
	}
}

// stateOf is a store's true state in the same form.
func stateOf(s *Store) state {
	out := state{}
	for o := range s.Objects() {
		if o.CPU {
			out.stored(o.Tenant, o.Key, CPU)
		}
		if o.Disk {
			out.stored(o.Tenant, o.Key, Disk)
		}
	}
	return out
}

// message is one received and decoded message.
type message struct {
	seq     uint64
	time    int64
	changes []Change
	ids     []uint64
}

// subscriber receives what a publisher sends. It belongs to the test's goroutine.
type subscriber struct {
	t      *testing.T
	socket *zmq.Socket
	batch  event.Batch
}

// subscribe connects to the endpoint and waits until the subscription has arrived: probe makes the publisher send
// something, again and again, and what it sent is received.
func subscribe(t *testing.T, endpoint string, probe func()) (*subscriber, []message) {
	t.Helper()
	ctx, err := zmq.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ctx.NewSocket(zmq.SUB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		socket.Close()
		ctx.Term()
	})
	s := &subscriber{t: t, socket: socket}
	for _, err := range []error{
		socket.SetLinger(0), socket.SetRcvhwm(0), socket.SetReconnectIvl(20 * time.Millisecond),
		socket.SetSubscribe(""), socket.SetRcvtimeo(10 * time.Millisecond), socket.Connect(endpoint),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		probe()
		if m, ok := s.try(); ok {
			return s, []message{m}
		}
	}
	t.Fatal("the subscription has not arrived")
	return nil, nil
}

// try receives one message if one comes within a moment.
func (s *subscriber) try() (message, bool) {
	s.t.Helper()
	frames, err := s.socket.RecvMessageBytes(0)
	if err != nil {
		return message{}, false
	}
	if len(frames) != 3 || len(frames[0]) != 0 {
		s.t.Fatalf("want an empty topic and 3 frames, got %q", frames)
	}
	s.batch.Scan(frames)
	if s.batch.Damage != event.None {
		s.t.Fatalf("damaged message: %v at %d", s.batch.Damage, s.batch.DamageAt)
	}
	m := message{seq: s.batch.Seq, time: s.batch.Time}
	for _, e := range s.batch.Events {
		m.changes = append(m.changes, Change{e.Type, string(e.Tenant), string(e.Medium), string(e.Key), string(e.Group)})
		m.ids = append(m.ids, e.ID)
	}
	return m, true
}

// until receives messages until one of them satisfies last.
func (s *subscriber) until(last func(message) bool) (all []message) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if m, ok := s.try(); ok {
			if all = append(all, m); last(m) {
				return all
			}
		}
	}
	s.t.Fatalf("waited in vain, received %d messages", len(all))
	return nil
}

func seqIs(seq uint64) func(message) bool { return func(m message) bool { return m.seq == seq } }

// start starts a publisher that ends with the test.
func start(t *testing.T, o Options) *Publisher {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func put(key string) Change {
	return Change{Type: event.Stored, Tenant: event.DefaultTenant, Medium: CPU, Key: key}
}

// keys of a batch, for comparison.
func keysOf(changes []Change) (keys []string) {
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys
}

func wantKeys(t *testing.T, what string, got []Change, want ...string) {
	t.Helper()
	if !slices.Equal(keysOf(got), want) {
		t.Errorf("%s: got keys %q, want %q", what, keysOf(got), want)
	}
}

// lines splits a truth file.
func lines(b []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

// clock is a scripted clock.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1_700_000_000_000_000_000)
	return c
}

func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }
