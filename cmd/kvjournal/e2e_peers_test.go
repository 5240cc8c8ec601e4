package main

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	zmq "github.com/pebbe/zmq4"
)

// TestPeersThatAreNoPublisher: what answers at the endpoint is told by the log and by stats, and does not keep the recorder busy.
func TestPeersThatAreNoPublisher(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	visits := make(chan bool, 10000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			visits <- true
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	rep, err := zmq.NewSocket(zmq.REP)
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	if err := rep.Bind("tcp://127.0.0.1:*"); err != nil {
		t.Fatal(err)
	}
	other, err := rep.GetLastEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	rec := start(t, kvjournalBinary, "record", "--dir", dir, "--source", "name=http,endpoint=tcp://"+l.Addr().String(), "--source", "name=rep,endpoint="+other)
	rec.answers(t, dir)
	want := map[string]string{"http": "handshake failed: the peer is no ZeroMQ publisher", "rep": "connection ended by a protocol error: the peer is no publisher"}
	eventually(t, "stats say what is wrong", func() bool {
		st := stats(t, dir)
		if st.Recorder == nil || len(st.Recorder.Sockets) != 2 {
			return false
		}
		for _, s := range st.Recorder.Sockets {
			if s.Connected || s.Messages > 0 || !strings.HasPrefix(s.LastError, want[s.Source]) || s.LastErrorTime == nil {
				return false
			}
		}
		return true
	})
	table := strings.Join(strings.Fields(kvjournal(t, "stats", "--dir", dir).stdout), " ")
	for source, says := range want {
		if !strings.Contains(table, "last trouble "+source+",") || !strings.Contains(table, says) {
			t.Errorf("stats do not tell of %s:\n%s", source, table)
		}
		if !strings.Contains(rec.talk.String(), says) {
			t.Errorf("the log does not tell of %s", source)
		}
	}
	rec.stop(t)
	// 20 ms at first, up to 2 s later: a spin would be thousands.
	if n := len(visits); n > 500 {
		t.Errorf("%d visits of a peer that hangs up", n)
	}
}
