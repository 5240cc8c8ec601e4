package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// DiffQuestion asks what objects were gained and lost between two moments.
type DiffQuestion struct {
	Where
	From, To When
	// Prefix begins the keys; empty: all keys.
	Prefix Bytes
	// Medium is the one looked at; empty: all, each for itself.
	Medium string
	// Group is the group_id of the newest event that had one, by To; nil: any or none.
	Group Bytes
	// Limit is how many changes are given at most; 0: all.
	Limit uint64
	// NoSummary: the summary is not wanted, so that the reading ends with the limit.
	NoSummary bool
}

// diffChunk is how many touched objects are collected before they are looked up, sorted.
const diffChunk = 500_000

// Diff calls f with each change between two moments: an object that was present on a medium at one and not at the other, by its
// last known state. Changes of up to half a million touched objects come sorted by source, backend, tenant and key; then the next
// ones. What f gets is valid until it returns; nil: only the summary is wanted.
//
// It reads the journal's records between the moments, and looks up the objects that their events are about, and those that a reading
// which began between them corrected: its cost grows with what lies between, not with the history. Only a `cleared` costs all objects of its scope, since it names none of them.
func (e *Engine) Diff(ctx context.Context, q DiffQuestion, progress Progress, f func(*ChangeLine) error) (*DiffSummary, error) {
	return e.diff(ctx, q, diffChunk, progress, f)
}

func (e *Engine) diff(ctx context.Context, q DiffQuestion, chunk int, progress Progress, f func(*ChangeLine) error) (*DiffSummary, error) {
	d := &differ{e: e, q: &q, f: f, chunk: chunk, sources: map[uint32]int{}}
	if err := d.open(ctx, e); err != nil {
		return nil, err
	}
	defer d.view.Close()
	d.sum.begin(d)
	t := newTouched(d)
	last := d.low
	err := e.eachRecord(ctx, d.stretches(), progress, func(r *record) error {
		last = r.Offset
		if err := t.record(ctx, r); err != nil || !t.full() {
			return err
		}
		return d.look(ctx, t, index.Behind(last))
	})
	if err == nil && !d.enough {
		err = d.look(ctx, t, index.Behind(d.high))
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	d.sum.finish()
	return &d.sum.DiffSummary, nil
}

// differ is a comparison under way.
type differ struct {
	e     *Engine
	q     *DiffQuestion
	f     func(*ChangeLine) error
	chunk int

	view      *index.View
	all       []journal.Source
	sources   map[uint32]int // place in all, a and b
	a, b      []moment
	low, high uint64 // offsets: what is read lies behind low, up to high

	// looked: the objects touched at or before it are done with.
	looked index.Position
	given  uint64
	enough bool
	sum    summing
}

// open places both moments and opens a view in which both are indexed.
func (d *differ) open(ctx context.Context, e *Engine) error {
	if d.q.From.Kind == Latest {
		return usagef("diff compares two moments: name the first with --from, as in --from -10m, and the second with --to")
	}
	a, err := e.choose(ctx, d.q.Source, d.q.From)
	if err != nil {
		return err
	}
	// A goroutine must not have two views open. What lies at a position is looked up in the later one for both moments.
	if err := a.view.Close(); err != nil {
		return err
	}
	b, err := e.choose(ctx, d.q.Source, d.q.To)
	if err != nil {
		return err
	}
	d.view, d.all, d.a, d.b = b.view, b.sources, a.moments, b.moments
	for i := range min(len(d.a), len(d.b)) {
		d.a[i].flagged, d.a[i].forgotten = d.b[i].flagged, d.b[i].forgotten // of one view
		if err := e.known(d.view, d.a[i].source, d.a[i].at); err != nil {
			d.view.Close()
			return err
		}
	}
	for i, s := range d.all {
		if i >= len(d.a) || d.a[i].source != s.ID {
			d.view.Close()
			return usagef("a source was added meanwhile; ask again")
		}
		d.sources[s.ID] = i
		from, to := d.a[i].at, d.b[i].at
		if to.Before(from) {
			d.view.Close()
			return usagef("--from lies behind --to: in source %q it is offset %d, and --to is offset %d; exchange them", s.Name, from.Offset, to.Offset)
		}
	}
	d.low, d.high = offsetsOf(d.stretches())
	return nil
}

func (d *differ) stretches() []stretch {
	out := make([]stretch, len(d.all))
	for i, s := range d.all {
		out[i] = stretch{Source: s, from: d.a[i].at, to: d.b[i].at}
	}
	return out
}

// selects reports whether a scope is asked for.
func (d *differ) selects(backend, tenant []byte) bool {
	return (d.q.Backend == nil || bytes.Equal(d.q.Backend, backend)) && (d.q.Tenant == nil || bytes.Equal(d.q.Tenant, tenant))
}

// scopePair is a scope at both moments.
type scopePair struct {
	index.Scope
	a, b *scopeAt
	id   []byte                // tells scopes apart
	name []byte                // its fields as JSON, each followed by a comma
	text [2][cutOff + 1][]byte // doubts as JSON
}

func (d *differ) pair(s *index.Scope) (*scopePair, error) {
	i := d.sources[s.Source]
	p := &scopePair{Scope: *s}
	var err error
	if p.a, err = newScopeAt(d.view, s, d.all[i].Name, &d.a[i]); err != nil {
		return nil, err
	}
	p.b, err = newScopeAt(d.view, s, d.all[i].Name, &d.b[i])
	return p, err
}

// firstClear is the position of the first clear of a scope between the moments.
func (d *differ) firstClear(p *scopePair) (first index.Position, err error) {
	if c := &p.b.clears; !c.hasNewest || !p.a.moment.at.Before(c.newest.Position) {
		return first, nil
	}
	err = d.view.Clears(&p.Scope, p.a.moment.at, p.b.moment.at, func(c *index.Clear) error {
		first = c.Position
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return first, err
}

// look finds the changes of the objects touched behind d.looked, up to the position, and forgets them.
func (d *differ) look(ctx context.Context, t *touched, to index.Position) error {
	t.compact()
	err := d.inOrder(ctx, func(give func(*lookTask) error) error {
		for _, s := range t.byScope() {
			pair, err := d.pair(&s.Scope)
			if err != nil {
				return err
			}
			first, err := d.firstClear(pair)
			if err != nil {
				return err
			}
			switch {
			case first == index.Position{}:
				err = giveKeys(pair, s.keys, give)
			case d.looked.Before(first) && !to.Before(first):
				err = d.giveScope(pair, give)
			default: // the part that holds the clear has the scope's changes
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	d.looked = to
	t.forget()
	return err
}

// takeChange counts and gives one change.
func (d *differ) takeChange(l *ChangeLine) error {
	d.sum.change(l)
	if d.f == nil || d.q.Limit > 0 && d.given >= d.q.Limit {
		return nil
	}
	if err := d.f(l); err != nil {
		return err
	}
	if d.given++; d.given == d.q.Limit && d.q.NoSummary {
		d.enough = true
		return errEnough
	}
	return nil
}

// compareScopes orders scopes as answers do.
func (d *differ) compareScopes(a, b *index.Scope) int {
	if a.Source != b.Source {
		return strings.Compare(d.all[d.sources[a.Source]].Name, d.all[d.sources[b.Source]].Name)
	}
	if c := bytes.Compare(a.Backend, b.Backend); c != 0 {
		return c
	}
	return slices.Compare(a.Tenant, b.Tenant)
}
