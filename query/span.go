package query

import (
	"errors"
	"math"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// Progress is told how far long work is; nil where nobody looks.
type Progress func(done, total uint64)

func (p Progress) tell(done, total uint64) {
	if p != nil {
		p(done, total)
	}
}

// Span is a stretch of time: from a moment, which belongs to it, to a moment, which belongs to it too. The zero of From is the
// beginning of what is recorded (of a pruned journal, its horizon), that of To its end.
type Span struct{ From, To When }

// stretch is a Span in the stream of one source: what lies behind from, up to to.
type stretch struct {
	journal.Source
	from, to index.Position
}

// empty reports whether nothing can lie in it.
func (s *stretch) empty() bool { return !s.from.Before(s.to) }

// stretches places a span in each source's stream, of which all up to end is durable: there it ends where the span has no other end.
func (e *Engine) stretches(sources []journal.Source, span Span, end uint64) ([]stretch, error) {
	if err := oneSource(sources, span.From, span.To); err != nil {
		return nil, err
	}
	out := make([]stretch, len(sources))
	for i, s := range sources {
		out[i] = stretch{Source: s, to: index.Behind(end)}
		var err error
		if out[i].from, err = e.begin(s, span.From, end); err != nil {
			return nil, err
		}
		if span.To.Kind == Latest || span.To.Kind == Now {
			continue
		}
		m, _, err := e.place(&s, span.To)
		if err != nil {
			return nil, err
		}
		out[i].to = m.at
	}
	return out, nil
}

// begin is the position directly before the first record that belongs to a span.
func (e *Engine) begin(s journal.Source, w When, end uint64) (index.Position, error) {
	switch w.Kind {
	case Latest:
		return e.first(), nil
	case Now:
		return index.Behind(end), nil
	case AtTime:
		if w.Ms == math.MinInt64 {
			return e.first(), nil
		}
		t, err := e.Journal.At(s.ID, w.Ms-1)
		if err != nil {
			return index.Position{}, err
		}
		if t.Next.Offset == 0 {
			return index.Behind(end), nil
		}
		return index.Behind(t.Next.Offset - 1), nil
	}
	m, _, err := e.place(&s, w)
	if err != nil {
		return index.Position{}, err
	}
	return index.Behind(max(m.at.Offset-1, e.Journal.Horizon().Offset)), nil
}

// first is the position directly before the first record: what was pruned lies before it.
func (e *Engine) first() index.Position {
	if h := e.Journal.Horizon().Offset; h > 0 {
		return index.Behind(h)
	}
	return index.Position{}
}

// oneSource refuses a moment by sequence number where several sources could be meant.
func oneSource(sources []journal.Source, moments ...When) error {
	for _, w := range moments {
		if w.Kind == AtSeq && len(sources) > 1 {
			return usagef("seq:%d/%d: there are several sources, and each has its own numbers; name one with --source", w.Epoch, w.Seq)
		}
	}
	return nil
}

// Where selects scopes.
type Where struct {
	// Source by name; empty: all.
	Source string
	// Backend and Tenant; nil: all.
	Backend, Tenant Bytes
}

// scopes calls f with each scope of a source that is selected.
func (w *Where) scopes(v *index.View, source uint32, f func(*index.Scope) error) error {
	return v.Scopes(source, func(s index.Scope) error {
		if w.Backend != nil && string(w.Backend) != string(s.Backend) || w.Tenant != nil && string(w.Tenant) != string(s.Tenant) {
			return nil
		}
		return f(&s)
	})
}

// errEnough ends a reading early.
var errEnough = errors.New("enough")
