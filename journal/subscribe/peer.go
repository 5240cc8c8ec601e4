package subscribe

import (
	"fmt"
	"time"

	zmq "github.com/pebbe/zmq4"
)

// peer judges the other end by the connection events: what is wrong with it, for people, and when libzmq's own
// reconnect is not enough. It is pure: no I/O and no clock.
//
// libzmq reconnects by itself after a lost connection. But a protocol error ends it for good, without any event that
// says so: a frame above the maximum size, a peer of another socket type, damaged framing. (Measured with
// 4.3.4: DISCONNECTED and then silence for ever; session_base.cpp, engine_error. After a lost connection CONNECT_RETRIED
// follows DISCONNECTED at once.) Then only a new socket helps. And its backoff starts anew with every connection that
// was accepted, so a peer that accepts and closes is visited at the shortest interval for ever.
type peer struct {
	interval, backoffMax time.Duration
	maxMessageSize       int64

	last      zmq.Event // the last event
	dialing   bool      // between CONNECT_DELAYED and its outcome
	stands    bool      // the handshake succeeded and the connection was not lost since
	stoodAt   time.Time // since when
	fruitful  bool      // this connection gave a message
	lostAt    time.Time // the last loss; zero while an attempt has got further since
	hadStood  bool      // whether the lost connection had had its handshake
	retries   bool      // libzmq announced another attempt after the loss
	fruitless int       // connections in a row that broke without a message

	trouble string // what is wrong, or was last
}

const (
	// deadAfter is how long after a loss libzmq's announcement of another attempt is waited for. It comes from the same
	// thread within microseconds. If it is late, a socket without a connection is replaced for nothing, which costs nothing.
	deadAfter = 100 * time.Millisecond
	// fruitlessMax is how many connections in a row may break without a message before the backoff is taken over from libzmq.
	fruitlessMax = 5
	// goodAfter: a connection that stood for so long is no failure even if it gave no message. Quiet publishers exist.
	goodAfter = 10 * time.Second
)

// event takes note of a monitor event.
func (p *peer) event(e zmq.Event, now time.Time) {
	switch e {
	case zmq.EVENT_CONNECT_DELAYED:
		p.dialing = true
	case zmq.EVENT_CONNECT_RETRIED:
		p.retries = true
		switch {
		case p.dialing:
			p.trouble = "cannot connect: refused, unreachable or no answer"
		case p.last == 0 || p.last == zmq.EVENT_CONNECT_RETRIED:
			p.trouble = "cannot connect: no such name or path"
		}
		p.dialing = false
	case zmq.EVENT_CONNECTED:
		p.dialing, p.lostAt = false, time.Time{}
	case zmq.EVENT_HANDSHAKE_SUCCEEDED:
		p.stands, p.stoodAt, p.fruitful, p.lostAt = true, now, false, time.Time{}
	case zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH:
		p.trouble = "handshake failed: the peer is no ZeroMQ publisher, or it is shutting down"
	case zmq.EVENT_DISCONNECTED:
		if p.fruitful || p.stands && now.Sub(p.stoodAt) >= goodAfter {
			p.fruitless = 0
		} else {
			p.fruitless++
		}
		switch {
		case p.stands && p.fruitless >= 2:
			p.trouble = "connections break again and again after the handshake, without a message: " + p.suspicion()
		case p.stands:
			p.trouble = "connection lost"
		}
		p.hadStood, p.stands, p.fruitful = p.stands, false, false
		p.lostAt, p.retries = now, false
	}
	p.last = e
}

// messageReceived takes note that the connection is good for something.
func (p *peer) messageReceived() { p.fruitful, p.fruitless = true, 0 }

// refused takes note that the connection is given up here, for a reason.
func (p *peer) refused(why string, now time.Time) {
	p.fruitless++
	p.hadStood, p.stands, p.fruitful, p.lostAt, p.retries = p.stands, false, false, now, false
	p.trouble = why
}

// replaced takes note that a new socket was opened: no event of the old one comes any more.
func (p *peer) replaced() {
	p.stands, p.dialing, p.retries, p.last, p.lostAt = false, false, false, 0, time.Time{}
}

// verdict says whether the socket is to be replaced, now that it is empty, and how long to wait between the old and the new one.
// If it is not, check is when to ask again at the latest; 0: no matter.
func (p *peer) verdict(now time.Time) (replace bool, pause, check time.Duration) {
	if p.lostAt.IsZero() {
		return false, 0, 0
	}
	since := now.Sub(p.lostAt)
	dead := !p.retries
	if dead && since < deadAfter {
		return false, 0, deadAfter - since
	}
	if !dead && p.fruitless < fruitlessMax {
		return false, 0, 0
	}
	if dead {
		p.trouble = "connection ended by a protocol error: the peer is no publisher"
		if p.hadStood {
			p.trouble = "connection ended by a protocol error: " + p.suspicion()
		}
	}
	return true, max(0, p.backoff()-since), 0
}

func (p *peer) suspicion() string {
	if p.maxMessageSize < 0 {
		return "the peer is no publisher, or its stream is damaged"
	}
	return fmt.Sprintf("a frame larger than the largest message size of %d bytes, or the peer is no publisher", p.maxMessageSize)
}

func (p *peer) backoff() time.Duration {
	d := p.interval
	for range p.fruitless - 1 {
		if d *= 2; d >= p.backoffMax {
			return p.backoffMax
		}
	}
	return min(d, p.backoffMax)
}
