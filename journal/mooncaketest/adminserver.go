package mooncaketest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxRequestLine is the longest request line that an AdminServer takes: none was too long for a real master, 32 MB were
// tried.
const maxRequestLine = 64 << 20

// AdminServer serves an Admin on a port of its own. It differs from any other server of the same handler in two things:
// request lines may be as long as a real master's, and a connection does not survive a restart of the Sim.
type AdminServer struct {
	server   http.Server
	listener net.Listener
	cancel   context.CancelFunc
	done     chan struct{}
}

// Serve listens on addr, as 127.0.0.1:9003; port 0 is a free one, which URL tells. Close ends it.
func (a *Admin) Serve(addr string) (*AdminServer, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &AdminServer{listener: listener, cancel: cancel, done: make(chan struct{})}
	s.server = http.Server{
		Handler:           a,
		MaxHeaderBytes:    maxRequestLine,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			var process *Store
			a.sim.View(func(s *Store, _ *Publisher) { process = s })
			return context.WithValue(ctx, processKey{}, process)
		},
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // it ends by Close
	}()
	return s, nil
}

// processKey is of the context of a connection: the *Store that the Sim had when it came.
type processKey struct{}

// processOf is the process that a request's connection belongs to, nil if no AdminServer has accepted it.
func processOf(ctx context.Context) *Store {
	process, _ := ctx.Value(processKey{}).(*Store)
	return process
}

// URL is the address as http://host:port.
func (s *AdminServer) URL() string {
	host := s.listener.Addr().String()
	if port, ok := strings.CutPrefix(host, "[::]:"); ok {
		host = "localhost:" + port
	}
	return "http://" + host
}

// Close ends the server and all its connections, without waiting for answers.
func (s *AdminServer) Close() {
	s.cancel()
	_ = s.server.Close()
	<-s.done
}
