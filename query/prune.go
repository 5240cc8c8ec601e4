package query

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/kvjournal/kvjournal/index"
)

// PruneQuestion says what to keep: exactly one of Keep, KeepBytes and Before is given.
type PruneQuestion struct {
	// Keep is how long what was received stays, back from now on our clock; 0: not given.
	Keep time.Duration
	// KeepBytes is how large journal and index may be together, about; 0: not given.
	KeepBytes uint64
	// Before is the moment before which all goes; Latest: not given.
	Before When
	// ForgetRemoved: see index.BaselineOptions.
	ForgetRemoved bool
	// DryRun changes nothing.
	DryRun bool
}

func (q *PruneQuestion) check() error {
	n := b2i(q.Keep != 0) + b2i(q.KeepBytes != 0) + b2i(q.Before.Kind != Latest)
	switch {
	case n != 1:
		return usagef("give one of --keep, --keep-bytes and --before")
	case q.Keep < 0:
		return usagef("--keep %v: must not be negative", q.Keep)
	case q.Before.Kind == Now:
		return usagef("--before now: name a moment that is recorded; the newest records always stay")
	}
	return nil
}

// PruneReport says what a prune did, or would do.
type PruneReport struct {
	// Pruned is false where there was nothing to prune: no place behind the horizon up to which the journal may be pruned lies before what
	// is to be kept.
	Pruned bool `json:"pruned"`
	DryRun bool `json:"dry_run,omitempty"`
	// ForgetRemoved: objects that are gone are forgotten.
	ForgetRemoved bool `json:"forget_removed,omitempty"`
	// Horizon is where the journal begins now, or would.
	Horizon *HorizonOut `json:"horizon,omitempty"`
	// EventsPruned is how many events lie before the new horizon and behind the old one.
	EventsPruned uint64 `json:"events_pruned"`
	// BaselineRows is how many rows of the index stand for what was pruned.
	BaselineRows uint64 `json:"baseline_rows,omitempty"`
	// Bytes of the tables of journal and index before, and behind it; of a dry run an estimate.
	JournalBytesBefore uint64 `json:"journal_bytes_before"`
	JournalBytesAfter  uint64 `json:"journal_bytes_after"`
	IndexBytesBefore   uint64 `json:"index_bytes_before"`
	IndexBytesAfter    uint64 `json:"index_bytes_after"`
	// SpaceLater: compactions were behind, and more space comes back as they catch up.
	SpaceLater bool  `json:"space_later,omitempty"`
	TookMs     int64 `json:"took_ms"`
}

// pruneProgress is told of each step how far it is.
type pruneProgress = func(step string, done, total uint64)

// Prune moves the horizon so that what is asked for is kept, and at most half a million events or 10 minutes more: a journal is pruned up to
// a checkpoint. While a recorder runs it goes on.
func (e *Engine) Prune(ctx context.Context, q *PruneQuestion, progress pruneProgress) (*PruneReport, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	begun := time.Now()
	out := &PruneReport{DryRun: q.DryRun, ForgetRemoved: q.ForgetRemoved, Horizon: e.Horizon()}
	out.JournalBytesBefore, out.IndexBytesBefore = e.Journal.Stats().TableBytes, e.Index.Bytes()
	out.JournalBytesAfter, out.IndexBytesAfter = out.JournalBytesBefore, out.IndexBytesBefore
	c, before, total, err := e.pruneTo(q)
	if err != nil {
		return nil, err
	}
	forgets := q.ForgetRemoved && out.Horizon != nil && out.Horizon.ForgottenTo < out.Horizon.Offset
	if c == nil && !forgets {
		return out, nil
	}
	to := e.Journal.Horizon().Offset
	if c != nil {
		to, out.EventsPruned = c.Offset, c.Events-before
	}
	if q.DryRun {
		return out, e.estimate(out, c, before, total)
	}
	h, err := e.Index.Prune(ctx, to, index.BaselineOptions{ForgetRemoved: q.ForgetRemoved}, progress)
	if errors.Is(err, index.ErrNothingToPrune) {
		out.EventsPruned = 0
		return out, nil
	}
	if out.SpaceLater = errors.Is(err, index.ErrSpaceLater); err != nil && !out.SpaceLater {
		return nil, err
	}
	out.Pruned, out.Horizon, out.BaselineRows = true, horizonOut(h), h.Rows
	out.JournalBytesAfter, out.IndexBytesAfter = e.Journal.Stats().TableBytes, e.Index.Bytes()
	out.TookMs = time.Since(begun).Milliseconds()
	return out, nil
}

// estimate fills in what a prune would come to; c is nil where the horizon stays.
func (e *Engine) estimate(out *PruneReport, c *index.Checkpoint, before, total uint64) error {
	out.Pruned = true
	if c == nil {
		return nil
	}
	r, err := e.Journal.Record(c.Offset)
	if err != nil {
		return err
	}
	out.Horizon = &HorizonOut{Offset: c.Offset, Received: msTime(r.Received / 1e6)}
	if r.HasTime {
		out.Horizon.Time = msTime(r.Time)
	}
	size, err := e.sizer(total, before, out.ForgetRemoved)
	if err == nil {
		out.JournalBytesAfter, out.IndexBytesAfter, err = size(&index.Point{Offset: c.Offset, Events: c.Events})
	}
	return err
}

