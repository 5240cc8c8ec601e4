package query

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

var (
	modelSeed    = flag.Uint64("model.seed", 1, "first seed of the random streams")
	modelStreams = flag.Int("model.streams", usualStreams, "how many random streams")
)

// recorded is a stream in a journal on a memory filesystem, indexed.
type recorded struct {
	t      *testing.T
	rng    *rand.Rand
	stream *oracle.Stream
	oracle *oracle.Oracle
	fs     *vfs.MemFS
	j      *journal.Journal
	x      *index.Index
	e      *Engine
	asker  *Asker // of e
	reads  *reads // nil: the master is not read
	// checkpoints is how many events lie between two checkpoints, 0: as usual.
	checkpoints uint64
	points      []index.Point
	diffs       []DiffQuestion

	// meanwhile: questions are asked while the stream is recorded.
	meanwhile bool
	asked     int // then
	// byTime: the same times are asked about while it is recorded.
	byTime bool
	times  []int64

	inParts bool // the diff that was made last
	// mayWithhold: an answer may be uncertain where the oracle's is confirmed (streams for which the rules as written are too bold).
	mayWithhold bool
}

const modelDir = "data"

func (r *recorded) journalOptions() journal.Options {
	return journal.Options{FS: r.fs, MemTableSize: 1 << 20, BlockRaw: 1 << (8 + r.rng.IntN(8)), NoSealer: true}
}

func (r *recorded) indexOptions() index.Options {
	return index.Options{FS: r.fs, MemTableSize: 1 << 20, FlushEvents: 1 + r.rng.IntN(200), CheckpointEvents: r.checkpoints}
}

func (r *recorded) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("seed %d: %v", r.stream.Seed, err)
	}
}

// open opens journal and index where they are, as a process that starts.
func (r *recorded) open() {
	var err error
	jo := r.journalOptions()
	jo.Indexed = index.KnownTo(modelDir, r.indexOptions())
	r.j, err = journal.Open(modelDir, nil, jo)
	r.must(err)
	r.x, err = index.Open(r.j, true, r.indexOptions())
	r.must(err)
	r.e = &Engine{Journal: r.j, Index: r.x}
	r.asker = r.e.Asker()
}

func (r *recorded) close() {
	r.must(r.x.Close())
	r.must(r.j.Close())
}

// record appends the whole stream in groups of random size, and on the way seals, indexes, reopens and rebuilds at random. Nothing
// of that may change an answer.
func (r *recorded) record() {
	r.open()
	s, err := r.j.EnsureSource("model", nil, nil)
	r.must(err)
	feed, err := recorder.NewFeed(r.j, s.ID)
	r.must(err)
	g := r.j.NewGroup()
	commit := func() {
		feed.Save(g)
		r.must(g.Commit())
		r.must(r.j.Sync())
		switch r.rng.IntN(8) {
		case 0:
			r.must(r.j.Seal(r.t.Context()))
		case 1:
			r.must(r.x.CatchUp(r.t.Context(), nil))
		case 2:
			r.close()
			r.open()
			feed, err = recorder.NewFeed(r.j, s.ID)
			r.must(err)
		case 3:
			r.must(r.x.Rebuild(r.t.Context(), nil))
		}
		if r.meanwhile && r.rng.IntN(2) == 0 {
			r.askMeanwhile()
		}
		if r.byTime {
			r.askTimes()
		}
		g = r.j.NewGroup()
	}
	var all []capture.Record
	took := func(offset uint64, rec capture.Record) {
		r.t.Helper()
		if offset != uint64(len(all)+1) {
			r.t.Fatalf("seed %d: record %d got offset %d", r.stream.Seed, len(all)+1, offset)
		}
		r.oracle.Apply(rec)
		all = append(all, rec)
	}
	for i := range r.stream.Records {
		rec := &r.stream.Records[i]
		offset, err := feed.Add(g, rec, false)
		r.must(err)
		took(offset, *rec)
		if r.reads != nil {
			r.reads.step(r, feed, g, rec.Received, took)
		}
		if r.rng.IntN(6) == 0 {
			commit()
		}
	}
	commit()
	r.stream.Records = all // with the journal's own, so that record i is at offset i+1
	r.must(r.x.CatchUp(r.t.Context(), nil))
}

