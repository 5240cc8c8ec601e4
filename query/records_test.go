package query

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// several are streams of several sources in one journal, their records in turn, with recorders that come and go. all[i] is what
// was recorded at offset i+1.
type several struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	fs      *vfs.MemFS
	j       *journal.Journal
	x       *index.Index
	e       *Engine
	streams []*oracle.Stream
	sources []journal.Source
	all     []told
	headers []journal.Header
}

// told is one record as it went in.
type told struct {
	source  int
	kind    journal.Kind
	capture capture.Record
}

func (s *several) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("seed %d: %v", s.seed, err)
	}
}

func (s *several) open() {
	var err error
	s.j, err = journal.Open("data", nil, journal.Options{FS: s.fs, MemTableSize: 1 << 20, BlockRaw: 1 << (8 + s.rng.IntN(8)), NoSealer: true})
	s.must(err)
	s.x, err = index.Open(s.j, true, index.Options{FS: s.fs, MemTableSize: 1 << 20})
	s.must(err)
	s.e = &Engine{Journal: s.j, Index: s.x}
}

func (s *several) close() {
	s.must(s.x.Close())
	s.must(s.j.Close())
}

// recordSeveral records n streams of a seed. unsaid is how likely an import begins in the middle, which writes no record of its own.
func recordSeveral(t *testing.T, seed uint64, n int, unsaid float64) *several {
	t.Helper()
	s := &several{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), fs: vfs.NewMem()}
	s.open()
	t.Cleanup(s.close)
	feeds := make([]*recorder.Feed, n)
	next := make([]int, n)
	left := 0
	for i := range n {
		s.streams = append(s.streams, oracle.Generate(seed*10+uint64(i), oracle.Options{}))
		src, err := s.j.EnsureSource(fmt.Sprintf("s%d", i), nil, nil)
		s.must(err)
		s.sources = append(s.sources, src)
		feeds[i], err = recorder.NewFeed(s.j, src.ID)
		s.must(err)
		left += len(s.streams[i].Records)
	}
	stops := s.rng.Float64() * 0.1
	g := s.j.NewGroup()
	commit := func() {
		for _, f := range feeds {
			f.Save(g)
		}
		s.must(g.Commit())
		s.must(s.j.Sync())
		if s.rng.IntN(4) == 0 {
			s.must(s.j.Seal(t.Context()))
		}
		g = s.j.NewGroup()
	}
	fact := func(i int, kind journal.Kind, at int64) {
		if kind == journal.RecorderStarted {
			feeds[i].Started(g, at)
		} else {
			feeds[i].Stopped(g, at)
		}
		s.all = append(s.all, told{source: i, kind: kind, capture: capture.Record{Received: at}})
	}
	for left > 0 {
		i := s.rng.IntN(n)
		if next[i] == len(s.streams[i].Records) {
			continue
		}
		rec := &s.streams[i].Records[next[i]]
		if s.rng.Float64() < stops {
			if s.rng.IntN(2) == 0 {
				fact(i, journal.RecorderStopped, rec.Received)
			}
			fact(i, journal.RecorderStarted, rec.Received)
		}
		if s.rng.Float64() < unsaid {
			feeds[i].Begin(continuity.ConnectionBroken)
		}
		offset, err := feeds[i].Add(g, rec, s.rng.IntN(50) == 0)
		s.must(err)
		kind := map[capture.Kind]journal.Kind{capture.Message: journal.Message, capture.Connected: journal.Connected, capture.Disconnected: journal.Disconnected}[rec.Kind]
		s.all = append(s.all, told{source: i, kind: kind, capture: *rec})
		if offset != uint64(len(s.all)) {
			t.Fatalf("seed %d: record %d got offset %d", seed, len(s.all), offset)
		}
		next[i]++
		left--
		if s.rng.IntN(6) == 0 {
			commit()
		}
	}
	commit()
	s.must(s.x.CatchUp(t.Context(), nil))
	return s
}

// header is the journal's header of a record.
func (s *several) header(offset uint64) journal.Header {
	for o := uint64(len(s.headers)) + 1; o <= offset; o++ {
		r, err := s.j.Record(o)
		s.must(err)
		s.headers = append(s.headers, r.Header)
	}
	return s.headers[offset-1]
}

// gaps are the lines of gaps of all sources.
func (s *several) gaps() (all []*GapOut) {
	v, err := s.x.View()
	s.must(err)
	defer v.Close()
	for _, src := range s.sources {
		s.must(v.Gaps(src.ID, func(g *index.Gap) error {
			all = append(all, gapOut(src.Name, g))
			return nil
		}))
	}
	return all
}

// moment draws one in any form.
func (s *several) moment(source int) When {
	switch s.rng.IntN(5) {
	case 0:
		return When{}
	case 1:
		return When{Kind: AtOffset, Offset: 1 + s.rng.Uint64N(uint64(len(s.all)))}
	default:
		h := s.header(1 + s.rng.Uint64N(uint64(len(s.all))))
		if s.rng.IntN(4) == 0 && source >= 0 && h.Kind == journal.Message && h.HasSeq && !h.Duplicate && h.Source == s.sources[source].ID {
			return When{Kind: AtSeq, Epoch: h.Epoch, Seq: h.Seq}
		}
		return When{Kind: AtTime, Ms: h.Time + s.rng.Int64N(3) - 1}
	}
}

// within is what lies in a span of a source's stream, by a walk over all headers: the offsets behind from, up to to.
func (s *several) within(source int, span Span) (from, to uint64) {
	type at struct {
		offset uint64
		journal.Header
	}
	var messages []at
	for i, r := range s.all {
		if h := s.header(uint64(i + 1)); r.source == source && h.Kind == journal.Message && !h.Duplicate {
			messages = append(messages, at{uint64(i + 1), h})
		}
	}
	end := uint64(len(s.all))
	bySeq := func(w When) uint64 {
		for _, m := range messages {
			if m.HasSeq && m.Epoch == w.Epoch && m.Seq == w.Seq {
				return m.offset
			}
		}
		return 0
	}
	switch span.From.Kind {
	case AtOffset:
		from = span.From.Offset - 1
	case AtSeq:
		from = bySeq(span.From) - 1
	case AtTime:
		from = end
		for _, m := range messages {
			if m.HasTime && m.Time >= span.From.Ms {
				from = m.offset - 1
				break
			}
		}
	}
	switch span.To.Kind {
	case Latest:
		to = end
	case AtOffset:
		to = span.To.Offset
	case AtSeq:
		to = bySeq(span.To)
	case AtTime:
		after, last := uint64(0), uint64(0)
		for _, m := range messages {
			if m.HasTime && m.Time > span.To.Ms {
				if after == 0 {
					after = m.offset
				}
			} else {
				last = m.offset
			}
		}
		if to = last; after > last {
			to = after - 1
		}
	}
	return from, to
}
