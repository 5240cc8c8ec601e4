package journal

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestMomentsAreKeptBesidePrunes: while a stream goes on and the journal is pruned, what is kept of a moment is what would be found anew.
func TestMomentsAreKeptBesidePrunes(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = []int{200, 2000, 20_000}[rng.IntN(3)]
	j := mustOpen(t, o, 0)
	defer mustClose(t, j)
	s, m := newStream(t, rng, j, 1+rng.IntN(2)), &model{}
	s.payload = 10
	refused := 0
	ask := func() {
		for range 300 {
			r := &m.recs[len(m.recs)-1-rng.IntN(min(100, len(m.recs)))].header
			ms := r.Time - 2 + rng.Int64N(5)
			got, err := j.At(r.Source, ms)
			want, _, wantErr := j.at(r.Source, ms)
			if got != want || isPruned(err) != isPruned(wantErr) || err != nil && !isPruned(err) {
				t.Fatalf("At(%d, %d) of durable %d, horizon %+v:\nkept %+v, %v\nanew %+v, %v", r.Source, ms, j.Durable(), j.Horizon(), got, err, want, wantErr)
			}
			if isPruned(err) {
				refused++
			}
		}
	}
	for range 10 + questions(30) {
		m.appendMany(t, j, s, 20+rng.IntN(30), 1+rng.IntN(20))
		ask()
		if rng.IntN(3) == 0 {
			prune(t, j, max(j.Horizon().Offset+1, j.Durable()-rng.Uint64N(min(60, j.Durable()))), 1)
			ask()
		}
	}
	if refused == 0 {
		t.Error("no moment was pruned")
	}
}

// TestStepsOf: the steps of a source in a block are between its own messages that count, are durable, and lie behind the horizon.
func TestStepsOf(t *testing.T) {
	at := func(source uint32, ms int64) entry {
		return entry{Header: Header{Kind: Message, Source: source, Verdict: continuity.Verdict{Epoch: 1, HasTime: true, Time: ms}}}
	}
	in := &headers{first: 11, entries: []entry{at(1, 10), at(1, 20), at(2, 25), at(1, 20), at(1, 30), at(1, 40), at(1, 50), at(1, 60)}}
	in.entries[5].Duplicate = true
	in.entries[6].Mark, in.entries[6].MarkCause = continuity.MarkBehind, continuity.Damaged
	type step struct {
		below      int64
		last, next uint64
	}
	for _, c := range []struct {
		horizon, durable uint64
		from             int64
		want             []step
	}{
		{0, 18, 10, []step{{20, 11, 12}, {30, 14, 15}, {50, 15, 17}, {60, 17, 18}}},
		{0, 17, 10, []step{{20, 11, 12}, {30, 14, 15}, {50, 15, 17}}},
		{0, 11, 0, nil},
		{11, 15, 20, []step{{30, 14, 15}}},
		{14, 18, 30, []step{{50, 15, 17}, {60, 17, 18}}},
		{18, 30, 0, nil},
	} {
		r := stepsOf(in, 1, &Horizon{Offset: c.horizon}, c.durable)
		if r == nil {
			if c.want != nil {
				t.Errorf("%+v: none", c)
			}
			continue
		}
		var got []step
		for i, s := range r.steps {
			from := r.from
			if i > 0 {
				from = r.steps[i-1].below
			}
			m := r.at(from)
			if m != r.at(s.below-1) {
				t.Errorf("%+v: it is not the same from %d to %d", c, from, s.below)
			}
			for _, rec := range []Record{m.Last, m.Next} {
				if rec != in.record(int(rec.Offset-in.first)) {
					t.Errorf("%+v: record %+v", c, rec)
				}
			}
			got = append(got, step{s.below, m.Last.Offset, m.Next.Offset})
		}
		if r.from != c.from || !slices.Equal(got, c.want) {
			t.Errorf("%+v: from %d %+v", c, r.from, got)
		}
	}
}

// TestMomentsAreBounded: whatever runs come, no more is kept than was said, and what is asked for all the time stays.
func TestMomentsAreBounded(t *testing.T) {
	var m moments
	h := &Horizon{}
	run := func(from, to int64) *momentRun {
		r := &momentRun{from: from, source: 1, standing: Standing{horizon: h}}
		for ms := from + 1; ms <= to; ms++ {
			r.step(ms, &Record{Offset: uint64(ms)}, &Record{Offset: uint64(ms) + 1})
		}
		return r
	}
	m.put(1, run(-1, 0))
	for i := range int64(2000) {
		m.put(1, run(i*200+100, i*200+200)) // and over it
		m.put(1, run(i*200, i*200+200))
		for _, ms := range []int64{-1, i*200 + 100, i*200 + 199} {
			if got, _, ok := m.at(1, ms, h, 0); !ok || got.Last.Offset != uint64(ms+1) {
				t.Fatalf("run %d, %d: %v %+v", i, ms, ok, got)
			}
		}
		if _, _, ok := m.at(1, i*200+200, h, 0); ok {
			t.Fatalf("run %d answers behind its end", i)
		}
	}
	if _, _, ok := m.at(2, -1, h, 0); ok {
		t.Error("another source's")
	}
	total := 0
	for _, generation := range []map[uint32][]*momentRun{m.young, m.old} {
		for _, runs := range generation {
			for _, r := range runs {
				total += r.bytes()
			}
		}
	}
	if total > momentsCache || total < momentsCache/2 || m.size > momentsCache/2 {
		t.Errorf("%d bytes are kept", total)
	}
}
