package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// reads makes up readings of the master while a stream is recorded: their corrections and exceptions are drawn, and are such as R9 allows.
type reads struct {
	often   int // one in so many records begins one
	silence int // one in so many that end flags the epoch
	open    *oracle.Reading
	made    int
}

// newRead records the random stream of a seed, with readings in the middle and behind it.
func newRead(t *testing.T, seed uint64) *recorded {
	r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 17)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
	r.reads = &reads{often: 3 + r.rng.IntN(15), silence: 2 + r.rng.IntN(20)}
	r.record()
	return r
}

// step may begin or end a reading behind the record that was taken last.
func (s *reads) step(r *recorded, feed *recorder.Feed, g *journal.Group, at int64, took func(uint64, capture.Record)) {
	now := r.oracle.End()
	own := capture.Record{Kind: oracle.Fact, Received: at}
	switch {
	case s.open == nil:
		if r.rng.IntN(40) == 0 { // the counters of a poll
			st := reading.Status{Facts: []string{reading.FactCounters}, Silent: r.rng.IntN(4) == 0, Counters: &reading.Counters{Batches: now}}
			offset, err := feed.Fact(g, journal.PublisherStatus, at, continuity.Verdict{}, &st)
			r.must(err)
			took(offset, own)
			if st.Silent {
				r.oracle.Flag()
			}
		}
		if now := r.oracle.End(); r.rng.IntN(s.often) == 0 && r.oracle.Whole(now) {
			h, err := feed.Fact(g, journal.ReconciliationBegun, at, continuity.Verdict{}, &reading.Begun{Why: reading.AfterMark})
			r.must(err)
			took(h, own)
			s.open = &oracle.Reading{Begun: h}
		}
	case !r.oracle.Whole(s.open.Begun):
		s.open = nil // it is void
	case r.rng.IntN(4) == 0:
		s.end(r, feed, g, at, took)
		s.open = nil
	}
}

func (s *reads) end(r *recorded, feed *recorder.Feed, g *journal.Group, at int64, took func(uint64, capture.Record)) {
	one, now := s.open, r.oracle.End()
	one.Through = one.Begun + r.rng.Uint64N(now-one.Begun+1)
	one.Found, one.Unsaid = map[oracle.Place]bool{}, map[oracle.Object]bool{}
	one.Silent = r.rng.IntN(s.silence) == 0
	end := &reading.Ended{Why: reading.AfterMark, Begun: one.Begun, Through: one.Through, TookMs: 7}
	if one.Silent {
		end.Contradictions = 1
	}
	var parts [][]byte
	objects := slices.Clone(r.stream.Objects)
	slices.SortFunc(objects, compareOracle)
	for i := 0; i < len(objects); {
		scope := oracle.Object{Backend: objects[i].Backend, Tenant: objects[i].Tenant}
		part, entries := reading.AppendPart(nil, one.Begun, []byte(scope.Backend), []byte(scope.Tenant)), 0
		covered := r.rng.IntN(4) > 0
		for ; i < len(objects) && objects[i].Backend == scope.Backend && objects[i].Tenant == scope.Tenant; i++ {
			if covered {
				part, entries = s.object(r, one, objects[i], part, entries)
			}
		}
		if !covered {
			continue
		}
		one.Covers = append(one.Covers, scope)
		end.Scopes = append(end.Scopes, reading.Scope{Backend: []byte(scope.Backend), Tenant: []byte(scope.Tenant)})
		if entries > 0 || r.rng.IntN(2) == 0 {
			parts = append(parts, part)
		}
	}
	end.Corrections, end.Exceptions = len(one.Found), len(one.Unsaid)
	offset, err := feed.End(g, at, parts, end)
	r.must(err)
	for n := range len(parts) {
		took(offset-uint64(len(parts)-n), capture.Record{Kind: oracle.Fact, Received: at})
	}
	took(offset, capture.Record{Kind: oracle.Fact, Received: at})
	one.Ended = offset
	r.oracle.Read(one)
	s.made++
}

