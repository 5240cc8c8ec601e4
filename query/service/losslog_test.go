package service

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// TestLossLog: the first loss is told at once, then at most one line a minute tells what came since.
func TestLossLog(t *testing.T) {
	begun := time.Unix(1_795_000_000, 0)
	count := func(cause continuity.Cause, gaps, missing, least, most, marks uint64) recorder.FaultCount {
		return recorder.FaultCount{Cause: cause, Gaps: gaps, Missing: missing, LostMin: least, LostMax: most, Marks: marks}
	}
	queue := func(gaps, missing uint64) recorder.FaultCount {
		return count(continuity.PublisherQueue, gaps, missing, missing, missing, gaps)
	}
	var l lossLog
	for i, step := range []struct {
		seconds int
		counted []recorder.FaultCount
		last    bool
		want    string // empty: nothing
	}{
		{0, nil, false, ""},
		{1, []recorder.FaultCount{count(continuity.Reconnect, 0, 0, 0, 0, 3)}, false, ""},
		{2, []recorder.FaultCount{queue(1, 5)}, false, "[losses 1 causes 1 publisher_queue missing_messages 5 lost_events_least 5 lost_events_most 5]"},
		{3, []recorder.FaultCount{queue(2, 6)}, false, ""},
		{61, []recorder.FaultCount{queue(50, 100)}, false, ""},
		{62, []recorder.FaultCount{count(continuity.Transport, 60, 60, 60, 600, 0), queue(51, 105)}, false,
			"[losses 110 causes 60 transport, 50 publisher_queue missing_messages 160 lost_events_least 160 lost_events_most 700]"},
		{63, []recorder.FaultCount{count(continuity.Transport, 60, 60, 60, 600, 0), queue(51, 105)}, false, ""},
		{500, []recorder.FaultCount{queue(51, 105), count(continuity.Transport, 60, 60, 60, 600, 0)}, false, ""}, // nothing new
		{501, []recorder.FaultCount{queue(51, 105), count(continuity.Damaged, 2, 0, 0, 0, 0)}, false, "[losses 2 causes 2 damaged]"},
		{502, []recorder.FaultCount{queue(52, 106), count(continuity.Damaged, 2, 0, 0, 0, 0)}, true, "[losses 1 causes 1 publisher_queue missing_messages 1 lost_events_least 1 lost_events_most 1]"},
		{503, []recorder.FaultCount{queue(52, 106), count(continuity.Damaged, 2, 0, 0, 0, 0)}, true, ""},
	} {
		n, say := l.next(begun.Add(time.Duration(step.seconds)*time.Second), step.counted, step.last)
		got := ""
		if say {
			got = fmt.Sprint(n.args())
		}
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// lines is a log whose lines can be waited for.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestLossLogged: a recorder tells its first loss while it runs, and at its end what came since.
func TestLossLogged(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := make(lines, 1000)
	s, err := Record(ctx, Config{
		Dir: t.TempDir(), Sources: []SourceConfig{{Name: "cache", Endpoints: []string{"tcp://127.0.0.1:1"}}}, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	lose := func() {
		err := s.rec.Do(ctx, s.recorded[0].ID, func(f *recorder.Feed, g *journal.Group) error {
			return f.SegmentsVanished(g, time.Now().UnixNano(), "http://m:1", []string{"a"})
		})
		if err != nil {
			t.Error(err)
		}
	}
	lose()
	told := func(line string) bool { return strings.Contains(line, "the stream has losses") }
	for patience := time.After(time.Minute); ; {
		var line string
		select {
		case line = <-log:
		case <-patience:
			t.Fatal("no line of the first loss")
		}
		if !told(line) {
			continue
		}
		for _, want := range []string{"level=WARN", "source=cache", "losses=1", `causes="1 silent"`, "durable_offset=", `look="kvjournal gaps"`} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
		break
	}
	lose()
	lose()
	stop()
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	close(log)
	n := 0
	for line := range log {
		if told(line) {
			n++
			if !strings.Contains(line, "losses=2") {
				t.Errorf("the last line is %s", line)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d lines of the two losses before the end", n)
	}
}
