package query

import (
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// Where the journal lost its own tail, log says so, and a capture breaks the connection there.
func TestTailLostInLogAndExport(t *testing.T) {
	s := recordSeveral(t, *modelSeed+4, 1, 0)
	end := s.j.Durable()
	s.close()
	var err error
	s.j, err = journal.Open("data", nil, journal.Options{FS: s.fs, NoSealer: true, Indexed: journal.Known{{Offset: end + 7}}})
	s.must(err)
	s.x, err = index.Open(s.j, true, index.Options{FS: s.fs})
	s.must(err)
	s.e = &Engine{Journal: s.j, Index: s.x}
	feed, err := recorder.NewFeed(s.j, s.sources[0].ID)
	s.must(err)
	g := s.j.NewGroup()
	feed.Begin(continuity.RecorderWasDown)
	for i := range s.streams[0].Records {
		_, err := feed.Add(g, &s.streams[0].Records[i], false)
		s.must(err)
	}
	feed.Save(g)
	s.must(g.Commit())
	s.must(s.j.Sync())
	s.must(s.x.CatchUp(t.Context(), nil))

	lines := s.log(LogOptions{Types: []string{"tail_lost"}})
	if len(lines) != 1 || !strings.Contains(lines[0], `"first_missing_offset"`) || !strings.Contains(lines[0], `"type":"tail_lost"`) {
		t.Fatalf("log says %q", lines)
	}
	records := exported(t, s.e, "s0", Span{From: When{Kind: AtOffset, Offset: end}})
	kinds := ""
	for _, r := range records {
		kinds += r.Kind.String()[:1]
	}
	if !strings.Contains(kinds[:min(len(kinds), 4)], "dc") && !strings.HasPrefix(kinds, "c") {
		t.Fatalf("no break where the tail was lost: %s", kinds)
	}
	if n := strings.Count(kinds, "m"); n < len(s.streams[0].Records)/2 || records[len(records)-1].Kind > capture.Disconnected {
		t.Fatalf("%d messages behind it", n)
	}
}
