package query

import (
	"context"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// GapsQuery asks what was lost.
type GapsQuery struct {
	// Source by name; empty: all.
	Source string
	// Span: a loss belongs to it where the record that showed it does.
	Span
	// NoObjects leaves out what the losses put in doubt, which takes a pass over all objects.
	NoObjects bool
}

// GapOut is one line of gaps: one loss. Numbers that are not known are left out.
type GapOut struct {
	Source          string  `json:"source"`
	Epoch           uint64  `json:"epoch"`
	Cause           string  `json:"cause"`
	FirstMissingSeq *uint64 `json:"first_missing_seq,omitempty"`
	LastMissingSeq  *uint64 `json:"last_missing_seq,omitempty"`
	// MissingSeqs is left out where the numbers prove nothing.
	MissingSeqs      *uint64 `json:"missing_seqs,omitempty"`
	LostEvents       *uint64 `json:"lost_events,omitempty"`
	LostEventsMin    *uint64 `json:"lost_events_min,omitempty"`
	LostEventsMax    *uint64 `json:"lost_events_max,omitempty"`
	LastOffsetBefore uint64  `json:"last_offset_before,omitempty"`
	FirstOffsetAfter uint64  `json:"first_offset_after"`
	TimeBefore       *Time   `json:"time_before,omitempty"`
	TimeAfter        *Time   `json:"time_after,omitempty"`
	Received         *Time   `json:"received,omitempty"`
	// Damage says what was wrong with a damaged message.
	Damage string `json:"damage,omitempty"`
	// FirstMissingOffset and LastMissingOffset: the journal itself lost these.
	FirstMissingOffset *uint64 `json:"first_missing_offset,omitempty"`
	LastMissingOffset  *uint64 `json:"last_missing_offset,omitempty"`
	// InDoubt is what it put in doubt; nil where that was not asked for, or was pruned.
	InDoubt *InDoubt `json:"in_doubt,omitempty"`
	// ResolvedBy is the first reading of the master behind it; nil: none, or not looked for.
	ResolvedBy *ResolvedOut `json:"resolved_by,omitempty"`
	// Attribution is what the master's counters say; nil: nothing.
	Attribution *Attribution `json:"attribution,omitempty"`
}

// Gaps calls f for every loss, source by source, in the order of their offsets.
func (e *Engine) Gaps(ctx context.Context, q *GapsQuery, progress Progress, f func(*GapOut) error) error {
	sources, err := e.sources(q.Source)
	if err != nil {
		return err
	}
	pieces, err := e.stretches(sources, q.Span, e.Journal.Durable())
	if err != nil {
		return err
	}
	if q.From.Kind == Latest { // losses stay known when their records are pruned
		for i := range pieces {
			pieces[i].from = index.Position{}
		}
	}
	v, err := e.viewOf(ctx, pieces, q.Span)
	if err != nil {
		return err
	}
	defer v.Close()
	if !q.NoObjects {
		v.Scans()
	}
	for i := range pieces {
		if err := gapsOf(ctx, v, &pieces[i], e.cut(v, pieces[i].ID), e.Credits, q.NoObjects, progress, f); err != nil {
			return err
		}
	}
	return nil
}

// gapsOf calls f for every loss of one source, of which what was so is known from the offset known on.
func gapsOf(ctx context.Context, v *index.View, p *stretch, known uint64, credits *CreditCache, noObjects bool, progress Progress, f func(*GapOut) error) error {
	b := gapBuffer{source: p.Source, known: known}
	resolved := resolver{v: v, source: p.ID}
	attributed := attributor{v: v, source: p.ID, kept: credits}
	flush := func() error {
		if err := b.fill(ctx, v, progress); err != nil {
			return err
		}
		for _, g := range b.lines {
			if err := f(g); err != nil {
				return err
			}
		}
		b.lines, b.first = b.lines[:0], b.first[:0]
		return nil
	}
	last, _, err := v.GapBefore(p.ID, p.from.Offset)
	if err != nil {
		return err
	}
	before := last.Before
	err = v.GapsBetween(p.ID, p.from.Offset, p.to.Offset, func(g *index.Gap) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		first := g.Before != before
		before = g.Before
		if at := index.Behind(g.After); !p.from.Before(at) || p.to.Before(at) {
			return nil
		}
		out := gapOut(p.Name, g)
		var err error
		if out.ResolvedBy, err = resolved.of(g); err != nil {
			return err
		}
		if out.Attribution, err = attributed.of(g); err != nil {
			return err
		}
		if noObjects {
			return f(out)
		}
		b.lines, b.first = append(b.lines, out), append(b.first, first)
		if len(b.lines) < gapsAtOnce {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

func gapOut(source string, g *index.Gap) *GapOut {
	out := &GapOut{
		Source: source, Epoch: g.Epoch, Cause: g.Cause.String(), LastOffsetBefore: g.Before, FirstOffsetAfter: g.After,
		TimeBefore: timeOf(g.TimeBefore), TimeAfter: timeOf(g.TimeAfter), Received: msTime(g.Received),
	}
	known := func(v uint64) *uint64 { return &v }
	switch {
	case g.MissingOffsets:
		out.FirstMissingOffset, out.LastMissingOffset = known(g.First), known(g.Last)
	case g.HasSeq:
		out.FirstMissingSeq, out.LastMissingSeq, out.MissingSeqs = known(g.First), known(g.Last), known(g.Missing)
	case g.Cause == continuity.Damaged || g.Cause == continuity.Reconnect:
		out.MissingSeqs = known(0)
	}
	switch g.Lost {
	case continuity.LostExactly:
		out.LostEvents = known(g.Min)
	case continuity.LostBetween:
		out.LostEventsMin, out.LostEventsMax = known(g.Min), known(g.Max)
	}
	if g.Damage != 0 {
		out.Damage = event.Cause(g.Damage).String()
	}
	return out
}

func timeOf(ms *int64) *Time {
	if ms == nil {
		return nil
	}
	return msTime(*ms)
}
