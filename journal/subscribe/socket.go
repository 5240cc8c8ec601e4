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

func openSocket(zctx *zmq.Context, o *Options) (_ *socket, err error) {
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
	heartbeat := func() error {
		if o.HeartbeatInterval < 0 {
			return nil
		}
		return errors.Join(s.data.SetHeartbeatIvl(o.HeartbeatInterval), s.data.SetHeartbeatTimeout(o.HeartbeatTimeout))
	}
	name := fmt.Sprintf("inproc://kvjournal.subscribe.monitor.%d", monitors.Add(1))
	err = errors.Join(
		s.data.SetLinger(0),
		s.data.SetIpv6(o.ipv6()),
		s.data.SetRcvhwm(o.ReceiveHWM),
		s.data.SetMaxmsgsize(o.MaxMessageSize),
		s.data.SetReconnectIvl(o.ReconnectInterval),
		s.data.SetReconnectIvlMax(o.ReconnectIntervalMax),
		s.data.SetConnectTimeout(o.ConnectTimeout),
		s.data.SetHandshakeIvl(o.HandshakeTimeout),
		heartbeat(),
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

// receive asks for one message without waiting. No frames and no error: the socket is empty.
func (s *socket) receive() ([][]byte, error) {
	for {
		frames, err := s.data.RecvMessageBytes(zmq.DONTWAIT)
		if err == nil {
			return frames, nil
		}
		switch zmq.AsErrno(err) {
		case zmq.Errno(syscall.EAGAIN):
			return nil, nil
		case zmq.Errno(syscall.EINTR): // the attempt proves nothing
		default:
			return nil, err
		}
	}
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