// ask compares every answer at one moment with the oracle's.
func (r *recorded) ask(w When, name string, want func(oracle.Object, string) oracle.State) (answers, confirmed int) {
	objects := append(r.oracle.Objects(), oracle.Object{Backend: "b0", Tenant: "default", Key: "never"})
	questions := make([]Question, len(objects))
	for i, o := range objects {
		questions[i] = Question{Name{Source: "model", Backend: Bytes(o.Backend), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}}
		if o.Backend == "" {
			questions[i].Backend = Bytes{}
		}
	}
	lookup := r.e.Lookup
	if r.rng.IntN(2) == 0 {
		lookup = r.asker.Lookup
	}
	got, err := lookup(r.t.Context(), questions, w)
	r.must(err)
	for i, o := range objects {
		media := append([]string{"cpu", "disk"}, r.oracle.Media(o)...)
		slices.Sort(media)
		for _, medium := range slices.Compact(media) {
			expect := want(o, medium)
			m, listed := got[i].Media[medium]
			if !listed {
				if expect.Present {
					r.t.Fatalf("seed %d, %s: %q on %s: not listed, want %+v", r.stream.Seed, name, o, medium, expect)
				}
				continue
			}
			have := oracle.State{Present: m.State == Present, Confirmed: m.Certainty == Confirmed}
			withheld := r.mayWithhold && expect.Confirmed && have == (oracle.State{Present: expect.Present})
			if have != expect && !withheld {
				r.t.Fatalf("seed %d, %s: %q on %s: got %+v (evidence %s, doubt %s), want %+v\nagain: go test ./query -run TestModel -model.seed %d -model.streams 1",
					r.stream.Seed, name, o, medium, have, show(m.Evidence), show(m.Doubt), expect, r.stream.Seed)
			}
			answers++
			if have.Confirmed {
				confirmed++
			}
		}
	}
	return answers, confirmed
}

func show[T any](v *T) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *v)
}

// TestModel holds the whole path, from records to answers, against the oracle on random streams: the same state and the same
// certainty at every offset, at many times, and by default.
func TestModel(t *testing.T) {
	answers, confirmed := 0, 0
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 7)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		r.record()
		count := func(a, c int) { answers, confirmed = answers+a, confirmed+c }
		for i := range r.stream.Records {
			if r.rng.IntN(3) > 0 {
				continue
			}
			offset := uint64(i + 1)
			count(r.ask(When{Kind: AtOffset, Offset: offset}, fmt.Sprintf("offset %d", offset), func(o oracle.Object, m string) oracle.State {
				return r.oracle.AtOffset(offset, o, m)
			}))
		}
		times := r.oracle.Times()
		r.rng.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		for _, ms := range times[:min(len(times), 40)] {
			count(r.ask(When{Kind: AtTime, Ms: ms}, fmt.Sprintf("time %d", ms), func(o oracle.Object, m string) oracle.State {
				return r.oracle.AtTime(ms, o, m)
			}))
		}
		count(r.ask(When{}, "default", r.oracle.Latest))
		r.gaps()
		r.close()
	}
	t.Logf("%d answers on %d streams, %.0f %% confirmed", answers, *modelStreams, 100*float64(confirmed)/float64(max(answers, 1)))
	if answers == 0 || confirmed == 0 {
		t.Fatal("nothing was compared")
	}
}

// askMeanwhile asks for all objects as of now, and at a moment before.
func (r *recorded) askMeanwhile() {
	r.must(r.x.CatchUp(r.t.Context(), nil))
	end := r.oracle.End()
	offset := 1 + r.rng.Uint64N(end)
	a, _ := r.ask(When{}, fmt.Sprintf("default behind offset %d", end), r.oracle.Latest)
	b, _ := r.ask(When{Kind: AtOffset, Offset: offset}, fmt.Sprintf("offset %d of %d", offset, end), func(o oracle.Object, m string) oracle.State {
		return r.oracle.AtOffset(offset, o, m)
	})
	r.asked += a + b
}

