package mooncaketest

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// reserved is an endpoint whose port is the test's until its end, however often a publisher lets it go.
func reserved(t *testing.T) string {
	t.Helper()
	p, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p.Endpoint()
}

// A reserved port refuses connections, lets a listener in by its number, again and again, and is given to nobody who wants any.
func TestReservedPort(t *testing.T) {
	p, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	for range 3 {
		if c, err := net.Dial("tcp", p.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
			if err == nil {
				c.Close()
			}
			t.Fatalf("nobody listens: %v", err)
		}
		l, err := net.Listen("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
		q := start(t, Options{Bind: p.Endpoint()})
		if q.Endpoint() != p.Endpoint() {
			t.Errorf("bound to %s, want %s", q.Endpoint(), p.Endpoint())
		}
		q.Kill()
	}
	// As many as the system gives at once: the range has some 28,000.
	var others []net.Listener
	defer func() {
		for _, l := range others {
			l.Close()
		}
	}()
	for range 500 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if others = append(others, l); l.Addr().String() == p.Address() {
			t.Fatal("a reserved port was given to another")
		}
	}
}
