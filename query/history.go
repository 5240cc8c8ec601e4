package query

import (
	"context"
	"errors"
	"math"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// HistoryAsk asks for all that touched one object. An empty Source and a nil Backend stand for whichever fits, an empty Tenant for
// "default".
type HistoryAsk struct {
	Name
	Span Span
	// Limit is how many lines of each object at most, 0: all. Where Span has a From, they are the first from there, else the
	// newest.
	Limit uint64
	// Raw adds the original events, decoded.
	Raw bool
	// Notes adds lines for people: a HistoryNote before and behind those of each object.
	Notes bool
}

// HistoryNote is a line for people between those of a history.
type HistoryNote struct {
	Name
	// Kind is NoteObject before an object's lines, NoteRest behind them, NoteNever where no event ever named the object.
	Kind string
	// First and Last are the object's first and newest events; of NoteObject.
	First, Last *EvidenceOut
	// Older and Newer are offsets of the next lines that the limit left out, 0: none; of NoteRest.
	Older, Newer uint64
	// Elsewhere are scopes in which the key was seen, a few at most; of NoteNever.
	Elsewhere []Name
}

// Kinds of notes.
const (
	NoteObject = "object"
	NoteRest   = "rest"
	NoteNever  = "never"
)

// History calls f with what touched an object, a *HistoryLine each, in the order of positions: its own events, the `cleared` of its
// scope, the marks of its source, and what readings of the master said of it, from its first own event or correction on. Where several sources or backends have it, one follows the
// other. An object that no event ever named has no lines. A line is valid until f returns.
//
// What is read and kept grows with the lines that are shown, not with the object's events.
func (e *Engine) History(ctx context.Context, ask *HistoryAsk, progress Progress, f func(any) error) error {
	sources, err := e.sources(ask.Source)
	if err != nil {
		return err
	}
	if len(ask.Key) == 0 {
		return usagef("an object key must not be empty")
	}
	stretches, err := e.stretches(sources, ask.Span, e.Journal.Durable())
	if err != nil {
		return err
	}
	need := uint64(0)
	for i := range stretches {
		if k := ask.Span.To.Kind; k != Latest && k != Now {
			need = max(need, stretches[i].to.Offset)
		}
	}
	v, err := e.viewAt(ctx, need)
	if err != nil {
		return err
	}
	defer v.Close()
	if err := e.knownFrom(v, stretches); err != nil {
		return err
	}
	if ask.Limit == 0 {
		v.Scans()
	}
	seen := false
	for i := range stretches {
		s := &stretches[i]
		err := e.historiesOf(v, s.Source, &ask.Name, func(p *historyOf) error {
			seen = true
			return p.tell(ctx, s, ask, progress, f)
		})
		if err != nil {
			return err
		}
	}
	if seen || !ask.Notes {
		return nil
	}
	n := &HistoryNote{Kind: NoteNever, Name: ask.Name}
	n.Tenant = tenantOf(&ask.Name)
	if n.Elsewhere, err = elsewhere(ctx, v, sources, ask.Key); err != nil {
		return err
	}
	return f(n)
}

func tenantOf(n *Name) Bytes {
	if len(n.Tenant) == 0 {
		return Bytes(defaultTenant)
	}
	return n.Tenant
}

// historyOf is an object that some event named.
type historyOf struct {
	view   *index.View
	source journal.Source
	name   Name
	object index.Object
	// first is the object's first own event.
	first index.Event
	// marksAfter: marks whose first record lies at or before that offset did not historyTouch the object.
	marksAfter uint64
	blocks     *blockCache
	flagged    map[uint64]bool // epochs (R11)
}

// historiesOf calls f with each object of a source that name fits and that was seen, backend by backend.
func (e *Engine) historiesOf(v *index.View, s journal.Source, name *Name, f func(*historyOf) error) error {
	tenant := tenantOf(name)
	backends := [][]byte{name.Backend}
	if name.Backend == nil {
		var err error
		if backends, err = v.Backends(s.ID, tenant); err != nil {
			return err
		}
	}
	blocks := &blockCache{j: e.Journal}
	for _, b := range backends {
		if b == nil {
			b = []byte{}
		}
		p := &historyOf{view: v, source: s, blocks: blocks, name: Name{s.Name, b, tenant, name.Key}}
		p.object = index.Object{Source: s.ID, Backend: b, Tenant: tenant, Key: name.Key}
		ok, err := p.begin()
		if err == nil && ok {
			err = f(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin finds the object's first event; false where there is none.
func (p *historyOf) begin() (bool, error) {
	first, err := p.one(index.Position{}, p.end(), false)
	if err != nil || first == nil {
		return false, err
	}
	p.first, p.marksAfter = *first, first.Position.Offset
	// A mark that began earlier, or at the event's batch, counts if the event does not lie behind it.
	m, ok, err := p.view.Mark(p.source.ID, first.Position.Offset)
	if ok && !m.End.Before(first.Position) {
		p.marksAfter = m.From - 1
	}
	if err == nil {
		p.flagged, err = p.view.Flagged(p.source.ID)
	}
	return err == nil, err
}

// end is the position behind all that is indexed.
func (p *historyOf) end() index.Position { return index.Behind(p.view.Applied()) }

// one returns the object's first or, with back, newest own event behind from, up to to; nil: none.
func (p *historyOf) one(from, to index.Position, back bool) (*index.Event, error) {
	h, err := p.view.Events(&p.object, from, to, back)
	if err != nil {
		return nil, err
	}
	var out *index.Event
	ev, err := h.Next()
	if ev != nil {
		out = &index.Event{}
		*out = *ev
	}
	return out, errors.Join(err, h.Close())
}

// tell calls f with the lines of a stretch.
func (p *historyOf) tell(ctx context.Context, s *stretch, ask *HistoryAsk, progress Progress, f func(any) error) error {
	b := p.bounds(s.from, s.to)
	rest := &HistoryNote{Kind: NoteRest, Name: p.name}
	if ask.Notes {
		n := &HistoryNote{Kind: NoteObject, Name: p.name, First: evidenceOut(&p.first.Evidence, eventCause(&p.first.Evidence))}
		last, err := p.one(index.Position{}, p.end(), true)
		if err != nil {
			return err
		}
		n.Last = evidenceOut(&last.Evidence, eventCause(&last.Evidence))
		if err := f(n); err != nil {
			return err
		}
	}
	if ask.Limit > 0 && ask.Span.From.Kind == Latest {
		var err error
		if b, rest.Older, err = p.newest(ctx, b, ask.Limit); err != nil {
			return err
		}
	}
	if err := p.lines(ctx, b, ask, rest, progress, f); err != nil {
		return err
	}
	if ask.Notes {
		return f(rest)
	}
	return nil
}

// newest moves the lower bound so that n are left; older is the offset of the newest that is not, 0: none.
func (p *historyOf) newest(ctx context.Context, b historyBounds, n uint64) (left historyBounds, older uint64, err error) {
	w, err := p.walk(b, true)
	if err != nil {
		return b, 0, err
	}
	defer w.close()
	var last index.Position
	for i := uint64(0); ; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return b, 0, ctx.Err()
		}
		o, err := w.next()
		if err != nil {
			return b, 0, err
		}
		if o == nil {
			return left.or(b), 0, nil
		}
		if i == n {
			older = o.at.Offset
			for ; o != nil && o.at == last; left.skip++ {
				if o, err = w.next(); err != nil {
					return b, 0, err
				}
			}
			return left, older, nil
		}
		left, last = b.from(o.at), o.at
	}
}

// lines calls f with each line between the bounds.
func (p *historyOf) lines(ctx context.Context, b historyBounds, ask *HistoryAsk, rest *HistoryNote, progress Progress, f func(any) error) error {
	w, err := p.walk(b, false)
	if err != nil {
		return err
	}
	defer w.close()
	at, err := w.next()
	if err != nil || at == nil {
		return err
	}
	st, err := p.stateAt(justBefore(at.at), at.at.Offset)
	if err != nil {
		return err
	}
	at.silent = nil // they are in it
	out := newHistoryLiner(p, ask.Raw)
	for n, skip := uint64(0), b.skip; at != nil; n++ {
		if n%1024 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			progress.tell(at.at.Offset, b.to.Offset)
		}
		if ask.Limit > 0 && n == ask.Limit {
			rest.Newer = at.at.Offset
			return nil
		}
		now := *at
		if at, err = w.next(); err != nil {
			return err
		}
		if err := st.apply(&now); err != nil {
			return err
		}
		if skip > 0 {
			skip, n = skip-1, n-1
			continue
		}
		// What the batch still holds about the object belongs to the same moment.
		within := at != nil && at.at.Offset == now.at.Offset && now.mark == nil && !now.read()
		line, err := out.make(&now, st, within)
		if err != nil {
			return err
		}
		if err := f(line); err != nil {
			return err
		}
	}
	progress.tell(b.to.Offset, b.to.Offset)
	return nil
}

const (
	// maxElsewhere is how many scopes are named in which else a key was seen, maxScopesTried in how many it is looked for.
	maxElsewhere   = 5
	maxScopesTried = 10_000
)

// elsewhere looks for a key in other scopes.
func elsewhere(ctx context.Context, v *index.View, sources []journal.Source, key Bytes) ([]Name, error) {
	var out []Name
	tried := 0
	for _, s := range sources {
		err := v.Scopes(s.ID, func(sc index.Scope) error {
			if tried++; tried > maxScopesTried || len(out) == maxElsewhere {
				return errEnough
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			media, err := v.Media(nil, &index.Object{Source: s.ID, Backend: sc.Backend, Tenant: sc.Tenant, Key: key}, index.Behind(math.MaxInt64))
			if err != nil {
				return err
			}
			for i := range media {
				if media[i].Has {
					out = append(out, Name{s.Name, sc.Backend, sc.Tenant, key})
					break
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
	}
	return out, nil
}
