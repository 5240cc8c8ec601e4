package query

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// ActivityOptions say what Activity counts.
type ActivityOptions struct {
	Where
	Span
	// Medium, empty: any. A `cleared` names none, and so passes.
	Medium string
	// Types of events: stored, removed, cleared. None: all.
	Types []string
	// Bucket is the width of the buckets, a whole number of ms; 0: one that makes about 40 to 60 of the span.
	Bucket time.Duration
}

const (
	// maxBuckets bounds the lines of an answer, and the memory for it.
	maxBuckets = 100_000
	// wantBuckets is the most that the width chosen for a span makes.
	wantBuckets = 60
)

// ActivityBucket is what happened in [Begin, End), by the publishers' clocks.
type ActivityBucket struct {
	Begin Time `json:"begin"`
	End   Time `json:"end"`
	// Messages are those with an event that was counted, or, where all are counted, all that were received.
	Messages   uint64 `json:"messages"`
	Events     uint64 `json:"events"`
	Duplicates uint64 `json:"duplicates,omitempty"`
	ByType     struct {
		Stored  uint64 `json:"stored"`
		Removed uint64 `json:"removed"`
		Cleared uint64 `json:"cleared"`
	} `json:"by_type"`
	// ByMedium counts events by medium, but for `cleared`, which has none. OtherMedia is the sum of the less used ones, where there are
	// very many.
	ByMedium   map[string]uint64 `json:"by_medium"`
	OtherMedia uint64            `json:"other_media,omitempty"`
	// ByTenant has the busiest tenants of the whole span, the busiest first. OtherTenants is the sum of all others.
	ByTenant     []TenantActivity `json:"by_tenant"`
	OtherTenants uint64           `json:"other_tenants,omitempty"`
	// Gaps are the losses that show in the bucket, added up by source and cause.
	Gaps []ActivityGap `json:"gaps"`
}

// TenantActivity is the part of one tenant.
type TenantActivity struct {
	Tenant       *string `json:"tenant_id,omitempty"`
	TenantBase64 *string `json:"tenant_id_base64"`
	Events       uint64  `json:"events"`
}

// ActivityGap are the losses of one source and cause.
type ActivityGap struct {
	Source      string  `json:"source"`
	Cause       string  `json:"cause"`
	Count       uint64  `json:"count"`
	MissingSeqs *uint64 `json:"missing_seqs,omitempty"`
	// LostEventsMin and LostEventsMax are left out where the number is not known of each.
	LostEventsMin *uint64 `json:"lost_events_min,omitempty"`
	LostEventsMax *uint64 `json:"lost_events_max,omitempty"`
	FirstOffset   uint64  `json:"first_offset"`
	LastOffset    uint64  `json:"last_offset"`
}

