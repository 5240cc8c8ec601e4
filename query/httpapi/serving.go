package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of a connection, beside those of a question.
const (
	headerPatience = 10 * time.Second
	idlePatience   = time.Minute
	headerBytes    = 256 << 10
	// endPatience is how long answers that are under way may take when the service ends.
	endPatience = time.Second
)

// Server answers on any number of listeners until End.
type Server struct {
	log       *slog.Logger
	ctx       context.Context // of all questions
	cancel    context.CancelFunc
	questions sync.WaitGroup
	loops     sync.WaitGroup
	servers   []*http.Server
}

// NewServer returns a server that listens nowhere yet.
func NewServer(log *slog.Logger) *Server {
	s := &Server{log: log}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve answers with h what comes by l, by TLS where secure is given. It does not wait. What ends it is said in the log as of what.
func (s *Server) Serve(l net.Listener, h http.Handler, secure *tls.Config, what string) {
	server := &http.Server{
		ReadHeaderTimeout: headerPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    headerBytes,
		TLSConfig:         secure,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.questions.Add(1)
			defer s.questions.Done()
			h.ServeHTTP(w, r)
		}),
	}
	s.servers = append(s.servers, server)
	l = LimitConnections(l, MaxConnections)
	s.loops.Go(func() {
		var err error
		if secure != nil {
			err = server.ServeTLS(l, "", "")
		} else {
			err = server.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.log.Error(what+" stopped answering; recording goes on", "error", err)
		}
	})
}

// End lets answers that are under way end for a moment, gives up the rest, and returns when nobody reads any more.
func (s *Server) End() {
	closing, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	var all sync.WaitGroup
	for _, server := range s.servers {
		all.Go(func() {
			if server.Shutdown(closing) != nil {
				server.Close()
			}
		})
	}
	all.Wait()
	s.cancel()
	s.questions.Wait()
	s.loops.Wait()
}
