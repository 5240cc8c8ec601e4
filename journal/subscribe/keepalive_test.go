package subscribe

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// A publisher that dies while nothing is read, and libzmq can hold no more, ends nothing: with libzmq's heartbeats this aborted the process.
func TestPublisherDiesBehindAFullQueue(t *testing.T) {
	zctx := newContext(t)
	p := startPublisher(t, mooncaketest.Reserved(t), 1, 0, 10_000, 0, false)
	r := run(t, zctx, 20_000, Options{Endpoint: p.endpoint, KeepaliveInterval: time.Second, KeepaliveTimeout: time.Second})
	testkit.Eventually(t, "it stalls", func() bool { return r.sub.Status().Stalled })
	// Nobody tells when libzmq's queue is full, nor that it survived its timers: wait for longer than that takes.
	wait(time.Second)
	p.kill()
	wait(2500 * time.Millisecond)
	r.collect(0)
	testkit.Eventually(t, "the loss is told", func() bool { return r.sub.Status().Disconnects == 1 })
	next := startPublisher(t, p.endpoint, 2, 0, 100, 1000, false)
	testkit.Eventually(t, "the next publisher is heard", func() bool { life, seq := r.last(); return life == 2 && seq > 0 })
	next.kill()
	check(t, r.got())
}

func wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// The connection asks a silent host whether it is still there.
func TestKeepalive(t *testing.T) {
	zctx := newContext(t)
	p := startPublisher(t, anyPort, 1, 10, 100, 0, true)
	r := run(t, zctx, 1<<20, Options{Endpoint: p.endpoint, KeepaliveInterval: 7 * time.Second, KeepaliveTimeout: 20 * time.Second})
	r.collect(0)
	testkit.Eventually(t, "messages", func() bool { return r.sub.Status().Messages == 10 })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.endpoint, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for fd := range 4096 {
		peer, err := unix.Getpeername(fd)
		if err != nil {
			continue
		}
		if in, ok := peer.(*unix.SockaddrInet4); !ok || port != strconv.Itoa(in.Port) {
			continue
		}
		found++
		for option, want := range map[[2]int]int{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE}: 1, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}: 7, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}: 7, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT}: 2,
		} {
			if got, err := unix.GetsockoptInt(fd, option[0], option[1]); err != nil || got != want {
				t.Errorf("socket option %v is %d, want %d (%v)", option, got, want, err)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d connections to port %s", found, port)
	}
}
