package query

import (
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// benchRecorder records messages of one source in groups, as a recorder does.
type benchRecorder struct {
	b      *testing.B
	j      *journal.Journal
	source uint32
	feed   *recorder.Feed
	g      *journal.Group
}

func recordInto(b *testing.B, j *journal.Journal, source string) *benchRecorder {
	b.Helper()
	r := &benchRecorder{b: b, j: j, g: j.NewGroup()}
	s, err := j.EnsureSource(source, nil, nil)
	r.must(err)
	r.source = s.ID
	r.feed, err = recorder.NewFeed(j, s.ID)
	r.must(err)
	return r
}

func (r *benchRecorder) must(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

// add records a message that is received when it is published, ms; the frames may change behind it.
func (r *benchRecorder) add(ms int64, frames [][]byte) {
	r.b.Helper()
	rec := capture.Record{Kind: capture.Message, Received: ms * 1e6, Frames: capture.CopyFrames(nil, frames)}
	_, err := r.feed.Add(r.g, &rec, false)
	r.must(err)
	if r.g.Raw() >= 1<<20 {
		r.commit()
	}
}

func (r *benchRecorder) commit() {
	r.b.Helper()
	r.feed.Save(r.g)
	r.must(r.g.Commit())
	r.g = r.j.NewGroup()
}

// end makes all durable.
func (r *benchRecorder) end() {
	r.b.Helper()
	r.commit()
	r.must(r.j.Sync())
}
