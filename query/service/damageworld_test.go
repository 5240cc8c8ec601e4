package service_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/testkit"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// world is a directory with two sources, one of which has a master that is read at times.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *vfs.MemFS
	j       *journal.Journal
	x       *index.Index
	streams []*worldStream
	times   []int64 // publisher times that came up
	late    int64   // by so much everything is received later than the stream says, ns
}

type worldStream struct {
	*oracle.Stream
	source journal.Source
	feed   *recorder.Feed
	begun  uint64 // offset of an open reading
	next   int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 5)), fs: vfs.NewCrashableMem()}
	var err error
	w.j, err = journal.Open(dataDir, nil, journal.Options{FS: w.fs, BlockRaw: 4 << 10, NoSealer: true, HeadEvery: time.Millisecond})
	w.must(err)
	w.x, err = index.Open(w.j, true, index.Options{FS: w.fs})
	w.must(err)
	for i, name := range []string{"a", "b"} {
		s := &worldStream{Stream: oracle.Generate(seed+uint64(i), oracle.Options{Steps: 3000})}
		var masters []string
		if i == 1 {
			masters = []string{"http://master:9003"}
		}
		s.source, err = w.j.EnsureSource(name, []string{"tcp://" + name}, masters)
		w.must(err)
		s.feed, err = recorder.NewFeed(w.j, s.source.ID)
		w.must(err)
		w.streams = append(w.streams, s)
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// atRest records the streams, sealing, flushing and indexing now and then, and returns what a crash would leave of it, all being
// acknowledged: tables, and logs that hold what is in no table yet.
func (w *world) atRest() *vfs.MemFS {
	late := 0
	for phase := 0; w.some(); phase++ {
		if phase%5 == 1 {
			w.must(w.j.Seal(w.t.Context()))
		}
		if phase%7 == 2 && w.share() < 0.5 || w.share() > 0.5+0.15*float64(late) && late < 3 {
			if w.share() > 0.5 {
				late++ // these tables stay apart: they are too few for a compaction
			}
			w.must(w.j.Flush())
		}
		if phase%4 == 3 {
			w.must(w.x.CatchUp(w.t.Context(), nil))
		}
		if phase%6 == 5 {
			w.must(w.x.Flush())
		}
	}
	w.must(w.x.CatchUp(w.t.Context(), nil))
	w.must(w.x.Flush())
	w.awaitHead()
	left := w.left()
	w.must(w.x.Close())
	w.must(w.j.Close())
	return left
}

// prune prunes the directory that is left, to somewhere in its first half; in half of the cases a crash left an index that was not trimmed.
func (w *world) prune(fs *vfs.MemFS) {
	const aside = "aside"
	untrimmed := w.rng.IntN(2) == 0
	if untrimmed {
		if ok, err := vfs.Clone(fs, fs, fs.PathJoin(dataDir, "index"), aside); !ok || err != nil {
			w.t.Fatal(ok, err)
		}
	}
	j, err := journal.Open(dataDir, nil, journal.Options{FS: fs, BlockRaw: 4 << 10, NoSealer: true})
	w.must(err)
	x, err := index.Open(j, true, index.Options{FS: fs})
	w.must(err)
	for _, part := range []uint64{6, 2} {
		if _, err = x.Prune(w.t.Context(), j.Durable()/part, index.BaselineOptions{}, nil); !errors.Is(err, index.ErrNothingToPrune) {
			w.must(err)
		}
	}
	if j.Horizon().Offset == 0 {
		w.t.Fatal("no checkpoint lies in the first half: nothing was pruned")
	}
	w.t.Logf("pruned to %+v, trimmed: %v", j.Horizon(), !untrimmed)
	w.must(x.Close())
	w.must(j.Close())
	if untrimmed {
		w.must(fs.RemoveAll(fs.PathJoin(dataDir, "index")))
		w.must(fs.Rename(aside, fs.PathJoin(dataDir, "index")))
	}
}

// share is how much of the streams is recorded, 0 to 1.
func (w *world) share() float64 {
	done, all := 0, 0
	for _, s := range w.streams {
		done, all = done+s.next, all+len(s.Records)
	}
	return float64(done) / float64(all)
}

// awaitHead waits until the head file knows all.
func (w *world) awaitHead() {
	for end := time.Now().Add(time.Minute); w.head() != w.j.Durable(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("the head file does not follow")
		}
	}
}

// left is the filesystem as it is at one moment, whatever is compacted meanwhile.
func (w *world) left() *vfs.MemFS {
	return w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: w.rng})
}

func (w *world) head() uint64 {
	b := testkit.ReadFile(w.t, w.fs, w.fs.PathJoin(dataDir, "head"))
	return binary.BigEndian.Uint64(b[24:])
}

