package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
)

// The log as server-sent events (WHATWG HTML, "Server-sent events"): GET /v1/log with Accept: text/event-stream, and the parameters of
// log. It goes on with what is recorded unless `to` or follow=false is given. An event is
//
//	id: 12/3
//	data: {"offset":12,"event":3,…}            a line of log
//
// The id is the position of what was told last: the offset, and of an event its number in its batch (0: of the gap before it). An id
// without data says that everything up to an offset was told, also where nothing of it was wanted. Whoever comes back with the last id
// as Last-Event-ID (or the parameter after), and the same parameters, gets what comes behind it: nothing twice, and nothing left out.
//
// Comments come when there is nothing to tell. What fails behind the first event is an event named error, with a Problem.

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// heartbeatEvery is how long a stream is silent at most. Proxies give connections up after a minute.
const heartbeatEvery = 15 * time.Second

// wantsEvents reports whether a request asks for server-sent events.
func wantsEvents(r *http.Request) bool {
	for kind := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, _, _ = strings.Cut(kind, ";")
		if strings.TrimSpace(kind) == eventStream {
			return true
		}
	}
	return false
}

// EventID is where a reader of the events stands: everything up to Offset was told, or, where Partly, of the record at Offset
// only what comes up to the event with the number Event.
type EventID struct {
	Offset uint64
	Partly bool
	Event  uint32
}

// ParseEventID reads an id as events have it: OFFSET or OFFSET/EVENT.
func ParseEventID(s string) (EventID, error) {
	offset, number, partly := strings.Cut(s, "/")
	id := EventID{Partly: partly}
	var err error
	if id.Offset, err = strconv.ParseUint(offset, 10, 63); err == nil && partly {
		var n uint64
		n, err = strconv.ParseUint(number, 10, 32)
		id.Event = uint32(n)
	}
	if err != nil || partly && id.Offset == 0 {
		return EventID{}, &query.UsageError{Message: fmt.Sprintf("the id %.40q is none of an event of this stream, which are OFFSET or OFFSET/EVENT", s)}
	}
	return id, nil
}

func (id EventID) String() string { return string(id.append(nil)) }

func (id EventID) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.Offset, 10)
	if id.Partly {
		dst = strconv.AppendUint(append(dst, '/'), uint64(id.Event), 10)
	}
	return dst
}

// idOf is the id of a line of log.
func idOf(l *query.LogLine) EventID {
	switch {
	case l.Event > 0:
		return EventID{l.Offset, true, l.Event}
	case l.Type == query.LogGap:
		return EventID{Offset: l.Offset, Partly: true}
	}
	return EventID{Offset: l.Offset}
}

// behind reports whether what has the id other comes behind what has this one.
func (id EventID) behind(other EventID) bool {
	if other.Offset != id.Offset {
		return other.Offset > id.Offset
	}
	return id.Partly && (!other.Partly || other.Event > id.Event)
}

// after is the parameter of log that leaves out the records which were told as a whole.
func (id EventID) after() uint64 {
	if id.Partly {
		return id.Offset - 1
	}
	return id.Offset
}

// events writes server-sent events. They are written by the question and by the heart.
type events struct {
	mu    sync.Mutex
	out   *lines
	line  []byte
	alive bool // something was sent since the last beat
}

// tell writes an event; what it says is one line of JSON.
func (s *events) tell(id EventID, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	s.line = append(id.append(append(s.line[:0], "id: "...)), "\ndata: "...)
	if s.line, err = query.AppendJSON(s.line, v); err != nil {
		return err
	}
	_, err = s.out.out.Write(append(s.line, '\n', '\n'))
	return err
}

// reached tells that everything up to an offset was told, and sends what was written.
func (s *events) reached(offset uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(EventID{Offset: offset}.append(append(s.line[:0], "id: "...)), '\n', '\n')
	if _, err := s.out.out.Write(s.line); err != nil {
		return err
	}
	s.alive = true
	return s.out.flush()
}

// beat sends a comment, unless there was something to say.
func (s *events) beat() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if alive := s.alive; alive {
		s.alive = false
		return nil
	}
	if _, err := s.out.out.WriteString(":\n\n"); err != nil {
		return err
	}
	return s.out.flush()
}

// keepAlive beats until ctx ends; it gives up, through cancel, where nobody reads.
func (s *events) keepAlive(ctx context.Context, cancel context.CancelFunc) {
	for pause.For(ctx, heartbeatEvery) == nil {
		if s.beat() != nil {
			cancel()
			return
		}
	}
}

// failed ends the stream with what went wrong.
func (s *events) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, jerr := query.AppendJSON([]byte("event: error\ndata: "), newProblem(problemOf(err), err.Error(), instanceOf(s.out.r)))
	if jerr == nil {
		_, _ = s.out.out.Write(append(b, '\n', '\n')) // nobody is left to be told if that fails
	}
}

// logEvents answers log with server-sent events.
func logEvents(ctx context.Context, e *query.Engine, r *http.Request, p *params, out *lines) error {
	o, id := logOptions(e, p)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		var err error
		if id, err = ParseEventID(last); err != nil {
			return err
		}
		o.After, o.From = id.after(), query.When{} // "-5m" is another moment now
	}
	if end := e.Journal.Durable(); id.Offset > end {
		p.bad("the id %s lies behind the end of what is recorded here, offset %d: it is of another directory, and nothing would be told until that offset; begin without an id", id, end)
	}
	if !p.values.Has("follow") {
		o.Follow = o.To.Kind == query.Latest
	}
	p.flag("positions") // ids are
	p.flag("progress")  // comments are
	if p.number("page", 0) > 0 {
		p.bad("events have no pages: leave page out, and come back with the last id")
	}
	if err := p.err(); err != nil {
		return err
	}
	out.kind = eventStream
	out.w.Header().Set("X-Accel-Buffering", "no") // nginx is to pass each on
	s := &events{out: out}
	ctx, cancel := context.WithCancel(ctx)
	var heart sync.WaitGroup
	defer heart.Wait()
	defer cancel()
	heart.Go(func() { s.keepAlive(ctx, cancel) })
	o.Reached = func(offset uint64) error { return s.reached(max(offset, id.Offset)) }
	err := e.Log(ctx, o, nil, func(l *query.LogLine) error {
		at := idOf(l)
		if !id.behind(at) {
			return nil
		}
		return s.tell(at, l)
	})
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	s.mu.Lock()
	sent := out.begun
	s.mu.Unlock()
	if !sent {
		out.kind = ""
		return err
	}
	s.failed(err)
	return nil
}