// rowsOfIndex is how many bytes a row of the baseline takes in the index where it takes one in the journal: 45 and 31 B were measured.
const rowsOfIndex = 1.45

// sizer estimates how large journal and index are behind a place. What stands for objects that are gone is as it is now, but where it is
// forgotten; total and before are events.
func (e *Engine) sizer(total, before uint64, forget bool) (func(*index.Point) (journal, index uint64, err error), error) {
	baseline, err := e.Journal.BaselineBytes()
	if err != nil {
		return nil, err
	}
	rows := min(uint64(rowsOfIndex*float64(baseline)), e.Index.Bytes())
	rest := e.Index.Bytes() - rows
	if forget {
		baseline, rows = 0, 0
	}
	return func(p *index.Point) (uint64, uint64, error) {
		bytes, err := e.Journal.BytesBehind(p.Offset)
		return bytes + baseline, rows + share(rest, total-p.Events, total-before), err
	}, nil
}

// share is part of a whole of bytes.
func share(bytes, part, whole uint64) uint64 {
	if whole == 0 {
		return bytes
	}
	return uint64(float64(bytes) * float64(part) / float64(whole))
}

// pruneTo finds the checkpoint to prune to, nil: none; before are the events up to the horizon, total all.
func (e *Engine) pruneTo(q *PruneQuestion) (c *index.Checkpoint, before, total uint64, err error) {
	limit, err := e.pruneLimit(q)
	if err != nil {
		return nil, 0, 0, err
	}
	v, err := e.Index.View()
	if err != nil {
		return nil, 0, 0, err
	}
	defer v.Close()
	points, err := v.Points()
	if err != nil {
		return nil, 0, 0, err
	}
	h := e.Journal.Horizon()
	for _, s := range e.Journal.Sources() {
		total += v.Source(s.ID).Events
	}
	before = h.Events
	size, err := e.sizer(total, before, q.ForgetRemoved)
	if err != nil {
		return nil, 0, 0, err
	}
	all := append([]index.Point{{Offset: h.Offset, Events: before}}, points...)
	at, err := choosePoint(all, limit, func(p *index.Point) (uint64, error) {
		bytes, more, err := size(p)
		return bytes + more, err
	})
	if err != nil || at == 0 {
		return nil, before, total, err
	}
	c, err = v.PruneTo(at)
	if c != nil && c.Offset <= h.Offset {
		c = nil
	}
	return c, before, total, err
}

// pruneLimit is what a place up to which the journal is pruned has to be.
type pruneLimit struct {
	offset   uint64 // at most
	received int64  // ns, at most: nothing that was received later goes
	bytes    uint64 // behind it at most; 0: any
}

func (e *Engine) pruneLimit(q *PruneQuestion) (pruneLimit, error) {
	l := pruneLimit{offset: math.MaxInt64, received: math.MaxInt64, bytes: q.KeepBytes}
	switch {
	case q.Keep > 0:
		l.received = e.Clock().Add(-q.Keep).UnixNano()
	case q.Before.Kind == AtTime:
		for _, s := range e.Journal.Sources() {
			m, err := e.Journal.At(s.ID, q.Before.Ms-1)
			var pruned *PrunedError
			switch {
			case errors.As(err, &pruned):
				l.offset = 0 // it is gone already
			case err != nil:
				return l, err
			case m.Next.Offset != 0:
				l.offset = min(l.offset, m.Next.Offset-1)
			}
		}
	case q.Before.Kind != Latest:
		sources, err := e.sources("")
		if err != nil {
			return l, err
		}
		if err := oneSource(sources, q.Before); err != nil {
			return l, err
		}
		for _, s := range sources {
			m, _, err := e.place(&s, q.Before)
			if err != nil {
				return l, err
			}
			l.offset = m.at.Offset - 1
		}
	}
	return l, nil
}

// choosePoint finds the place to prune to among those from the horizon on: the newest within the limits, or, where bytes are limited, the
// oldest that leaves no more, the last where none does; 0: none behind the horizon. It is pure but for what size reads.
func choosePoint(points []index.Point, l pruneLimit, size func(*index.Point) (uint64, error)) (uint64, error) {
	found := 0
	for i := range points {
		p := &points[i]
		if i > 0 && (p.Offset > l.offset || p.Received > l.received) {
			break
		}
		found = i
		if l.bytes == 0 {
			continue
		}
		bytes, err := size(p)
		if err != nil {
			return 0, err
		}
		if bytes <= l.bytes {
			break // each later one leaves less
		}
	}
	if found == 0 {
		return 0, nil
	}
	return points[found].Offset, nil
}
