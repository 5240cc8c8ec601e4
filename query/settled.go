package query

import (
	"sync"
	"sync/atomic"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// settled is a moment of a source in one state of the index, and what was found of its scopes there. All of it follows from the rows of that
// state, and for a past one from where the moment lies in the journal, so it is kept with the state (index.View.Keep), and every view of the state
// may take it, whoever asks: with the next write there is another state, and nothing of this one is looked at. What depends on anything else
// is made for each question: the age, whether the source is connected, and whether the journal was pruned beyond the moment.
type settled struct {
	moment moment // never changed
	most   int    // scopes

	mu     sync.Mutex
	scopes map[string]settledScope
}

// settledScope is what is known of a scope. Its lists are shared: they are not changed.
type settledScope struct {
	clears   scopeClears
	readings scopeReadings // of no view
}

const (
	// maxLatestScopes, maxPastScopes and maxScopeName bound what is kept of scopes, and their names, in bytes. What is more is read for each
	// question.
	maxLatestScopes = 1024
	maxPastScopes   = 8
	maxScopeName    = 1 << 10
	// maxPast is how many publisher times of a source are kept in each of two generations.
	maxPast = 128
)

// scope is what was kept of a scope, by its name.
func (l *settled) scope(name []byte) (s settledScope, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok = l.scopes[string(name)]
	return s, ok
}

func (l *settled) keep(name []byte, s settledScope) {
	if len(name) > maxScopeName {
		return
	}
	s.readings.view = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scopes == nil {
		l.scopes = map[string]settledScope{}
	}
	if len(l.scopes) < l.most {
		l.scopes[string(name)] = s
	}
}

// settledOf is what is kept of a source in one state of the index: its default moment, and those by publisher time, ms, that were asked about
// more than once. A recorder's states last for milliseconds: there what is asked once is not worth keeping.
type settledOf struct {
	latest atomic.Pointer[settled]

	mu          sync.Mutex // of what follows
	past, older map[int64]*settled
	once        [maxPast]int64 // ms + 1 of what was asked about, each in the place of its remainder
}

// settledIn is what is kept of a source in the view's state.
func settledIn(v *index.View, source uint32) *settledOf {
	if k, ok := v.Kept(source).(*settledOf); ok {
		return k
	}
	k := &settledOf{} // whoever makes one at the same time makes as good a one
	v.Keep(source, k)
	return k
}

// latest returns the default moment of a source, which is shared.
func (e *Engine) latest(v *index.View, s *journal.Source) (*settled, error) {
	k := settledIn(v, s.ID)
	if l := k.latest.Load(); l != nil {
		return l, nil
	}
	l := &settled{moment: placeLatest(v, s), most: maxLatestScopes}
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
		k.latest.Store(l)
	}
	return l, nil
}

// past returns the moment of a publisher time that was kept, if it still lies in the journal where it was found; else nil.
func (e *Engine) past(v *index.View, source uint32, ms int64) *settled {
	k, ok := v.Kept(source).(*settledOf)
	if !ok {
		return nil
	}
	k.mu.Lock()
	l := k.past[ms]
	if l == nil {
		if l = k.older[ms]; l != nil {
			k.put(ms, l)
		}
	}
	k.mu.Unlock()
	if l == nil || !e.Journal.Stands(l.moment.standing) {
		return nil
	}
	return l
}

// keepPast keeps the moment of a publisher time, with its doubts, if it was asked about before and stands where it is.
func (e *Engine) keepPast(v *index.View, m *moment, ms int64) {
	if !e.Journal.Stands(m.standing) {
		return
	}
	k := settledIn(v, m.source)
	k.mu.Lock()
	defer k.mu.Unlock()
	if once := &k.once[uint64(ms)%maxPast]; *once != ms+1 {
		*once = ms + 1
		return
	}
	l := &settled{moment: *m, most: maxPastScopes}
	k.put(ms, l)
	m.from = l
}

func (k *settledOf) put(ms int64, l *settled) {
	if k.past == nil || len(k.past) >= maxPast {
		k.past, k.older = map[int64]*settled{}, k.past
	}
	k.past[ms] = l
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