// Activity counts events over publisher time and calls f with each bucket of the span, empty ones too, in the order of time. A batch
// without a usable time counts at its predecessor's (R8), or, where there is none, at its receive time.
func (e *Engine) Activity(ctx context.Context, o ActivityOptions, progress Progress, f func(*ActivityBucket) error) error {
	w, err := newFilter(&LogOptions{Where: o.Where, Medium: o.Medium})
	if err != nil {
		return err
	}
	if w.types, err = typesOf(o.Types, eventTypes); err != nil {
		return err
	}
	if w.types&^eventTypes != 0 {
		return usagef("activity counts events: --type is stored, removed or cleared")
	}
	sources, err := e.sources(o.Source)
	if err != nil {
		return err
	}
	in, err := e.stretches(sources, o.Span, e.Journal.Durable())
	if err != nil {
		return err
	}
	from, to, ok, err := e.timesOf(ctx, in, &o.Span)
	if err != nil || !ok {
		return err
	}
	c, err := newChart(o.Bucket, from, to)
	if err != nil {
		return err
	}
	all := !w.objects && w.types == eventTypes
	var scan event.Batch
	err = e.eachRecord(ctx, in, progress, func(r *record) error {
		ms := timeOrReceived(r.Header)
		loss := r.Gap.Cause != continuity.CauseNone || r.Damage != event.None
		if r.Kind != journal.Message && !loss {
			return nil
		}
		if !loss && !all && !r.Applies() {
			return nil
		}
		b, err := c.bucket(ms)
		if err != nil {
			return err
		}
		if loss {
			c.losses(b, r)
		}
		if r.Kind != journal.Message {
			return nil
		}
		counted := all
		if all && r.Duplicate {
			b.duplicates++
		}
		if r.Applies() && r.Events > 0 {
			frames, err := r.Frames()
			if err != nil {
				return err
			}
			scan.Scan(frames)
			for i := range scan.Events {
				if ev := &scan.Events[i]; w.wants(ev) {
					c.count(b, ev)
					counted = true
				}
			}
		}
		if counted {
			b.messages++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.tell(ctx, f)
}

// timesOf is where the stretches lie on the publishers' clocks, about: the first and the last time, Unix ms. ok: anything lies in them.
func (e *Engine) timesOf(ctx context.Context, in []stretch, span *Span) (from, to int64, ok bool, err error) {
	for i := range in {
		s := &in[i]
		if s.empty() {
			continue
		}
		first, found, err := e.firstTime(ctx, s, span.From)
		if err != nil {
			return 0, 0, false, err
		}
		if !found {
			continue
		}
		last := first
		r, err := e.lastBatch(s.ID, s.to.Offset)
		if err != nil {
			return 0, 0, false, err
		}
		if r.Offset != 0 {
			last = timeOrReceived(&r.Header)
		}
		first, last = min(first, last), max(first, last)
		if !ok {
			from, to = first, last
		}
		from, to, ok = min(from, first), max(to, last), true
	}
	// Where the span is given as times, all of it is shown, if it is not much more than what is there.
	if ok && span.From.Kind == AtTime && span.From.Ms < from && span.From.Ms > from-(to-from+1) {
		from = span.From.Ms
	}
	if ok && span.To.Kind == AtTime && span.To.Ms > to && span.To.Ms < to+(to-from+1) {
		to = span.To.Ms
	}
	return from, to, ok, nil
}

// firstTime is where the first message of a stretch lies on the publisher's clock, about.
func (e *Engine) firstTime(ctx context.Context, s *stretch, from When) (first int64, found bool, err error) {
	below := int64(minMs)
	if from.Kind == AtTime && from.Ms > minMs {
		below = from.Ms - 1
	}
	m, err := e.Journal.At(s.ID, below) // usually it is there, and nothing must be read to find it
	if pruned := (*PrunedError)(nil); err != nil && !errors.As(err, &pruned) {
		return 0, false, err
	}
	if o := m.Next.Offset; o > s.from.Offset && o <= s.to.Offset && (from.Kind == AtTime || s.from.Offset == 0) {
		return timeOrReceived(&m.Next.Header), true, nil
	}
	err = e.eachRecord(ctx, []stretch{*s}, nil, func(r *record) error {
		if r.Kind != journal.Message {
			return nil
		}
		first, found = timeOrReceived(r.Header), true
		return errEnough
	})
	return first, found, err
}

// timeOrReceived is where a message is counted. Times that cannot be written are counted at the nearest that can.
func timeOrReceived(h *journal.Header) int64 {
	if h.HasTime {
		return showable(h.Time)
	}
	return h.Received / 1e6
}

// niceWidths are those that are chosen, in ms.
var niceWidths = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 2 * 60e3, 5 * 60e3, 10 * 60e3, 15 * 60e3, 30 * 60e3,
	3600e3, 2 * 3600e3, 3 * 3600e3, 6 * 3600e3, 12 * 3600e3, 24 * 3600e3, 2 * 24 * 3600e3, 7 * 24 * 3600e3, 14 * 24 * 3600e3, 28 * 24 * 3600e3, 84 * 24 * 3600e3, 364 * 24 * 3600e3}

// niceWidth is the smallest width, a multiple of least, of which no more than wantBuckets cover from to to.
func niceWidth(from, to, least int64) int64 {
	fits := func(w int64) bool { return floor(to, w)-floor(from, w) < wantBuckets }
	if i := slices.IndexFunc(niceWidths, func(w int64) bool { return w%least == 0 && fits(w) }); i >= 0 {
		return niceWidths[i]
	}
	w := least
	for !fits(w) {
		w *= 2
	}
	return w
}

// floor is the number of the bucket of width w that ms lies in.
func floor(ms, w int64) int64 {
	if ms < 0 && ms%w != 0 {
		return ms/w - 1
	}
	return ms / w
}
