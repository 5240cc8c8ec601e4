package subscribe

import "github.com/kvjournal/kvjournal/journal/capture"

// window decides where Connected and Disconnected stand among the messages: rule R5 as a pure state machine.
// It is fed once per turn of the loop: the outcome of one receive attempt, and the connection events drained after it.
//
// It keeps two promises about the sequence of kinds it gives out (the proof is in doc.go):
//
//  1. Between a Connected and the next Disconnected every message came over one connection.
//  2. A message that may have come over a later connection stands behind a Disconnected.
type window struct{ phase phase }

type phase uint8

const (
	unconnected phase = iota // no connection and no message yet
	proven                   // a connection stands, and all that comes is its own
	broken                   // R5's window is open, and no connection stands
	reconnected              // R5's window is open; a connection stands, but messages of older ones may still be queued
)

// transition is a connection event that matters to the window.
type transition uint8

const (
	handshaken transition = iota + 1
	lost
)

// outcome is what a receive attempt brought.
type outcome uint8

const (
	nothing outcome = iota // no attempt was made (the loop was held up behind a full buffer)
	empty                  // EAGAIN: the data socket had no message
	message
)

// turn returns, appended to dst, the kinds that stand before the message of this turn, if it has one.
func (w *window) turn(dst []capture.Kind, got outcome, drained []transition) []capture.Kind {
	// An empty socket proves something only if the handshake was known before it was asked, and
	// if nothing broke until after.
	proves := got == empty && w.phase == reconnected
	for _, t := range drained {
		switch {
		case t == handshaken && w.phase == unconnected:
			w.phase = proven // no older connection, so no window
			dst = append(dst, capture.Connected)
		case t == handshaken && w.phase == broken:
			w.phase = reconnected
		case t == lost && w.phase == proven:
			w.phase, proves = broken, false
			dst = append(dst, capture.Disconnected)
		case t == lost && w.phase == reconnected:
			w.phase, proves = broken, false
		case t == handshaken && w.phase == proven:
			// A second handshake without a loss between: libzmq does not do that. If it did, the loss was not reported.
			w.phase, proves = reconnected, false
			dst = append(dst, capture.Disconnected)
		case t == handshaken && w.phase == reconnected:
			proves = false
		}
	}
	if got == message && w.phase == unconnected {
		// No handshake, and yet a message: a peer older than ZMTP 3.0, or no ZeroMQ at all. libzmq lets both in, and
		// reports no handshake. Nothing is known about such a connection.
		w.phase = broken
		dst = append(dst, capture.Disconnected)
	}
	if proves {
		w.phase = proven
		dst = append(dst, capture.Connected)
	}
	return dst
}

// open says whether every moment is unproven now.
func (w *window) open() bool { return w.phase != proven }
