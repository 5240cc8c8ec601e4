package query

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"
)

// GapsHour is one line of the summary of gaps: the losses of one cause in one hour, over all sources asked for.
type GapsHour struct {
	// Hour is when it begins, in publisher time of the message that showed the loss, or, where that had none, of the one before
	// it; left out where neither had one.
	Hour  *Time  `json:"hour,omitempty"`
	Cause string `json:"cause"`
	// Losses is their number.
	Losses uint64 `json:"losses"`
	// MissingSeqs is the sum over the losses that know it.
	MissingSeqs uint64 `json:"missing_seqs"`
	// LostEventsMin and LostEventsMax are sums over the losses that know a number, and left out where none does. NotKnown is how
	// many losses do not.
	LostEventsMin *uint64 `json:"lost_events_min,omitempty"`
	LostEventsMax *uint64 `json:"lost_events_max,omitempty"`
	NotKnown      uint64  `json:"losses_of_unknown_size"`
	// ObjectsInDoubt is how often an object was put in doubt that was not before; left out where that was not asked for.
	ObjectsInDoubt *uint64 `json:"objects_in_doubt,omitempty"`
}

// summaryLines is how many lines a summary has at most; where publishers' clocks make more, the losses of a cause in all further hours
// share a line without an hour.
const summaryLines = 1 << 16

// GapsSummary calls f for each cause and hour, in the order of hours.
func (e *Engine) GapsSummary(ctx context.Context, q *GapsQuery, progress Progress, f func(*GapsHour) error) error {
	type key struct {
		dated bool
		hour  int64 // Unix ms
		cause string
	}
	lines := map[key]*GapsHour{}
	err := e.Gaps(ctx, q, progress, func(g *GapOut) error {
		k := key{cause: g.Cause}
		when := cmp.Or(g.TimeAfter, g.TimeBefore)
		if when != nil {
			k.dated, k.hour = true, when.UTC().Truncate(time.Hour).UnixMilli()
		}
		h := lines[k]
		if h == nil && len(lines) >= summaryLines {
			k = key{cause: g.Cause}
			h = lines[k]
		}
		if h == nil {
			h = &GapsHour{Cause: g.Cause}
			if k.dated {
				h.Hour = msTime(k.hour)
			}
			lines[k] = h
		}
		h.add(g)
		return nil
	})
	if err != nil {
		return err
	}
	order := slices.SortedFunc(maps.Keys(lines), func(a, b key) int {
		if a.dated != b.dated {
			if a.dated {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.hour, b.hour), cmp.Compare(a.cause, b.cause))
	})
	for _, k := range order {
		if err := f(lines[k]); err != nil {
			return err
		}
	}
	return nil
}

func (h *GapsHour) add(g *GapOut) {
	sum := func(to **uint64, n uint64) {
		if *to == nil {
			*to = new(uint64)
		}
		if **to += n; **to < n {
			**to = math.MaxUint64
		}
	}
	h.Losses++
	if g.MissingSeqs != nil {
		missing := &h.MissingSeqs
		sum(&missing, *g.MissingSeqs)
	}
	switch {
	case g.LostEvents != nil:
		sum(&h.LostEventsMin, *g.LostEvents)
		sum(&h.LostEventsMax, *g.LostEvents)
	case g.LostEventsMin != nil:
		sum(&h.LostEventsMin, *g.LostEventsMin)
		sum(&h.LostEventsMax, *g.LostEventsMax)
	default:
		h.NotKnown++
	}
	if g.InDoubt != nil {
		sum(&h.ObjectsInDoubt, g.InDoubt.Objects)
	}
}
