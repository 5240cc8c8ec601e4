package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// captureWriter makes a .kvcap of a publisher that begins at seq 1: exact events at exact times.
type captureWriter struct {
	t       *testing.T
	file    *os.File
	w       *capture.Writer
	enc     *event.Encoder
	seq, id uint64
}

// captureBegun is the publisher time of the first batch; each later one is a second later.
var captureBegun = time.Date(2026, 11, 29, 12, 3, 0, 0, time.UTC)

func newCapture(t *testing.T, path string) *captureWriter {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := capture.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	c := &captureWriter{t: t, file: f, w: w, enc: event.NewEncoder(event.EncodeOptions{ObjectKey: true})}
	c.write(capture.Record{Kind: capture.Connected, Received: captureBegun.UnixNano()})
	return c
}

func (c *captureWriter) write(r capture.Record) {
	c.t.Helper()
	if err := c.w.Write(r); err != nil {
		c.t.Fatal(err)
	}
}

// timeOf is the publisher time of the batch with that seq.
func timeOf(seq uint64) time.Time { return captureBegun.Add(time.Duration(seq) * time.Second) }

func (c *captureWriter) batch(events ...event.Fields) {
	c.t.Helper()
	c.seq++
	at := timeOf(c.seq)
	for i := range events {
		c.id++
		events[i].ID, events[i].Timestamp = c.id, at.UnixMilli()
	}
	seq := event.SeqFrame(c.seq)
	c.write(capture.Record{Kind: capture.Message, Received: at.UnixNano(), Frames: [][]byte{{}, seq[:], c.enc.AppendPayload(nil, at.UnixMilli(), events, 0)}})
}

func (c *captureWriter) close() {
	c.t.Helper()
	if err := c.w.Flush(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.file.Close(); err != nil {
		c.t.Fatal(err)
	}
}

func stored(key, medium string) event.Fields {
	return event.Fields{Type: event.Stored, Tenant: "default", Backend: "b0", Medium: medium, Key: key}
}

func removed(key, medium string) event.Fields {
	return event.Fields{Type: event.Removed, Tenant: "default", Backend: "b0", Medium: medium, Key: key}
}

// binaryKey is no valid UTF-8.
const binaryKey = "\xff\x00key\xfe"

// smallCapture writes four batches (seq 1, 2, [3 is missing], 4, 5) about keys k, both and binaryKey.
func smallCapture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.kvcap")
	c := newCapture(t, path)
	c.batch(stored("k", "cpu"), stored(binaryKey, "disk"), stored("both", "cpu"), stored("both", "disk"))
	c.batch(stored("k", "disk"), removed("k", "cpu"))
	c.seq++ // dropped by the publisher's queue
	c.batch(stored("shadow", "cpu"))
	c.batch(stored("k", "cpu"))
	c.close()
	return path
}

// smallDir is a directory that holds smallCapture as source "small": offset 1 is the connection, 2 to 5 are the batches.
func smallDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	r := kvjournal(t, "import", "--dir", dir, smallCapture(t))
	r.answered(t)
	if r.stdout != "" {
		t.Errorf("import talks on stdout: %q", r.stdout)
	}
	return dir
}