// askTimes asks about the same times again and again, with the index where it is: what was kept of a moment may lie elsewhere in the journal
// by now.
func (r *recorded) askTimes() {
	if all := r.oracle.Times(); len(all) > 0 && (len(r.times) < 6 || r.rng.IntN(4) == 0) {
		r.times = append(r.times[max(0, len(r.times)-5):], all[len(all)-1-r.rng.IntN(min(len(all), 12))])
	}
	s, ok := r.j.SourceNamed("model")
	if !ok {
		r.t.Fatal("there is no source")
	}
	gone, leave := context.WithCancel(r.t.Context())
	leave()
	for _, ms := range r.times {
		w := When{Kind: AtTime, Ms: ms}
		_, need, err := r.e.place(&s, w)
		r.must(err)
		if need > r.x.Applied() { // the clock came back to it
			if v, _, err := r.e.moments(gone, []journal.Source{s}, w); !errors.Is(err, context.Canceled) {
				if err == nil {
					r.must(v.Close())
				}
				r.t.Fatalf("seed %d, time %d: %d records of %d are indexed, and the answer did not wait (%v)", r.stream.Seed, ms, r.x.Applied(), need, err)
			}
			continue
		}
		for range 2 {
			a, _ := r.ask(w, fmt.Sprintf("time %d of %d, %d indexed", ms, r.oracle.End(), r.x.Applied()), func(o oracle.Object, m string) oracle.State {
				return r.oracle.AtTime(ms, o, m)
			})
			r.asked += a
		}
	}
}

// TestModelMeanwhile asks while streams with readings of the master are recorded, sealed, rebuilt and opened again: what was kept of earlier
// questions is what would be found anew.
func TestModelMeanwhile(t *testing.T) {
	asked := 0
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 23)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem(), meanwhile: true}
		r.reads = &reads{often: 3 + r.rng.IntN(15), silence: 2 + r.rng.IntN(20)}
		r.record()
		r.close()
		asked += r.asked
	}
	t.Logf("from seed %d: %d answers on %d streams", *modelSeed, asked, *modelStreams)
	if asked == 0 {
		t.Fatal("nothing was compared")
	}
}

// TestModelTimesMeanwhile asks about the same times while streams without readings, which may tell of the past, are recorded ahead of the index.
func TestModelTimesMeanwhile(t *testing.T) {
	asked := 0
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 29)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem(), byTime: true}
		r.record()
		r.close()
		asked += r.asked
	}
	t.Logf("from seed %d: %d answers on %d streams", *modelSeed, asked, *modelStreams)
	if asked == 0 {
		t.Fatal("nothing was compared")
	}
}

// gaps compares the lines of gaps with the oracle's.
func (r *recorded) gaps() {
	type line struct {
		cause                    string
		epoch, first, last, miss uint64
		exact, least, most       uint64
		before, after            uint64
	}
	var got, want []line
	value := func(p *uint64) uint64 {
		if p == nil {
			return 0
		}
		return *p
	}
	r.must(r.e.Gaps(r.t.Context(), &GapsQuery{Source: "model", NoObjects: true}, nil, func(g *GapOut) error {
		got = append(got, line{g.Cause, g.Epoch, value(g.FirstMissingSeq), value(g.LastMissingSeq), value(g.MissingSeqs),
			value(g.LostEvents), value(g.LostEventsMin), value(g.LostEventsMax), g.LastOffsetBefore, g.FirstOffsetAfter})
		return nil
	}))
	for _, g := range r.oracle.Gaps() {
		l := line{cause: g.Cause, epoch: g.Epoch, first: g.First, last: g.Last, miss: g.Missing, before: g.Before, after: g.After}
		switch {
		case g.LostExact:
			l.exact = g.LostMin
		case g.LostKnown:
			l.least, l.most = g.LostMin, g.LostMax
		}
		want = append(want, l)
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("seed %d: gaps\n got %+v\nwant %+v", r.stream.Seed, got, want)
	}
}
