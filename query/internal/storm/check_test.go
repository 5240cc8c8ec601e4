package storm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// left opens what a crash or a fault left in fs, when so much was acknowledged of what was taken, and says what is wrong with it.
func (r *run) left(fs vfs.FS, acked uint64, all []taken) (err error) {
	jo := r.journalOptions(fs)
	jo.Indexed = index.KnownTo(dir, r.indexOptions(fs))
	j, err := journal.Open(dir, nil, jo)
	if err != nil {
		return fmt.Errorf("the directory does not open: %w", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	last := j.Durable()
	if last < acked || last > uint64(len(all)) {
		return fmt.Errorf("LOST: the last offset is %d, %d was acknowledged, %d appended", last, acked, len(all))
	}
	if err := sameRecords(j, all[:last]); err != nil {
		return err
	}
	x, err := openIndex(j, r.indexOptions(fs))
	if err != nil {
		return fmt.Errorf("the index does not open: %w", err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if found := x.Applied(); found > last {
		return fmt.Errorf("WRONG: the index knows offset %d, the journal ends at %d", found, last)
	} else if err := r.sameAnswers(j, x, all[:found], 1); err != nil {
		return fmt.Errorf("the index as it was found, at %d: %w", found, err)
	}
	if err := x.CatchUp(ctx, nil); err != nil {
		return err
	}
	if err := r.sameAnswers(j, x, all[:last], 3); err != nil {
		return fmt.Errorf("the index brought up: %w", err)
	}
	if err := x.Rebuild(ctx, nil); err != nil {
		return err
	}
	if err := r.sameAnswers(j, x, all[:last], 1); err != nil {
		return fmt.Errorf("the index rebuilt: %w", err)
	}
	return r.goesOn(j, x, all[:last:last], all[last:])
}

// sameRecords compares the journal, from its horizon on, with what was taken.
func sameRecords(j *journal.Journal, want []taken) error {
	n := int(j.Horizon().Offset)
	if n > len(want) {
		return fmt.Errorf("WRONG: the horizon is at %d, the journal ends at %d", n, len(want))
	}
	for after := uint64(n); ; {
		b, err := j.NextBlock(nil, after)
		if errors.Is(err, journal.ErrNotFound) && n == len(want) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("LOST: reading behind offset %d of %d: %w", after, len(want), err)
		}
		if b.First > after+1 {
			return fmt.Errorf("LOST: the block behind offset %d begins at %d", after, b.First)
		}
		for i := range b.Len() {
			if b.First+uint64(i) <= after { // kept
				continue
			}
			frames, err := b.Frames(i, nil, new([8]byte))
			if err != nil {
				return fmt.Errorf("LOST: offset %d: %w", b.First+uint64(i), err)
			}
			rec := &want[n].rec
			if h := b.Header(i); h.Received != rec.Received || rec.Kind == capture.Message && !slices.EqualFunc(frames, rec.Frames, bytes.Equal) {
				return fmt.Errorf("WRONG: offset %d is not what was appended there", n+1)
			}
			n++
		}
		after = b.Last()
	}
}

// sameAnswers compares answers at the end and at so many moments, and the gaps, with an oracle of the records.
func (r *run) sameAnswers(j *journal.Journal, x *index.Index, all []taken, moments int) error {
	if len(all) == 0 {
		return nil
	}
	o := oracle.New()
	for i := range all {
		all[i].tell(o)
	}
	e := &query.Engine{Journal: j, Index: x}
	s, known := j.SourceNamed(source)
	if !known {
		return errors.New("LOST: the source is not known")
	}
	if err := r.sameAt(e, o, s.Name, query.When{}, o.Latest); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(r.seed, uint64(len(all))))
	for range moments {
		at := max(j.Horizon().Offset, 1+rng.Uint64N(uint64(len(all))))
		err := r.sameAt(e, o, s.Name, query.When{Kind: query.AtOffset, Offset: at}, func(obj oracle.Object, medium string) oracle.State {
			return o.AtOffset(at, obj, medium)
		})
		if err != nil {
			return err
		}
	}
	return sameGaps(e, o, s.Name)
}

func (r *run) sameAt(e *query.Engine, o *oracle.Oracle, name string, w query.When, want func(oracle.Object, string) oracle.State) error {
	questions := make([]query.Question, len(r.stream.Objects))
	for i, obj := range r.stream.Objects {
		questions[i] = query.Question{Name: query.Name{Source: name, Backend: query.Bytes(obj.Backend), Tenant: query.Bytes(obj.Tenant), Key: query.Bytes(obj.Key)}}
		if obj.Backend == "" {
			questions[i].Backend = query.Bytes{}
		}
	}
	got, err := e.Lookup(ctx, questions, w)
	if err != nil {
		return fmt.Errorf("lookup at %+v: %w", w, err)
	}
	for i, obj := range r.stream.Objects {
		media := append([]string{"cpu", "disk"}, o.Media(obj)...)
		slices.Sort(media)
		for _, medium := range slices.Compact(media) {
			expect := want(obj, medium)
			m, listed := got[i].Media[medium]
			have := oracle.State{Present: m.State == query.Present, Confirmed: m.Certainty == query.Confirmed}
			if r.mayWithhold && expect.Confirmed && !have.Confirmed {
				r.withheld++
				expect.Confirmed = false
			}
			if listed && have != expect || !listed && expect.Present {
				text, _ := json.Marshal(got[i])
				return fmt.Errorf("WRONG: at %+v %q on %s is %+v (listed: %v), want %+v; the answer: %s", w, obj, medium, have, listed, expect, text)
			}
		}
	}
	return nil
}

func sameGaps(e *query.Engine, o *oracle.Oracle, name string) error {
	type line struct {
		cause         string
		epoch         uint64
		before, after uint64
	}
	var got, want []line
	err := e.Gaps(ctx, &query.GapsQuery{Source: name, NoObjects: true}, nil, func(g *query.GapOut) error {
		got = append(got, line{g.Cause, g.Epoch, g.LastOffsetBefore, g.FirstOffsetAfter})
		return nil
	})
	if err != nil {
		return fmt.Errorf("gaps: %w", err)
	}
	for _, g := range o.Gaps() {
		want = append(want, line{g.Cause, g.Epoch, g.Before, g.After})
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("WRONG: gaps\n got %+v\nwant %+v", got, want)
	}
	return nil
}

// goesOn appends the messages that were not kept once more, and what came behind them: the stream must be judged as if nothing had been.
func (r *run) goesOn(j *journal.Journal, x *index.Index, all, lost []taken) error {
	s, known := j.SourceNamed(source)
	if !known {
		if len(all) > 0 {
			return errors.New("LOST: the source is not known")
		}
		var err error
		if s, err = j.EnsureSource(source, nil, nil); err != nil {
			return err
		}
	}
	feed, err := recorder.NewFeed(j, s.ID)
	if err != nil {
		return fmt.Errorf("LOST: where the source stands: %w", err)
	}
	g := j.NewGroup()
	for i := range lost {
		rec := lost[i].rec
		if rec.Kind == oracle.Fact {
			continue
		}
		offset, err := feed.Add(g, &rec, false)
		if err != nil {
			return errors.Join(err, g.Commit())
		}
		if want := uint64(len(all) + 1); offset != want {
			return errors.Join(fmt.Errorf("WRONG: the next record gets offset %d, want %d", offset, want), g.Commit())
		}
		all = append(all, taken{rec: rec})
	}
	feed.Save(g)
	if err := errors.Join(g.Commit(), j.Sync(), x.CatchUp(ctx, nil)); err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	if err := r.sameAnswers(j, x, all, 1); err != nil {
		return fmt.Errorf("behind what came next: %w", err)
	}
	return nil
}
