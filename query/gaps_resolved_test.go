package query

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// scripted is a journal that is written by hand.
type scripted struct {
	*recorded
	feed *recorder.Feed
	seq  uint64
	id   uint64
	at   int64 // ms
}

func newScripted(t *testing.T) *scripted {
	r := &recorded{t: t, rng: rand.New(rand.NewPCG(1, 1)), stream: &oracle.Stream{}, oracle: oracle.New(), fs: vfs.NewMem()}
	r.open()
	t.Cleanup(r.close)
	src, err := r.j.EnsureSource("s", nil, nil)
	r.must(err)
	feed, err := recorder.NewFeed(r.j, src.ID)
	r.must(err)
	return &scripted{recorded: r, feed: feed, at: 1_795_000_000_000}
}

// put appends what f adds, indexes it, and returns the newest offset.
func (s *scripted) put(f func(g *journal.Group) (uint64, error)) uint64 {
	s.t.Helper()
	s.at += 1000
	g := s.j.NewGroup()
	offset, err := f(g)
	s.must(err)
	s.feed.Save(g)
	s.must(g.Commit())
	s.must(s.j.Sync())
	s.must(s.x.CatchUp(s.t.Context(), nil))
	return offset
}

// send appends a message with an event of each key, behind so many lost messages of one event each, whose events have ids where
// numbered.
func (s *scripted) send(lost uint64, numbered bool, keys ...string) uint64 {
	s.t.Helper()
	return s.put(func(g *journal.Group) (uint64, error) {
		s.seq += 1 + lost
		if numbered {
			s.id += lost
		}
		var fields []event.Fields
		for _, k := range keys {
			s.id++
			fields = append(fields, event.Fields{Type: event.Stored, ID: s.id, Tenant: "default", Medium: "cpu", Key: k})
		}
		seq := event.SeqFrame(s.seq)
		payload := event.NewEncoder(event.EncodeOptions{LegacyCompat: true, ObjectKey: true}).AppendPayload(nil, s.at, fields, 0)
		return s.feed.Add(g, &capture.Record{Kind: capture.Message, Received: s.at * 1e6, Frames: [][]byte{nil, seq[:], payload}}, false)
	})
}

func (s *scripted) poll(before, after *reading.Counters) uint64 {
	s.t.Helper()
	return s.put(func(g *journal.Group) (uint64, error) {
		st := reading.Status{From: "http://master-7:9003", Facts: []string{reading.FactCounters}, Counters: after, Before: before}
		return s.feed.Fact(g, journal.PublisherStatus, s.at*1e6, continuity.Verdict{}, &st)
	})
}

func (s *scripted) read(entries ...reading.Entry) (h, ended uint64) {
	s.t.Helper()
	h = s.put(func(g *journal.Group) (uint64, error) {
		return s.feed.Fact(g, journal.ReconciliationBegun, s.at*1e6, continuity.Verdict{}, &reading.Begun{Why: reading.AfterMark, From: "http://master-7:9003"})
	})
	ended = s.put(func(g *journal.Group) (uint64, error) {
		part := reading.AppendPart(nil, h, nil, []byte("default"))
		end := &reading.Ended{Why: reading.AfterMark, From: "http://master-7:9003", Begun: h, Through: h, TookMs: 12, Scopes: []reading.Scope{{Tenant: []byte("default")}, {Tenant: []byte("\xff")}}}
		for i := range entries {
			part = reading.AppendEntry(part, &entries[i])
			if entries[i].What == reading.Unsaid {
				end.Exceptions++
			} else {
				end.Corrections++
			}
		}
		return s.feed.End(g, s.at*1e6, [][]byte{part}, end)
	})
	return h, ended
}

func (s *scripted) losses() (out []*GapOut) {
	s.t.Helper()
	s.must(s.e.Gaps(s.t.Context(), &GapsQuery{}, nil, func(g *GapOut) error {
		b, err := AppendJSON(nil, g)
		s.must(err)
		back := &GapOut{}
		s.must(json.Unmarshal(b, back))
		out = append(out, back)
		return nil
	}))
	return out
}

// TestGapsResolved: each loss names the first reading that began behind its mark.
func TestGapsResolved(t *testing.T) {
	s := newScripted(t)
	s.send(0, true, "a", "b")
	s.send(2, false, "c") // a loss that is never resolved would be the last; this one is by the first reading
	s.send(0, true, "d")
	_, first := s.read(reading.Entry{What: reading.Absent, Key: []byte("a"), Medium: []byte("cpu")})
	s.send(3, true, "e")
	s.send(0, true, "f")
	s.send(1, false, "g")
	s.send(0, true, "h")
	_, second := s.read()
	s.send(1, false, "i")
	got := s.losses()
	if len(got) != 4 {
		t.Fatalf("%d losses", len(got))
	}
	for i, want := range []uint64{first, second, second, 0} {
		r := got[i].ResolvedBy
		switch {
		case want == 0 && r != nil, want != 0 && (r == nil || r.Offset != want):
			t.Errorf("loss %d: resolved by %+v, want %d", i, r, want)
		case r != nil && (r.Why != reading.AfterMark || r.TookMs != 12 || r.Time == nil || r.Tenants != nil || r.TenantsTotal != 2 || string(r.TenantsBase64[0]) != "default"):
			t.Errorf("loss %d: %+v", i, r)
		}
	}
	if got[0].ResolvedBy.Corrections != 1 || got[1].ResolvedBy.Corrections != 0 {
		t.Errorf("corrections %d, %d", got[0].ResolvedBy.Corrections, got[1].ResolvedBy.Corrections)
	}
}

