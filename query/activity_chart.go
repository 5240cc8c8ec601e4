package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

const (
	// topTenants and topMedia are how many are named in an answer.
	topTenants, topMedia = 10, 16
	// maxShares bounds the pairs of bucket and tenant, or medium, that are counted, about 40 bytes each, and maxNameBytes the bytes of
	// the names: beyond either the least busy names so far become others, and new ones are others from then on.
	maxShares, maxNameBytes = 1 << 20, 32 << 20
)

// chart counts by buckets. Buckets are made as times are met, because clocks go back; their width may grow if it was chosen by us.
type chart struct {
	width  int64 // ms
	given  bool  // the width was asked for
	low    int64 // number of the first bucket and, high, of the last; low > high: none yet
	high   int64
	at     map[int64]*bucket
	last   *bucket // the one used last, number lastAt
	lastAt int64

	tenants, media names
	maxShares      int
}

// bucket holds the counts of one. tenants and media are by number of the name; 0 is others.
type bucket struct {
	messages, duplicates, events uint64
	types                        [3]uint64
	tenants, media               map[uint32]uint64
	gaps                         map[lossKey]*ActivityGap
}

type lossKey struct {
	source string
	cause  continuity.Cause
}

func newChart(width time.Duration, from, to int64) (*chart, error) {
	c := &chart{given: width > 0, low: 1, high: 0, at: map[int64]*bucket{}, maxShares: maxShares}
	if c.given {
		c.width = width.Milliseconds()
		if c.width <= 0 || time.Duration(c.width)*time.Millisecond != width {
			return nil, usagef("--bucket %v: a whole number of milliseconds", width)
		}
	} else {
		c.width = niceWidth(from, to, 1)
	}
	for _, ms := range []int64{from, to} {
		if err := c.reach(floor(ms, c.width)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// reach makes the answer reach to bucket n.
func (c *chart) reach(n int64) error {
	if c.low > c.high {
		c.low, c.high = n, n
	}
	c.low, c.high = min(c.low, n), max(c.high, n)
	if c.given && c.high-c.low >= maxBuckets {
		from, to := c.low*c.width, (c.high+1)*c.width-1
		return usagef("--bucket %v makes more than %d buckets of %v to %v; use --bucket %v or more, or a shorter span", time.Duration(c.width)*time.Millisecond,
			maxBuckets, msTime(from), msTime(to), time.Duration(niceWidth(from, to, 1))*time.Millisecond)
	}
	return nil
}

// bucket returns the one that a time lies in.
func (c *chart) bucket(ms int64) (*bucket, error) {
	n := floor(ms, c.width)
	if c.last != nil && n == c.lastAt {
		return c.last, nil
	}
	if err := c.reach(n); err != nil {
		return nil, err
	}
	if !c.given && c.high-c.low >= 2*wantBuckets {
		c.coarsen()
		n = floor(ms, c.width)
	}
	b := c.at[n]
	if b == nil {
		b = &bucket{tenants: map[uint32]uint64{}, media: map[uint32]uint64{}}
		c.at[n] = b
	}
	c.last, c.lastAt = b, n
	return b, nil
}

// coarsen makes buckets wider, so that a clock that went far back does not make thousands.
func (c *chart) coarsen() {
	old := c.width
	from, to := c.low*old, (c.high+1)*old-1
	c.width = niceWidth(from, to, old)
	c.low, c.high, c.last = floor(from, c.width), floor(to, c.width), nil
	at := map[int64]*bucket{}
	for n, b := range c.at {
		n = floor(n*old, c.width)
		if at[n] == nil {
			at[n] = b
		} else {
			at[n].add(b)
		}
	}
	c.at = at
}

func (b *bucket) add(o *bucket) {
	b.messages, b.duplicates, b.events = b.messages+o.messages, b.duplicates+o.duplicates, b.events+o.events
	for i := range b.types {
		b.types[i] += o.types[i]
	}
	for n, v := range o.tenants {
		b.tenants[n] += v
	}
	for n, v := range o.media {
		b.media[n] += v
	}
	for k, g := range o.gaps {
		b.gap(k, g)
	}
}

// count adds an event.
func (c *chart) count(b *bucket, ev *event.Event) {
	b.events++
	b.types[ev.Type-event.Stored]++
	c.share(&c.tenants, b.tenants, ev.Tenant)
	if ev.Type != event.Cleared {
		c.share(&c.media, b.media, ev.Medium)
	}
}

func (c *chart) share(of *names, shares map[uint32]uint64, name []byte) {
	n := of.number(name)
	of.totals[n]++
	before := len(shares)
	shares[n]++
	if len(shares) == before {
		return
	}
	if of.shares++; of.shares > c.maxShares || of.bytes > maxNameBytes {
		c.fold(of, topTenants*4)
	}
}

// fold keeps the busiest names so far, and makes all others others.
func (c *chart) fold(of *names, keep int) {
	others := of.fold(keep)
	of.shares, of.bytes = 0, 0
	for _, b := range c.at {
		shares := b.tenants
		if of == &c.media {
			shares = b.media
		}
		for n, v := range shares {
			if n != 0 && others[n] {
				delete(shares, n)
				shares[0] += v
			}
		}
		of.shares += len(shares)
	}
}

// names numbers names, from 1 on; 0 is others. The zero value is ready.
type names struct {
	numbers map[string]uint32
	text    []string // by number
	totals  []uint64
	shares  int
	bytes   int  // of the names
	closed  bool // no new ones
	last    uint32
}

func (n *names) number(name []byte) uint32 {
	if n.numbers == nil {
		n.numbers, n.text, n.totals = map[string]uint32{}, []string{""}, []uint64{0}
	}
	if n.last != 0 && n.text[n.last] == string(name) {
		return n.last
	}
	i, ok := n.numbers[string(name)]
	if !ok {
		if n.closed {
			return 0
		}
		i = uint32(len(n.text))
		n.numbers[string(name)] = i
		n.bytes += len(name)
		n.text, n.totals = append(n.text, string(name)), append(n.totals, 0)
	}
	n.last = i
	return i
}

// busiest returns the numbers of the names with most events, at most keep.
func (n *names) busiest(keep int) []uint32 {
	var all []uint32
	for i := 1; i < len(n.text); i++ {
		if n.totals[i] > 0 {
			all = append(all, uint32(i))
		}
	}
	slices.SortFunc(all, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(n.totals[b], n.totals[a]), cmp.Compare(n.text[a], n.text[b]))
	})
	return all[:min(keep, len(all))]
}

// fold forgets all but the busiest and takes no new ones; it returns which numbers are others now.
func (n *names) fold(keep int) []bool {
	others := make([]bool, len(n.text))
	for i := range others {
		others[i] = true
	}
	for _, i := range n.busiest(keep) {
		others[i] = false
	}
	for i := 1; i < len(n.text); i++ {
		if others[i] {
			delete(n.numbers, n.text[i])
			n.totals[0] += n.totals[i]
			n.totals[i], n.text[i] = 0, ""
		}
	}
	n.closed, n.last = true, 0
	return others
}

// losses adds what a record shows: what is missing before it, and its own damage.
func (c *chart) losses(b *bucket, r *record) {
	add := func(g *GapOut, cause continuity.Cause) {
		one := ActivityGap{Source: r.Source, Cause: g.Cause, Count: 1, MissingSeqs: g.MissingSeqs, LostEventsMin: g.LostEventsMin, LostEventsMax: g.LostEventsMax,
			FirstOffset: r.Offset, LastOffset: r.Offset}
		if g.LostEvents != nil {
			one.LostEventsMin, one.LostEventsMax = g.LostEvents, g.LostEvents
		}
		b.gap(lossKey{r.Source, cause}, &one)
	}
	if r.Gap.Cause != continuity.CauseNone {
		g := gapOfRecord(r.Header, r.Offset)
		add(gapOut(r.Source, &g), g.Cause)
	}
	if r.Damage != event.None && r.Kind == journal.Message {
		add(gapOut(r.Source, &index.Gap{Cause: continuity.Damaged, Epoch: r.Epoch}), continuity.Damaged)
	}
}

func (b *bucket) gap(k lossKey, g *ActivityGap) {
	have := b.gaps[k]
	if have == nil {
		if b.gaps == nil {
			b.gaps = map[lossKey]*ActivityGap{}
		}
		one := *g
		b.gaps[k] = &one
		return
	}
	sum := func(x, y *uint64) *uint64 {
		if x == nil || y == nil {
			return nil
		}
		v := *x + *y
		if v < *x {
			v = ^uint64(0) // a hostile publisher may send any numbers
		}
		return &v
	}
	have.Count += g.Count
	have.MissingSeqs = sum(have.MissingSeqs, g.MissingSeqs)
	have.LostEventsMin, have.LostEventsMax = sum(have.LostEventsMin, g.LostEventsMin), sum(have.LostEventsMax, g.LostEventsMax)
	have.FirstOffset, have.LastOffset = min(have.FirstOffset, g.FirstOffset), max(have.LastOffset, g.LastOffset)
}

// tell calls f with each bucket.
func (c *chart) tell(ctx context.Context, f func(*ActivityBucket) error) error {
	tenants, media := c.tenants.busiest(topTenants), c.media.busiest(topMedia)
	type named struct{ text, base64 *string }
	tenantNames := make([]named, len(tenants))
	for i, n := range tenants {
		b := Bytes(c.tenants.text[n])
		tenantNames[i] = named{b.text(), b.base64()}
	}
	empty := &bucket{}
	for n := c.low; n <= c.high; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := c.at[n]
		if b == nil {
			b = empty
		}
		out := ActivityBucket{
			Begin: *msTime(n * c.width), End: *msTime((n + 1) * c.width), Messages: b.messages, Events: b.events, Duplicates: b.duplicates,
			ByMedium: map[string]uint64{}, ByTenant: []TenantActivity{}, Gaps: []ActivityGap{},
		}
		out.ByType.Stored, out.ByType.Removed, out.ByType.Cleared = b.types[0], b.types[1], b.types[2]
		out.OtherTenants, out.OtherMedia = b.events, b.events-b.types[2]
		for i, t := range tenants {
			if v := b.tenants[t]; v > 0 {
				out.ByTenant = append(out.ByTenant, TenantActivity{tenantNames[i].text, tenantNames[i].base64, v})
				out.OtherTenants -= v
			}
		}
		for _, m := range media {
			if v := b.media[m]; v > 0 {
				out.ByMedium[c.media.text[m]] = v
				out.OtherMedia -= v
			}
		}
		for _, k := range slices.SortedFunc(maps.Keys(b.gaps), func(x, y lossKey) int { return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.cause, y.cause)) }) {
			out.Gaps = append(out.Gaps, *b.gaps[k])
		}
		if err := f(&out); err != nil {
			return err
		}
	}
	return nil
}
