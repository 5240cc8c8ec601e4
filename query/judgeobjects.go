package query

import (
	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/reconcile"
)

// JudgeObjects is the reconcile.Judge of the engine: what lookup would say about the position, object by object.
func (e *Engine) JudgeObjects(v *index.View, scope *index.Scope, at index.Position) (func([]reconcile.Medium, *index.Walk) ([]reconcile.Medium, error), error) {
	m, err := e.momentAt(v, scope.Source, at)
	if err != nil {
		return nil, err
	}
	s, err := newScopeAt(v, scope, "", m)
	if err != nil {
		return nil, err
	}
	var o standing
	return func(dst []reconcile.Medium, w *index.Walk) ([]reconcile.Medium, error) {
		if err := o.read(w, s, false); err != nil || !o.seen {
			return dst, err
		}
		for i := range o.media {
			md := &o.media[i]
			dst = append(dst, reconcile.Medium{Name: md.name, Present: md.present, Sure: md.confirmed()})
		}
		return dst, nil
	}, nil
}

// momentAt is a position of a source as a moment, in a view that holds all up to there.
func (e *Engine) momentAt(v *index.View, source uint32, at index.Position) (*moment, error) {
	m := &moment{source: source, at: at}
	last, err := e.lastBatch(source, at.Offset)
	if err != nil {
		return nil, err
	}
	m.behind(last)
	if err := m.readDoubts(v); err != nil {
		return nil, err
	}
	m.leaveWindow()
	return m, nil
}