// TestGapsAttribution: the counters around a loss tell whether the publisher's queue dropped what is missing.
func TestGapsAttribution(t *testing.T) {
	s := newScripted(t)
	count := func(batches, dropped uint64) *reading.Counters {
		return &reading.Counters{Batches: batches, Events: batches, Dropped: dropped}
	}
	type want struct {
		cause   string
		dropped uint64
		all     bool
		text    string
	}
	var wants []*want
	loss := func(lost uint64, numbered bool, w *want) {
		s.send(lost, numbered, "k")
		s.send(0, true, "l")
		wants = append(wants, w)
	}
	s.send(0, true, "a")
	loss(5, false, &want{"publisher_queue", 5, true, "which explains all 5 missing numbers; make"})
	s.poll(count(1, 0), count(4, 5))
	loss(5, false, &want{"publisher_queue", 3, false, "explains only 3 of the 5 missing numbers; make"})
	s.poll(count(4, 5), count(6, 8))
	loss(4, true, &want{"transport", 0, false, "dropped nothing meanwhile (dropped_events stayed at 8); raise the ZMQ send high-water mark on master-7"})
	s.poll(count(6, 8), count(12, 8))
	// Two losses between the same polls: what the queue dropped does not explain the other.
	loss(2, false, &want{"publisher_queue", 2, true, "all 2 missing numbers of 2 losses"})
	loss(3, true, &want{"transport", 2, false, "what the publisher dropped (dropped_events went from 8 to 10) is missing elsewhere"})
	s.poll(count(12, 8), count(19, 10))
	loss(3, true, &want{"transport", 9, true, "dropped these itself"})
	s.poll(count(19, 10), count(22, 19))
	loss(1, false, nil) // another process answered
	s.poll(count(22, 19), count(3, 0))
	loss(1, false, nil) // no poll before
	s.poll(nil, count(3, 1))
	loss(1, true, &want{"transport", 0, false, "(dropped_events is 0)"})
	s.poll(nil, count(3, 0))
	loss(1, false, nil) // no poll behind it
	got := s.losses()
	if len(got) != len(wants) {
		t.Fatalf("%d losses, want %d", len(got), len(wants))
	}
	for i, w := range wants {
		a := got[i].Attribution
		switch {
		case w == nil && a != nil, w != nil && a == nil:
			t.Errorf("loss %d: %+v, want %+v", i, a, w)
		case w == nil:
		case got[i].Cause != w.cause, a.Dropped != w.dropped, a.ExplainsAll != w.all, !strings.Contains(a.Text, w.text), strings.Contains(a.Text, "%!"):
			t.Errorf("loss %d, %s: %+v, want %+v", i, got[i].Cause, a, w)
		}
	}
}

// TestLogContent: log tells what polls and readings of the master said.
func TestLogContent(t *testing.T) {
	s := newScripted(t)
	s.send(0, true, "a", "b")
	s.poll(nil, &reading.Counters{Batches: 1, Events: 2})
	h, _ := s.read(reading.Entry{What: reading.Absent, Key: []byte("a"), Medium: []byte("cpu")}, reading.Entry{What: reading.Present, Key: []byte("a"), Medium: []byte("disk")}, reading.Entry{What: reading.Unsaid, Key: []byte("b")})
	content := map[string]string{}
	var raw []string
	for _, o := range []LogOptions{{}, {Raw: true}} {
		s.must(s.e.Log(t.Context(), o, nil, func(l *LogLine) error {
			b := l.AppendJSON(nil)
			var back LogLine
			s.must(json.Unmarshal(b, &back))
			if again := back.AppendJSON(nil); string(again) != string(b) {
				t.Errorf("read back\n%s\nit was\n%s", again, b)
			}
			if o.Raw {
				raw = append(raw, back.Type)
				if len(back.Frames) == 0 || len(back.Frames[len(back.Frames)-1]) == 0 {
					t.Errorf("no frame: %s", b)
				}
			} else if back.Content != nil {
				content[back.Type] = string(back.Content)
			}
			return nil
		}))
	}
	if want := []string{"message", "publisher_status", "reconciliation_begun", "reconciliation_part", "reconciliation_ended"}; !slices.Equal(raw, want) {
		t.Errorf("raw: %q", raw)
	}
	var part LogPart
	s.must(json.Unmarshal([]byte(content["reconciliation_part"]), &part))
	if part.Begun != h || part.Entries != 3 || part.Present != 1 || part.Absent != 1 || part.Unsaid != 1 || string(part.Tenant) != "default" {
		t.Errorf("part %+v", part)
	}
	var end reading.Ended
	s.must(json.Unmarshal([]byte(content["reconciliation_ended"]), &end))
	var st reading.Status
	s.must(json.Unmarshal([]byte(content["publisher_status"]), &st))
	if end.Begun != h || end.Corrections != 2 || end.Exceptions != 1 || st.Counters == nil || st.Counters.Events != 2 || !strings.Contains(content["reconciliation_begun"], `"why":"after_mark"`) {
		t.Errorf("%v", content)
	}
}
