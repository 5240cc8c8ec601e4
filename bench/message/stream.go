package message

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// Message is one message as a subscriber receives it.
type Message struct {
	// Seq is 1, 2, 3 …
	Seq uint64
	// Time is the publisher's, Unix ms; Received is the recorder's, Unix ns.
	Time, Received int64
	// Events is the number of events.
	Events int
	// Frames are topic, seq and payload.
	Frames [][]byte
}

// Payload is the third frame: what has to be kept, beside Seq and Received.
func (m *Message) Payload() []byte { return m.Frames[2] }

// Shapes are the names of all shapes.
var Shapes = []string{"64", "1", "day"}

// Begin is the publisher time of the first message, Unix ms.
const Begin = 1_795_985_000_000

// Stream makes messages one group after another.
type Stream struct {
	traffic *mooncaketest.Traffic
	plan    func() (messages, events int) // of the next group: events of its next message
	seq     uint64
	slab    []byte
}

// NewStream begins a stream of a shape whose store grows to this many live objects.
func NewStream(shape string, objects int, seed uint64) (*Stream, error) {
	o := mooncaketest.StoreOptions{Seed: seed, Objects: objects}
	s := &Stream{}
	perMS := 100
	switch shape {
	case "64":
		s.plan = func() (int, int) { return 32, 64 }
	case "1":
		s.plan = func() (int, int) { return 512, 1 }
	case "day":
		o.Tenants, o.ClearEvery = 3, 50_000
		d := day{rng: rand.New(rand.NewPCG(seed, 1))}
		s.plan, perMS = d.next, 5
	default:
		return nil, fmt.Errorf("no shape %q; there is %v", shape, Shapes)
	}
	s.traffic = mooncaketest.NewTraffic(o, mooncaketest.BatchEvents, Begin)
	s.traffic.EventsPerMS = perMS
	return s, nil
}

// Group makes the next group, in memory of its own.
func (s *Stream) Group() []Message {
	n, events := s.plan()
	group := make([]Message, 0, n)
	for {
		group = append(group, s.message(events))
		if len(group) == n {
			return group
		}
		_, events = s.plan()
	}
}

// Finish makes one more message if need be, so that Objects is what the messages said.
func (s *Stream) Finish() []Message {
	var group []Message
	for s.traffic.Rest() > 0 {
		group = append(group, s.message(min(s.traffic.Rest(), mooncaketest.BatchEvents)))
	}
	return group
}

// Objects are those that the messages left behind, in an order that the seed gives.
func (s *Stream) Objects() []mooncaketest.Object {
	return slices.Collect(s.traffic.Objects())
}

// slabSize is how much memory is taken at once for many messages.
const slabSize = 4 << 20

func (s *Stream) message(events int) Message {
	frames, ms := s.traffic.NextOf(events)
	s.seq++
	m := Message{Seq: s.seq, Time: ms, Received: ms*1e6 + int64(s.seq%997)*1000, Events: events}
	for _, f := range frames {
		m.Frames = append(m.Frames, s.keep(f))
	}
	return m
}

func (s *Stream) keep(b []byte) []byte {
	if cap(s.slab)-len(s.slab) < len(b) {
		s.slab = make([]byte, 0, max(slabSize, len(b)))
	}
	n := len(s.slab)
	s.slab = append(s.slab, b...)
	return s.slab[n:len(s.slab):len(s.slab)]
}