// object draws what a reading found of an object: mostly what was known.
func (s *reads) object(r *recorded, one *oracle.Reading, o oracle.Object, part []byte, entries int) ([]byte, int) {
	if r.oracle.Touched(o, one.Begun, one.Through) || r.rng.IntN(3) > 0 {
		return part, entries
	}
	if r.rng.IntN(2) == 0 {
		one.Unsaid[o] = true
		part, entries = reading.AppendEntry(part, &reading.Entry{What: reading.Unsaid, Key: []byte(o.Key)}), entries+1
	}
	if r.rng.IntN(2) == 0 {
		return part, entries
	}
	for _, m := range r.stream.Media {
		if r.rng.IntN(2) == 0 {
			continue
		}
		e := reading.Entry{What: reading.Present, Key: []byte(o.Key), Medium: []byte(m)}
		present := !r.oracle.AtOffset(one.Begun, o, m).Present
		if one.Unsaid[o] && r.rng.IntN(2) == 0 {
			present = !present // confirmed beside an exception
		}
		if !present {
			e.What = reading.Absent
		}
		one.Found[oracle.Place{Object: o, Medium: m}] = present
		part, entries = reading.AppendEntry(part, &e), entries+1
	}
	return part, entries
}

func compareOracle(a, b oracle.Object) int {
	for _, c := range [][2]string{{a.Backend, b.Backend}, {a.Tenant, b.Tenant}, {a.Key, b.Key}} {
		if c[0] != c[1] {
			if c[0] < c[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// TestReadingsModel holds every question about the past against the oracle, and against each other, on random streams with readings of the
// master and silent epochs.
func TestReadingsModel(t *testing.T) {
	defer func(n int) { historyPageRows = n }(historyPageRows)
	historyPageRows = 2
	readings, answers, confirmed, silent, pairs, changes := 0, 0, 0, 0, 0, 0
	var met counts
	for n := range *modelStreams {
		r := newRead(t, *modelSeed+uint64(n))
		readings += r.reads.made
		for range 12 {
			w, want := r.randomMoment()
			a, c := r.ask(w, fmt.Sprintf("%+v", w), want)
			answers, confirmed = answers+a, confirmed+c
			all := r.list(ObjectsQuestion{At: w, State: AnyState})
			r.sameAsLookup(w, all)
			r.filters(w, all)
			for _, o := range all {
				for _, m := range o.Media {
					if m.Doubt != nil && m.Doubt.Cause == DoubtSilent {
						silent++
					}
				}
			}
			r.why(w)
		}
		for range 20 {
			if n, met := r.diffPair(); met {
				pairs, changes = pairs+1, changes+n
			}
		}
		for _, o := range r.oracle.Objects() {
			r.history(o, &met)
		}
		r.close()
	}
	t.Logf("histories: %+v", met)
	t.Logf("from seed %d: %d readings, %d answers, %d confirmed, %d doubted for silence; %d changes in %d diffs", *modelSeed, readings, answers, confirmed, silent, changes, pairs)
	if *modelStreams >= 20 && (readings == 0 || confirmed == 0 || silent == 0 || changes == 0 || met.Readings == 0 || met.Corrections == 0) {
		t.Fatal("the streams test too little")
	}
}

// why: the story's answer is lookup's, and it tells every doubt.
func (r *recorded) why(w When) {
	objects := r.stream.Objects
	name := r.name(objects[r.rng.IntN(len(objects))])
	answers, err := r.e.Lookup(r.t.Context(), []Question{{name}}, w)
	r.must(err)
	r.must(r.e.Why(r.t.Context(), name, w, func(out *WhyOut) error {
		out.Answer.AsOf.AgeMs, answers[0].AsOf.AgeMs = nil, nil
		if have, want := mustJSON(out.Answer), mustJSON(answers[0]); string(have) != string(want) {
			r.t.Fatalf("seed %d, %+v\nwhy    %s\nlookup %s", r.stream.Seed, w, have, want)
		}
		r.told(out, map[string]int{})
		return nil
	}))
}
