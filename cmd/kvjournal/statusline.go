package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kvjournal/kvjournal/query/service"
)

// statusLine shows a live line at the bottom of a terminal, below the log; elsewhere it only passes the log on.
type statusLine struct {
	out  io.Writer
	live bool
	line chan string
	log  chan logged
	stop chan struct{}
	done chan struct{}
}

type logged struct {
	b    []byte
	done chan error
}

const clearLine = "\r\x1b[K"

func newStatusLine(w io.Writer) *statusLine {
	s := &statusLine{out: w, live: isTerminal(w), line: make(chan string), log: make(chan logged), stop: make(chan struct{}), done: make(chan struct{})}
	go s.write()
	return s
}

// write is the only one that writes to the terminal.
func (s *statusLine) write() {
	defer close(s.done)
	shown := ""
	for {
		select {
		case l := <-s.log:
			if shown != "" {
				fmt.Fprint(s.out, clearLine)
			}
			_, err := s.out.Write(l.b)
			fmt.Fprint(s.out, shown)
			l.done <- err
		case line := <-s.line:
			shown = line
			fmt.Fprint(s.out, clearLine+line)
		case <-s.stop:
			return
		}
	}
}

// Write passes a log line on, above the status line.
func (s *statusLine) Write(b []byte) (int, error) {
	l := logged{b, make(chan error, 1)}
	select {
	case s.log <- l:
		return len(b), <-l.done
	case <-s.done:
		return os.Stderr.Write(b)
	}
}

// follow shows the service's figures once a second until it ends.
func (s *statusLine) follow(svc *service.Service) {
	if !s.live {
		return
	}
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		before, at := svc.Status(), time.Now()
		for {
			select {
			case <-svc.Done():
				return
			case now := <-t.C:
				st := svc.Status()
				rate := float64(st.Events-before.Events) / now.Sub(at).Seconds()
				select {
				case s.line <- statusText(&st, uint64(rate)):
				case <-s.done:
					return
				}
				before, at = st, now
			}
		}
	}()
}

func statusText(st *service.Status, rate uint64) string {
	connected := 0
	for _, so := range st.Sockets {
		if so.Connected {
			connected++
		}
	}
	if p := st.Paused; p != nil {
		return fmt.Sprintf("PAUSED: %s free, --min-free %s  durable offset %s", bytesOf(p.Free), bytesOf(p.Least), number(st.Durable))
	}
	return fmt.Sprintf("%d of %d connected  %s events/s  %s events, durable offset %s  index %s behind  buffer %s",
		connected, len(st.Sockets), number(rate), number(st.Events), number(st.Durable), number(st.Durable-min(st.Durable, st.Applied)), bytesOf(uint64(st.Buffered)))
}

// end clears the line; what is logged later goes straight through.
func (s *statusLine) end() {
	if s.live {
		select {
		case s.line <- "":
		case <-s.done:
		}
	}
	close(s.stop)
	<-s.done
}
