package recorder

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestPace: the first message behind a silence is durable at once, and what comes within the pace is one commit; the end waits for nothing.
func TestPace(t *testing.T) {
	j := openJournal(t, vfs.NewMem())
	src, err := j.EnsureSource("s", []string{"tcp://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(j, []journal.Source{src}, Options{Pace: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Discard(); err != nil {
			t.Error(err)
		}
	})
	s, buf := newStream(), subscribe.NewBuffer(1<<20)
	push := func(record capture.Record) { buf.Push(subscribe.Item{Record: record}) }
	written := make(chan error, 1)
	go func() { written <- r.write(buf) }()
	push(s.batch("a"))
	testkit.EventuallyIn(t, 20*time.Second, "the first is durable", func() bool { return j.Durable() == 1 })
	for _, key := range []string{"b", "c", "d"} {
		push(s.batch(key))
	}
	buf.Close()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	var ends []uint64
	for at := uint64(0); at < j.Durable(); {
		b, err := j.NextBlock(nil, at)
		if err != nil {
			t.Fatal(err)
		}
		at = b.Last()
		ends = append(ends, at)
	}
	if len(ends) != 2 || ends[0] != 1 || ends[1] != 4 {
		t.Errorf("commits up to offsets %d, want 1 and 4", ends)
	}
}
