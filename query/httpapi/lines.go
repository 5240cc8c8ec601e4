package httpapi

import (
	"bufio"
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// lines writes one JSON value a line, buffered.
type lines struct {
	w    http.ResponseWriter
	r    *http.Request
	out  *bufio.Writer
	line []byte
	// kind is the media type, empty: ndjson.
	kind string
	// guard, if not nil, is asked before anything is sent whether what was read can be trusted.
	guard  func() error
	spoilt bool // guard said no
	begun  bool // something was sent
}

// linesBuffer is how much is sent at once, lineKept how long a line's memory may be to be used again.
const (
	linesBuffer = 32 << 10
	lineKept    = 64 << 10
)

func newLines(w http.ResponseWriter, r *http.Request) *lines {
	l := &lines{w: w, r: r}
	l.out = bufio.NewWriterSize(l, linesBuffer)
	return l
}

// linesPool keeps the buffers of answers that were sent for the next: they are more than all else that a small answer needs.
type linesPool struct{ pool sync.Pool }

func (p *linesPool) get(w http.ResponseWriter, r *http.Request) *lines {
	l, ok := p.pool.Get().(*lines)
	if !ok {
		return newLines(w, r)
	}
	*l = lines{w: w, r: r, out: l.out, line: l.line[:0]}
	l.out.Reset(l)
	return l
}

// put takes lines that nobody writes any more.
func (p *linesPool) put(l *lines) {
	if cap(l.line) > lineKept {
		l.line = nil
	}
	*l = lines{out: l.out, line: l.line}
	p.pool.Put(l)
}

func (l *lines) write(v any) error {
	var err error
	if l.line, err = query.AppendJSON(l.line[:0], v); err != nil {
		return err
	}
	l.line = append(l.line, '\n')
	_, err = l.out.Write(l.line)
	return err
}

// Write gives the client so long to take what is sent.
func (l *lines) Write(b []byte) (int, error) {
	if l.guard != nil {
		if err := l.guard(); err != nil {
			l.spoilt = true
			return 0, noAnswers{err}
		}
	}
	l.begin()
	_ = http.NewResponseController(l.w).SetWriteDeadline(time.Now().Add(takePatience)) // a test's reply has none
	return l.w.Write(b)
}

// begin sets the header of what is sent.
func (l *lines) begin() {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Content-Type", cmp.Or(l.kind, ndjson))
	h.Set("Cache-Control", "no-store")
}

// flush sends what was written.
func (l *lines) flush() error {
	err := l.out.Flush()
	if f, ok := l.w.(http.Flusher); ok && err == nil {
		f.Flush()
	}
	return err
}

// fail ends an answer: with a Problem where nothing was sent, else with a last line.
func (l *lines) fail(err error) {
	kind := problemOf(err)
	spoilt := l.spoilt
	l.guard = nil
	switch {
	case !l.begun:
		l.begun = true
		l.out.Reset(l) // what was written of the answer
		writeProblem(l.w, newProblem(kind, err.Error(), instanceOf(l.r)))
	case spoilt:
		panic(http.ErrAbortHandler) // it was cut anywhere: whoever asked must not take it for whole
	default:
		// Nobody is left to be told if this fails too.
		_ = l.write(failure{Error: err.Error(), Usage: kind == ProblemUsage})
	}
}
