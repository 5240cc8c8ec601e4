package storm

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

var ctx = context.Background()

// steps are what a run does, in random order: each is drawn as often as the others, and then done in so many percent of the cases. A step
// that appends tells run.take of each record.
var steps = []struct {
	name    string
	percent int
	do      func(*run) error
}{
	{"appending", 100, (*run).appendGroup},
	{"appending", 100, (*run).appendGroup},
	{"reading the master", 60, (*run).readMaster},
	{"syncing", 30, func(r *run) error { return r.j.Sync() }},
	{"sealing", 15, func(r *run) error { return r.j.Seal(ctx) }},
	{"flushing the journal", 15, func(r *run) error { return r.j.Flush() }},
	{"indexing", 40, func(r *run) error { return r.x.CatchUp(ctx, nil) }},
	{"flushing the index", 15, func(r *run) error { return r.x.Flush() }},
	{"settling the index", 5, func(r *run) error { return r.x.Settle(ctx) }},
	{"rebuilding", 8, func(r *run) error { return r.x.Rebuild(ctx, nil) }},
	{"pruning", 12, (*run).prune},
	{"backing up", 8, (*run).backUp},
	{"restarting", 10, func(r *run) error { return errors.Join(r.stop(), r.start()) }},
	{"naming a source", 10, (*run).nameSource},
	{"asking", 20, (*run).ask},
}

// appendGroup commits a few of the stream's records, and does not wait for them.
func (r *run) appendGroup() error {
	g := r.j.NewGroup()
	for range 1 + r.rng.IntN(8) {
		if r.next == len(r.stream.Records) {
			break
		}
		rec := &r.stream.Records[r.next]
		r.next++
		offset, err := r.feed.Add(g, rec, false)
		if err != nil {
			return errors.Join(err, g.Commit())
		}
		if err := r.take(offset, taken{rec: *rec}); err != nil {
			return err
		}
	}
	r.feed.Save(g)
	return g.Commit()
}

func (r *run) now() int64 { return r.stream.Records[max(r.next, 1)-1].Received }

// readMaster begins or ends a reading, or writes down what the master's counters said.
func (r *run) readMaster() error {
	g := r.j.NewGroup()
	err := r.addReading(g)
	r.feed.Save(g)
	return errors.Join(err, g.Commit())
}

func (r *run) addReading(g *journal.Group) error {
	own := capture.Record{Kind: oracle.Fact, Received: r.now()}
	switch {
	case r.open != nil && !r.oracle.Whole(r.open.Begun):
		r.open = nil // it is void
	case r.open != nil && r.rng.IntN(3) == 0:
		return r.endReading(g)
	case r.open == nil && r.rng.IntN(10) == 0:
		st := reading.Status{Facts: []string{reading.FactCounters}, Silent: r.rng.IntN(8) == 0, Counters: &reading.Counters{Batches: 1}}
		offset, err := r.feed.Fact(g, journal.PublisherStatus, own.Received, continuity.Verdict{}, &st)
		if err != nil {
			return err
		}
		return r.take(offset, taken{rec: own, flag: st.Silent})
	case r.open == nil && r.oracle.Whole(r.oracle.End()):
		h, err := r.feed.Fact(g, journal.ReconciliationBegun, own.Received, continuity.Verdict{}, &reading.Begun{Why: reading.AfterMark})
		if err != nil {
			return err
		}
		r.open = &oracle.Reading{Begun: h}
		return r.take(h, taken{rec: own})
	}
	return nil
}

// endReading ends the reading that is open, with corrections of one scope.
func (r *run) endReading(g *journal.Group) error {
	one, end := r.open, r.oracle.End()
	r.open = nil
	one.Through = one.Begun + r.rng.Uint64N(end-one.Begun+1)
	one.Found, one.Unsaid = map[oracle.Place]bool{}, map[oracle.Object]bool{}
	some := r.stream.Objects[r.rng.IntN(len(r.stream.Objects))]
	scope := oracle.Object{Backend: some.Backend, Tenant: some.Tenant}
	one.Covers = []oracle.Object{scope}
	part := reading.AppendPart(nil, one.Begun, []byte(scope.Backend), []byte(scope.Tenant))
	for _, o := range r.stream.Objects {
		if o.Backend != scope.Backend || o.Tenant != scope.Tenant || r.oracle.Touched(o, one.Begun, one.Through) || r.rng.IntN(2) == 0 {
			continue
		}
		e := reading.Entry{What: reading.Present, Key: []byte(o.Key), Medium: []byte("cpu")}
		present := !r.oracle.AtOffset(one.Begun, o, "cpu").Present
		if !present {
			e.What = reading.Absent
		}
		one.Found[oracle.Place{Object: o, Medium: "cpu"}] = present
		part = reading.AppendEntry(part, &e)
	}
	at := r.now()
	ended := &reading.Ended{
		Why: reading.AfterMark, Begun: one.Begun, Through: one.Through, TookMs: 7, Corrections: len(one.Found),
		Scopes: []reading.Scope{{Backend: []byte(scope.Backend), Tenant: []byte(scope.Tenant)}},
	}
	offset, err := r.feed.End(g, at, [][]byte{part}, ended)
	if err != nil {
		return err
	}
	own := capture.Record{Kind: oracle.Fact, Received: at}
	one.Ended = offset
	return errors.Join(r.take(offset-1, taken{rec: own}), r.take(offset, taken{rec: own, read: one}))
}

// prune moves the horizon to some place, if there is one behind it.
func (r *run) prune() error {
	if err := r.x.CatchUp(ctx, nil); err != nil {
		return err
	}
	_, err := r.x.Prune(ctx, 1+r.rng.Uint64N(r.x.Applied()+1), index.BaselineOptions{}, nil)
	if errors.Is(err, index.ErrNothingToPrune) {
		return nil
	}
	return err
}

// backUp takes a backup, which opens and compares it.
func (r *run) backUp() error {
	r.backups++
	to := fmt.Sprintf("%s-backup-%d", dir, r.backups)
	_, err := backup.Live(ctx, r.j, r.x, to, backup.Options{FS: r.fs, Fatal: r.fatal})
	return err
}

func (r *run) nameSource() error {
	_, err := r.j.EnsureSource(fmt.Sprint("other-", r.rng.IntN(3)), nil, nil)
	return err
}

// ask asks a few questions: an error is an error, a wrong answer is none.
func (r *run) ask() error {
	if err := r.x.CatchUp(ctx, nil); err != nil {
		return err
	}
	return r.sameAnswers(r.j, r.x, r.taken[:r.x.Applied()], 1)
}
