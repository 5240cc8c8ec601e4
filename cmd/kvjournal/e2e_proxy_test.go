package main

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy is a TCP hop between a publisher and a recorder that can cut the connection.
type proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	conns  []*net.TCPConn // of the connections that stand, both sides
	opened int
	closed bool
}

// newProxy returns a proxy to a tcp:// endpoint, and its own endpoint.
func newProxy(t *testing.T, endpoint string) (*proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: strings.TrimPrefix(endpoint, "tcp://")}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.cut(false)
		serving.Wait()
	})
	return p, "tcp://" + l.Addr().String()
}

func (p *proxy) serve(down *net.TCPConn) {
	defer down.Close()
	c, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	up := c.(*net.TCPConn)
	defer up.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.conns = append(p.conns, down, up)
	p.opened++
	p.mu.Unlock()
	var copying sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{down, up}, {up, down}} {
		copying.Go(func() {
			io.Copy(way[0], way[1])
			down.Close()
			up.Close()
		})
	}
	copying.Wait()
}

// cut breaks every connection, wherever in a message it is; with reset the ends see an RST.
func (p *proxy) cut(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if reset {
			c.SetLinger(0)
		}
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// cutAtRandom cuts n times, each time once a connection stands and something was received by it.
func (p *proxy) cutAtRandom(t *testing.T, r *rand.Rand, n int, events func() uint64) {
	t.Helper()
	for i := range n {
		before := events()
		more := 50 + r.Uint64N(400)
		eventually(t, "events come through the proxy", func() bool { return events() >= before+more })
		have := p.connections()
		p.cut(r.IntN(2) == 0)
		eventually(t, "the recorder connects again", func() bool { return p.connections() > have })
		t.Logf("cut %d behind %d events", i+1, before+more)
	}
}
