package subscribe

import (
	"sync/atomic"
	"time"
)

// Status is a Subscriber as it stands. Connected, Since, WindowOpen, Disconnects and LastError are of one moment, the
// counters beside them of another.
type Status struct {
	Source   int
	Endpoint string

	Connected bool      // a connection with a finished handshake stands
	Since     time.Time // when that last changed; of New, if never
	// WindowOpen: no connection is proven to be the one that messages come from (rule R5). True before the first connection.
	WindowOpen bool

	Messages    uint64 // received
	Bytes       uint64 // of their frames
	Disconnects uint64 // connections that broke after their handshake
	Replaced    uint64 // sockets replaced because libzmq would not reconnect, or too often

	// LastMessage is when a message was received last; zero: never.
	LastMessage time.Time

	Stalled   bool          // the Buffer is full, nothing is read
	Stalls    uint64        // times the Buffer was found full
	StallTime time.Duration // spent so

	// LastError is what was wrong last, for people; it stays when things are well again, with its time. Empty: nothing ever.
	LastError     string
	LastErrorTime time.Time
}

// status is what Run shows to other goroutines.
type status struct {
	source   int
	endpoint string

	messages, bytes  atomic.Uint64
	replaced, stalls atomic.Uint64
	stallTime        atomic.Int64 // ns
	stalled          atomic.Bool
	lastMessage      atomic.Int64 // Unix ns
	connection       atomic.Pointer[connection]
}

// connection is the part that changes with events only.
type connection struct {
	connected, windowOpen bool
	since, troubleAt      time.Time
	trouble               string
	disconnects           uint64
}

func (s *status) get() connection  { return *s.connection.Load() }
func (s *status) set(c connection) { s.connection.Store(&c) }

// count returns the bytes of the message that it counts, as much as libzmq holds for it.
func (s *status) count(frames [][]byte) (held int64) {
	n := 0
	for _, f := range frames {
		n += len(f)
	}
	s.messages.Add(1)
	s.bytes.Add(uint64(n))
	return int64(n + frameBytes*len(frames))
}

// Status may be called at any time, from any goroutine.
func (s *Subscriber) Status() Status {
	c := s.status.get()
	st := Status{
		Source: s.status.source, Endpoint: s.status.endpoint,
		Connected: c.connected, Since: c.since, WindowOpen: c.windowOpen,
		Messages: s.status.messages.Load(), Bytes: s.status.bytes.Load(),
		Disconnects: c.disconnects, Replaced: s.status.replaced.Load(),
		Stalled: s.status.stalled.Load(), Stalls: s.status.stalls.Load(), StallTime: time.Duration(s.status.stallTime.Load()),
		LastError: c.trouble, LastErrorTime: c.troubleAt,
	}
	if at := s.status.lastMessage.Load(); at != 0 {
		st.LastMessage = time.Unix(0, at)
	}
	if st.LastError == "" {
		st.LastErrorTime = time.Time{}
	}
	return st
}