// some commits a few groups of both streams' records; false where there are no more.
func (w *world) some() bool {
	more := false
	for range 1 + w.rng.IntN(4) {
		g := w.j.NewGroup()
		for _, s := range w.streams {
			for range 1 + w.rng.IntN(12) {
				if s.next == len(s.Records) {
					break
				}
				more = true
				rec := &s.Records[s.next]
				s.next++
				w.late += int64(10 * time.Second) // so that there are places to prune to
				rec.Received += w.late
				_, err := s.feed.Add(g, rec, false)
				w.must(err)
				if s.feed.State().HasTime {
					w.times = append(w.times, s.feed.State().Time)
				}
				if len(s.source.Masters) > 0 {
					w.read(s, g, rec.Received)
				}
			}
			s.feed.Save(g)
		}
		w.must(g.Commit())
		w.must(w.j.Sync())
	}
	return more
}

// read begins or ends a reading, or tells of a silent master. What a reading says is made up: it need only be so in both directories.
func (w *world) read(s *worldStream, g *journal.Group, at int64) {
	switch {
	case w.rng.IntN(400) == 0:
		_, err := s.feed.Fact(g, journal.PublisherStatus, at, continuity.Verdict{}, &reading.Status{Facts: []string{reading.FactCounters}, Silent: true, Counters: &reading.Counters{Batches: 9}})
		w.must(err)
	case s.begun == 0 && w.rng.IntN(30) == 0:
		var err error
		s.begun, err = s.feed.Fact(g, journal.ReconciliationBegun, at, continuity.Verdict{}, &reading.Begun{Why: reading.AfterMark})
		w.must(err)
	case s.begun != 0 && w.rng.IntN(20) == 0:
		o := s.Objects[w.rng.IntN(len(s.Objects))]
		part := reading.AppendPart(nil, s.begun, []byte(o.Backend), []byte(o.Tenant))
		part = reading.AppendEntry(part, &reading.Entry{What: reading.Unsaid, Key: []byte(o.Key)})
		part = reading.AppendEntry(part, &reading.Entry{What: reading.Present, Key: []byte(o.Key), Medium: []byte("cpu")})
		end := &reading.Ended{Why: reading.AfterMark, Begun: s.begun, Through: s.begun, Corrections: 1, Exceptions: 1,
			Scopes: []reading.Scope{{Backend: []byte(o.Backend), Tenant: []byte(o.Tenant)}}}
		_, err := s.feed.End(g, at, [][]byte{part}, end)
		w.must(err)
		s.begun = 0
	}
}

// moments draws moments of every kind.
func (w *world) moments(rng *rand.Rand, n int) []query.When {
	out := []query.When{{}}
	for range n {
		switch rng.IntN(2) {
		case 0:
			out = append(out, query.When{Kind: query.AtOffset, Offset: 1 + rng.Uint64N(w.j.Durable())})
		case 1:
			out = append(out, query.When{Kind: query.AtTime, Ms: w.times[rng.IntN(len(w.times))] + rng.Int64N(3) - 1})
		}
	}
	return out
}

// questions draws objects, some of them never seen.
func (w *world) questions(rng *rand.Rand, n int) []query.Question {
	out := make([]query.Question, n)
	for i := range out {
		s := w.streams[rng.IntN(len(w.streams))]
		o := s.Objects[rng.IntN(len(s.Objects))]
		if rng.IntN(20) == 0 {
			o.Key = "never"
		}
		out[i] = query.Question{Name: query.Name{Source: s.source.Name, Backend: query.Bytes(o.Backend), Tenant: query.Bytes(o.Tenant), Key: query.Bytes(o.Key)}}
		if o.Backend == "" {
			out[i].Backend = query.Bytes{}
		}
	}
	return out
}

// copied is what the records of a journal up to an offset answer, each as change makes it if that is not nil.
func (w *world) copied(j *journal.Journal, last uint64, change func(h *journal.Header, frames [][]byte) [][]byte) *query.Engine {
	fs := vfs.NewMem()
	part, err := journal.Open(dataDir, nil, journal.Options{FS: fs, NoSealer: true})
	w.must(err)
	for _, s := range w.streams {
		_, err := part.EnsureSource(s.source.Name, s.source.Endpoints, s.source.Masters)
		w.must(err)
	}
	g := part.NewGroup()
	var b *journal.Block
	for at := uint64(0); at < last; at = b.Last() {
		b, err = j.NextBlock(b, at)
		w.must(err)
		for i := 0; i < b.Len() && b.First+uint64(i) <= last; i++ {
			frames, err := b.Frames(i, nil, new([8]byte))
			w.must(err)
			h := *b.Header(i)
			if change != nil {
				frames = change(&h, frames)
			}
			g.Add(&h, frames)
		}
	}
	w.must(g.Commit())
	w.must(part.Sync())
	x, err := index.Open(part, true, index.Options{FS: fs})
	w.must(err)
	w.must(x.CatchUp(w.t.Context(), nil))
	return &query.Engine{Journal: part, Index: x}
}
