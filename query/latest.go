package query

import (
	"sync"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// latest is the default moment of a source in one state of the index, and what was found of its scopes there. All of it follows from the
// rows of that state, so it is kept with the state (index.View.Keep), and every view of the state may take it, whoever asks: with the next write
// there is another state, and nothing of this one is looked at. What depends on anything else is made for each question: the age, whether the
// source is connected, and whether the journal was pruned beyond the moment.
type latest struct {
	moment moment // never changed

	mu     sync.Mutex
	scopes map[string]latestScope
}

// latestScope is what is known of a scope. Its lists are shared: they are not changed.
type latestScope struct {
	clears   scopeClears
	readings scopeReadings // of no view
}

const (
	// maxLatestScopes and maxLatestName bound what is kept of scopes, and their names, in bytes. What is more is read for each question.
	maxLatestScopes = 1024
	maxLatestName   = 1 << 10
)

// scope is what was kept of a scope, by its name.
func (l *latest) scope(name []byte) (s latestScope, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok = l.scopes[string(name)]
	return s, ok
}

func (l *latest) keep(name []byte, s latestScope) {
	if len(name) > maxLatestName {
		return
	}
	s.readings.view = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scopes == nil {
		l.scopes = map[string]latestScope{}
	}
	if len(l.scopes) < maxLatestScopes {
		l.scopes[string(name)] = s
	}
}

// latest returns the default moment of a source, which is shared.
func (e *Engine) latest(v *index.View, s *journal.Source) (*latest, error) {
	if l, ok := v.Kept(s.ID).(*latest); ok {
		return l, nil
	}
	l := &latest{moment: placeLatest(v, s)}
	m, inRows := &l.moment, true
	if m.last.Offset == 0 && m.at.Offset != 0 { // the newest message lies in an open window of R5
		last, err := e.lastBatch(s.ID, m.at.Offset)
		if err != nil {
			return nil, err
		}
		m.last, inRows = placeOf(&last), false
	}
	if err := m.readDoubts(v); err != nil {
		return nil, err
	}
	if inRows {
		v.Keep(s.ID, l)
	}
	return l, nil
}

// placeLatest is the default moment: the source's newest indexed batch or mark; while a window of R5 is open, that before it.
func placeLatest(v *index.View, s *journal.Source) moment {
	st := v.Source(s.ID)
	m := moment{source: s.ID, at: index.Behind(st.AsOf.Offset), asOf: asOfPlace(st.AsOf), epoch: st.Epoch}
	if st.Last.Offset <= st.AsOf.Offset {
		m.last = st.Last
	}
	if !st.Batch {
		m.asOf.Time = nil // a damaged message, a connection's end or a reading, no batch
	}
	if st.AsOf.Offset == 0 {
		m.unproven = &Doubt{Cause: DoubtNoEvidence}
	}
	return m
}
