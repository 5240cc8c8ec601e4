package subscribe

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	zmq "github.com/pebbe/zmq4"
)

// watched are the monitor events that window and peer need.
const watched = zmq.EVENT_CONNECTED | zmq.EVENT_CONNECT_DELAYED | zmq.EVENT_CONNECT_RETRIED | zmq.EVENT_DISCONNECTED |
	zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH

// monitors numbers the monitors of the process: inproc names are shared by a context.
var monitors atomic.Uint64

// socket is the data socket with its monitor. It belongs to one goroutine.
type socket struct {
	data, monitor *zmq.Socket
	poller        *zmq.Poller
}

func openSocket(zctx *zmq.Context, o *Options, largest int64) (_ *socket, err error) {
	s := &socket{poller: zmq.NewPoller()}
	defer func() {
		if err != nil {
			s.close()
			err = fmt.Errorf("subscribe to %s: %w", o.Endpoint, err)
		}
	}()
	if s.data, err = zctx.NewSocket(zmq.SUB); err != nil {
		return nil, err
	}
	if s.monitor, err = zctx.NewSocket(zmq.PAIR); err != nil {
		return nil, err
	}
	// No heartbeats of libzmq: they end the process (doc.go).
	keepalive := func() error {
		if o.KeepaliveInterval < 0 {
			return nil
		}
		seconds := func(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
		every := seconds(o.KeepaliveInterval)
		return errors.Join(s.data.SetTcpKeepalive(1), s.data.SetTcpKeepaliveIdle(every), s.data.SetTcpKeepaliveIntvl(every),
			s.data.SetTcpKeepaliveCnt(max(1, seconds(o.KeepaliveTimeout)/every)))
	}
	name := fmt.Sprintf("inproc://kvjournal.subscribe.monitor.%d", monitors.Add(1))
	err = errors.Join(
		s.data.SetLinger(0),
		s.data.SetIpv6(o.ipv6()),
		s.data.SetRcvhwm(o.mark(largest)),
		s.data.SetMaxmsgsize(o.MaxMessageSize),
		s.data.SetReconnectIvl(o.ReconnectInterval),
		s.data.SetReconnectIvlMax(o.ReconnectIntervalMax),
		s.data.SetConnectTimeout(o.ConnectTimeout),
		s.data.SetHandshakeIvl(o.HandshakeTimeout),
		keepalive(),
		s.data.SetSubscribe(""),
		s.data.Monitor(name, watched),
		s.monitor.SetLinger(0),
		// Unbounded: at a mark, libzmq's I/O thread would wait for us inside the event.
		s.monitor.SetRcvhwm(0),
	)
	if err != nil {
		return nil, err
	}
	if err = s.monitor.Connect(name); err != nil {
		return nil, err
	}
	if err = s.data.Connect(o.Endpoint); err != nil {
		return nil, err
	}
	s.poller.Add(s.data, zmq.POLLIN)
	s.poller.Add(s.monitor, zmq.POLLIN)
	return s, nil
}

// refusal is a message beyond the bounds. Its frames are gone.
type refusal struct {
	frames int
	bytes  int64
	most   int64 // bytes
}

func (r *refusal) Error() string {
	return fmt.Sprintf("connection given up: a message of %d frames and %d bytes, at most %d frames and %d bytes are taken; the peer is no publisher, or --max-message is too small",
		r.frames, r.bytes, maxFrames, r.most)
}

const (
	// maxFrames bounds the frames of a message; a publisher's has three.
	maxFrames = 1 << 16
	// beside is what the frames of a message may have together beyond the largest one allowed: topic and number.
	beside = 64 << 10
)

// receive asks for one message without waiting. No frames and no error: the socket is empty. A *refusal: the message was too large;
// all of it was taken from the socket.
func (s *socket) receive(maxBytes int64) ([][]byte, error) {
	var frames [][]byte
	var r refusal
	for {
		frame, err := s.data.RecvBytes(zmq.DONTWAIT) // once its first frame is there, all of a message is
		switch zmq.AsErrno(err) {
		case zmq.Errno(syscall.EINTR): // the attempt proves nothing
			continue
		case zmq.Errno(syscall.EAGAIN):
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if r.frames++; frame == nil {
			frame = []byte{}
		}
		r.bytes += int64(len(frame))
		if r.frames > maxFrames || maxBytes >= 0 && r.bytes > maxBytes+beside {
			r.most, frames = max(maxBytes, 1), nil
		}
		if r.most == 0 {
			frames = append(frames, frame)
		}
		more, err := s.data.GetRcvmore()
		if err != nil {
			return nil, err
		}
		if !more && r.most != 0 {
			return nil, &r
		}
		if !more {
			return frames, nil
		}
	}
}

// maxQueued bounds, in bytes, what libzmq may hold of messages as large as the largest that came over the sockets before.
const maxQueued = 64 << 20

// mark is how many messages libzmq may hold, given the largest that ever came. It is set when a socket is opened only: a mark that is
// lowered under way can leave libzmq's writer waiting for a reader that has read all (4.3.4; the last of 140 messages never came).
func (o *Options) mark(largest int64) int {
	return int(min(max(1, maxQueued/max(1, largest)), int64(o.ReceiveHWM)))
}

// drain returns all events that have come, appended to dst.
func (s *socket) drain(dst []zmq.Event) ([]zmq.Event, error) {
	for {
		event, _, _, err := s.monitor.RecvEvent(zmq.DONTWAIT)
		if err == nil {
			dst = append(dst, event)
			continue
		}
		switch zmq.AsErrno(err) {
		case zmq.Errno(syscall.EAGAIN):
			return dst, nil
		case zmq.Errno(syscall.EINTR):
		default:
			return dst, err
		}
	}
}

// tend lets the data socket work without receiving: after a reconnect it is this goroutine, not libzmq's, that
// sends the subscription again.
func (s *socket) tend() error {
	_, err := s.data.GetEvents()
	if err != nil && zmq.AsErrno(err) == zmq.Errno(syscall.EINTR) {
		return nil
	}
	return err
}

// wait returns when a message or an event is there, or after the timeout; it says which of them it was.
func (s *socket) wait(timeout time.Duration) (came bool, err error) {
	ready, err := s.poller.Poll(max(timeout, time.Millisecond))
	if err != nil && zmq.AsErrno(err) == zmq.Errno(syscall.EINTR) {
		return true, nil
	}
	return len(ready) > 0, err
}

// close closes both sockets. What the data socket still holds is lost.
func (s *socket) close() {
	if s.data != nil {
		s.data.Monitor("", 0) // stops it; fails only if the context is gone, and the monitor with it
	}
	if s.monitor != nil {
		s.monitor.Close()
	}
	if s.data != nil {
		s.data.Close()
	}
}
