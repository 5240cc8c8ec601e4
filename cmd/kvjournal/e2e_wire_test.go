package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// wire is a publisher's socket driven by hand: what was handed to the network, and what was not, is known exactly.
type wire struct {
	t        *testing.T
	context  *zmq.Context
	socket   *zmq.Socket // XPUB: it tells of subscribers, and of its high-water mark
	encoder  *event.Encoder
	endpoint string // where recorders find it
	salt     string // of every event, to make it large
	seq, id  uint64 // the last ones that were used
	dropped  []hole
}

// newWire opens a publisher with a send high-water mark. It is not bound yet: what it sends nobody can get.
func newWire(t *testing.T, mark int) *wire {
	t.Helper()
	w := &wire{t: t, encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true})}
	var err error
	if w.context, err = zmq.NewContext(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if w.socket, err = w.context.NewSocket(zmq.XPUB); err != nil {
		t.Fatal(err)
	}
	w.must(w.socket.SetLinger(0))
	w.must(w.socket.SetSndhwm(mark))
	w.must(w.socket.SetXpubNodrop(true)) // the mark refuses a message, where a PUB drops it without a word
	w.must(w.socket.SetRcvtimeo(patience))
	return w
}

func (w *wire) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// bind makes the publisher reachable; an empty endpoint is a free port.
func (w *wire) bind(endpoint string) *wire {
	w.t.Helper()
	if endpoint == "" {
		endpoint = mooncaketest.Reserved(w.t)
	}
	eventually(w.t, "the port is free", func() bool {
		err := w.socket.Bind(endpoint)
		if zmq.AsErrno(err) != zmq.Errno(syscall.EADDRINUSE) {
			w.must(err)
		}
		return err == nil
	})
	var err error
	w.endpoint, err = w.socket.GetLastEndpoint()
	w.must(err)
	return w
}

// close ends the publisher as the death of its process does.
func (w *wire) close() {
	if w.socket != nil {
		w.socket.Close()
		w.socket = nil
	}
	if w.context != nil {
		w.context.Term()
		w.context = nil
	}
}

// subscribed waits until a subscription has come, or has gone with its connection.
func (w *wire) subscribed(want bool) {
	w.t.Helper()
	b, err := w.socket.RecvBytes(0)
	if err != nil || len(b) != 1 || (b[0] == 1) != want {
		w.t.Fatalf("waiting for a subscription (%v) the publisher got %q, %v", want, b, err)
	}
}

// try hands a message to the network, or says that the mark is reached.
func (w *wire) try(frames [][]byte) bool {
	w.t.Helper()
	for i, f := range frames {
		flags := zmq.DONTWAIT
		if i < len(frames)-1 {
			flags |= zmq.SNDMORE
		}
		_, err := w.socket.SendBytes(f, flags)
		if i == 0 && zmq.AsErrno(err) == zmq.Errno(syscall.EAGAIN) {
			return false
		}
		w.must(err)
	}
	return true
}

// raw sends a message below the mark.
func (w *wire) raw(frames ...[]byte) {
	w.t.Helper()
	if !w.try(frames) {
		w.t.Fatalf("message %d is refused", w.seq)
	}
}

// next makes the publisher's next message, with so many events.
func (w *wire) next(events int) [][]byte {
	w.seq++
	now := time.Now().UnixMilli()
	fields := make([]event.Fields, events)
	for i := range fields {
		w.id++
		fields[i] = stored(fmt.Sprintf("k%d", w.id%50), "cpu")
		fields[i].ID, fields[i].Timestamp = w.id, now
		if w.salt != "" {
			fields[i].Salt = &w.salt
		}
	}
	return [][]byte{{}, w.number(), w.encoder.AppendPayload(nil, now, fields, 0)}
}

func (w *wire) number() []byte {
	seq := event.SeqFrame(w.seq)
	return seq[:]
}

// send sends n messages of three events each.
func (w *wire) send(n int) {
	w.t.Helper()
	for range n {
		w.raw(w.next(3)...)
	}
}

// drop sends messages of three events as a PUB does, which drops what its mark refuses, until n in a row were dropped.
func (w *wire) drop(n uint64) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if w.try(w.next(3)) {
			if time.Now().After(deadline) {
				w.t.Fatal("the mark is never reached")
			}
			continue
		}
		if last := len(w.dropped) - 1; last >= 0 && w.dropped[last].last == w.seq-1 {
			w.dropped[last].last, w.dropped[last].events = w.seq, w.dropped[last].events+3
		} else {
			w.dropped = append(w.dropped, hole{w.seq, w.seq, 3})
		}
		if h := w.dropped[len(w.dropped)-1]; h.last-h.first+1 >= n {
			return
		}
	}
}

// push sends one message however long the mark refuses it, and calls wait before each further attempt.
func (w *wire) push(wait func()) {
	w.t.Helper()
	message := w.next(3)
	eventually(w.t, "the mark lets a message through", func() bool {
		if w.try(message) {
			return true
		}
		wait()
		return false
	})
}

func nothing() {}

// record starts a recorder of a publisher that nobody listens to, and waits until it would miss nothing.
func (w *wire) record(dir string, more ...string) *process {
	w.t.Helper()
	before := 0
	if _, ok := tryStats(w.t, dir); ok {
		before = connections(w.t, dir)
	}
	rec := record(w.t, dir, w.endpoint, more...)
	w.subscribed(true)
	connectedAgain(w.t, dir, before)
	return rec
}

// connections is how many connections are recorded. Behind that record, no message of an older one can come (R5).
func connections(t *testing.T, dir string) int {
	t.Helper()
	return len(kvjournal(t, "log", "--dir", dir, "--type", "connected", "--output", "json").answered(t))
}

func connectedAgain(t *testing.T, dir string, before int) {
	t.Helper()
	eventually(t, "another connection is recorded", func() bool { return connections(t, dir) > before })
}

// recordedSeq waits until the message with that number is recorded and indexed.
func recordedSeq(t *testing.T, dir string, seq uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("message %d is recorded", seq), func() bool {
		st := stats(t, dir)
		return st.Index.Lag == 0 && len(st.Sources) == 1 && st.Sources[0].Seq == seq
	})
}
