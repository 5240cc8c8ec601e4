package recorder

import (
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
)

func itoa(n int) string { return strconv.Itoa(n) }

// session is one run of a recorder: started, the records, stopped.
func session(t *testing.T, fs vfs.FS, stop bool, records ...capture.Record) {
	t.Helper()
	attempt(t, fs, func(j *journal.Journal, s journal.Source) bool {
		feed, err := NewFeed(j, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		g := j.NewGroup()
		feed.Started(g, testTime*1e6)
		for i := range records {
			if _, err := feed.Add(g, &records[i], false); err != nil {
				t.Fatal(err)
			}
		}
		if stop {
			feed.Stopped(g, testTime*1e6)
		}
		feed.Save(g)
		if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
		return true
	})
}

// TestRecorderDown: the first message behind a stop of the recorder, orderly or not, is never a continuation.
func TestRecorderDown(t *testing.T) {
	for _, orderly := range []bool{true, false} {
		fs := vfs.NewMem()
		s := newStream()
		session(t, fs, orderly, s.fact(capture.Connected), s.batch("a"), s.batch("b"))
		s.batch("never seen")
		session(t, fs, orderly, s.fact(capture.Connected), s.batch("c"), s.batch("d"))
		again := *s // d once more, then the numbers go on
		again.seq, again.id, again.now = s.seq-1, s.id-1, s.now-1
		session(t, fs, orderly, s.fact(capture.Connected), again.batch("d"), s.batch("e"))
		restarted := newStream()
		session(t, fs, orderly, restarted.fact(capture.Connected), restarted.batch("f"))

		runs := [][]string{
			{"connected", "message 1/1", "message 1/2 follows"},
			{"connected", "message 1/4 behind:recorder_down gap:recorder_down 3..3", "message 1/5 follows"},
			{"connected", "message 1/5 duplicate", "message 1/6 behind:reconnect gap:reconnect"},
			{"connected", "message 2/1 before:publisher_restart gap:publisher_restart"},
		}
		var want []string
		for _, run := range runs {
			want = append(append(want, "recorder_started"), run...)
			if orderly {
				want = append(want, "recorder_stopped")
			}
		}
		wantVerdicts(t, openJournal(t, fs), want...)
	}
}

// TestRecorderDownInWindow: the window that was open when the recorder ended closes, with its mark, where the next one starts.
func TestRecorderDownInWindow(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	session(t, fs, true, s.batch("a"), s.fact(capture.Disconnected), s.batch("b"))
	session(t, fs, true, s.fact(capture.Connected), s.batch("c"))
	wantVerdicts(t, openJournal(t, fs),
		"recorder_started", "message 1/1", "disconnected", "message 1/2 window", "recorder_stopped",
		"recorder_started behind:disconnected", "connected", "message 1/3 behind:reconnect gap:reconnect", "recorder_stopped")
}

// TestRecorderStartsFresh: a source never heard of has nothing behind it that could be broken.
func TestRecorderStartsFresh(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	session(t, fs, true)
	session(t, fs, true, s.fact(capture.Connected), s.batch("a"))
	j := openJournal(t, fs)
	wantVerdicts(t, j, "recorder_started", "recorder_stopped", "recorder_started", "connected", "message 1/1", "recorder_stopped")
	for _, r := range headers(t, j) {
		if r.Epoch != 1 {
			t.Errorf("offset %d: epoch %d", r.Offset, r.Epoch)
		}
	}
}

// TestFeedKnowsOffsets: Add returns the record's offset, and Save with the reopened journal's Position agree.
func TestFeedKnowsOffsets(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	feed, err := NewFeed(j, src.ID)
	if err != nil {
		t.Fatal(err)
	}
	g := j.NewGroup()
	records := []capture.Record{s.fact(capture.Connected), s.batch("a"), s.fact(capture.Disconnected)}
	for i := range records {
		offset, err := feed.Add(g, &records[i], false)
		if err != nil || offset != uint64(i+1) {
			t.Errorf("record %d: offset %d, %v", i, offset, err)
		}
	}
	if _, err := feed.Add(g, &capture.Record{Kind: 77}, false); err == nil {
		t.Error("a record of an unknown kind was taken")
	}
	feed.Save(g)
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	p, err := j.Position(src.ID)
	if err != nil || p.Last != 2 || p.State.Seq != 1 || !p.State.Window || len(p.State.Last()) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if feed.State().Seq != 1 {
		t.Errorf("%+v", feed.State())
	}
}
