package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// Bounds of what is asked over a socket. Whoever asks is the owner of the data, but may be many, slow, or gone.
const (
	// maxQuestions is how many are answered at once; followers of a log count. More are refused, and told so.
	maxQuestions = 256
	// MaxConnections is how many connections a socket has at once. More wait.
	MaxConnections = 512
	// bodyPatience is how long the next piece of a question may take to come, takePatience how long the next piece of an answer to be
	// taken: it holds what it is read from.
	bodyPatience = 30 * time.Second
	takePatience = 10 * time.Minute
	// longQuery is from when on parameters are sent as a body: a server takes only so much of a line of a header.
	longQuery = 32 << 10
)

// bounded refuses questions beyond n at once.
func bounded(h http.Handler, n int) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
			// The server reads what is left of the question: not for ever. A test's reply has no deadline.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience))
		default:
			w.Header().Set("Retry-After", "1")
			refuse(w, r, ProblemBusy, fmt.Sprintf("%d questions are being answered, which is the most at once; ask again", n))
		}
	})
}

// patientBody gives the client so long for each piece. What http.Server reads by itself, to see that a client went away, must not
// meet the deadline.
type patientBody struct {
	body     io.Reader
	deadline func(time.Time) error
}

func newPatientBody(w http.ResponseWriter, r *http.Request) *patientBody {
	return &patientBody{r.Body, http.NewResponseController(w).SetReadDeadline}
}

func (p *patientBody) Read(b []byte) (int, error) {
	settable := p.deadline(time.Now().Add(bodyPatience)) == nil // a test's request has none
	n, err := p.body.Read(b)
	var slow net.Error
	late := errors.As(err, &slow) && slow.Timeout()
	if settable && !late {
		if derr := p.deadline(time.Time{}); err == nil {
			err = derr
		}
	}
	if late { // the deadline stays: the server is not to wait for the rest either
		err = &query.UsageError{Message: fmt.Sprintf("nothing came of the question for %v", bodyPatience)}
	}
	return n, err
}

// LimitConnections is l with at most n connections at once.
func LimitConnections(l net.Listener, n int) net.Listener {
	return &limited{l, make(chan struct{}, n), make(chan struct{}), sync.Once{}}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
