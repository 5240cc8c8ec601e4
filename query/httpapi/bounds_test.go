package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Questions beyond the most at once are refused in words; when one is done, the next is answered.
func TestQuestionsAtOnce(t *testing.T) {
	begun, done := make(chan bool), make(chan bool)
	h := bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-done
	}), 3)
	answered := make(chan int)
	ask := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/stats", nil))
		answered <- w.Code
	}
	for range 3 {
		go ask()
		<-begun
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/stats", nil))
	if w.Code != 503 || !strings.HasPrefix(w.Body.String(), `{"error":"3 questions are being answered`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	done <- true
	<-answered
	go ask()
	<-begun
	for range 3 {
		done <- true
		<-answered
	}
}

// Connections beyond the most wait; one that is closed, twice even, makes room for one. Closing the listener ends the waiting.
func TestConnectionsAtOnce(t *testing.T) {
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	l := LimitConnections(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var have []net.Conn
	for range 2 {
		dial()
		have = append(have, <-accepted)
	}
	dial()
	dial()
	have[0].Close()
	have[0].Close()
	<-accepted
	if n := len(l.(*limited).slots); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	select {
	case <-accepted:
		t.Error("a third connection")
	default:
	}
	l.Close()
	if err := <-ended; err == nil {
		t.Error("accepted after Close")
	}
}

// A question that stops half-way is given up, and an answer that takes longer than the patience for a question is not.
func TestSlowQuestion(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		body := &patientBody{r.Body, func(at time.Time) error {
			if !at.IsZero() {
				at = time.Now().Add(50 * time.Millisecond)
			}
			return rc.SetReadDeadline(at)
		}}
		b, err := io.ReadAll(body)
		if err != nil {
			w.WriteHeader(400)
			fmt.Fprint(w, err)
			return
		}
		slow := time.NewTimer(150 * time.Millisecond)
		defer slow.Stop()
		select {
		case <-slow.C:
			fmt.Fprintf(w, "answer to %s", b)
		case <-r.Context().Done():
			t.Error("the answer was given up")
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	for body, want := range map[string]string{"whole": "200 answer to whole", "half": "400 nothing came of the question for 30s"} {
		c, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		length := len(body)
		if body == "half" {
			length *= 2
		}
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: k\r\nContent-Length: %d\r\n\r\n%s", length, body)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if got := fmt.Sprint(resp.StatusCode, " ", string(b)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
