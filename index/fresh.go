package index

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// fresh keeps the newest state of the index for the views that are opened until the next write has ended. It keeps three promises:
//
//  1. A view that is opened behind a write's end sees it: a state is put in now only if no write was under way from before its snapshot was taken
//     until then, and the end of a write takes it away. While one is under way views share the state from before it, which costs
//     them nothing; a state of their own would be read for each.
//  2. What stands in still is the newest state, whoever looks: it is put there with now, and taken away before the next write begins.
//  3. The number of a state says which kept states are not newer than it: those with the same number or a smaller one.
//
// A write is whatever changes rows of the open database, however many there are at once: begin comes before it, end behind it.
type fresh struct {
	now   atomic.Pointer[state] // written under mu
	still atomic.Pointer[state] // the same, or nil; written under mu

	mu      sync.Mutex
	writers int    // under way
	writes  uint64 // begun
	kept    uint64 // states that were put in now
	sources sourcesAt
	found   remembered // for the states behind the writes that began
}

// sourcesAt is where the sources stood when a write had been applied up to an offset, so that a view need not decode them. It is the
// same as the rows of that offset are.
type sourcesAt struct {
	db      *pebble.DB
	applied uint64
	states  map[uint32]*SourceState // never changed
}

// begin comes before a write that changes these keyspaces. No state is kept from here to end. It returns the number that the next one which is
// will have.
func (f *fresh) begin(changed keyspaces) (next uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers++
	f.writes++
	f.found = f.found.behind(changed)
	f.still.Store(nil)
	return f.kept + 1
}

// end comes behind the write, whether it was made or not.
func (f *fresh) end() {
	f.mu.Lock()
	f.writers--
	f.mu.Unlock()
	f.drop()
}

// tell keeps where the sources stand behind a write.
func (f *fresh) tell(at sourcesAt) {
	f.mu.Lock()
	f.sources = at
	f.mu.Unlock()
}

// open returns the newest state, which the caller releases.
func (f *fresh) open(db *pebble.DB) (*state, error) {
	f.mu.Lock()
	if s := f.now.Load(); s != nil {
		s.refs++
		f.mu.Unlock()
		return s, nil
	}
	f.found = f.found.behind(0)
	writers, writes, kept, sources, found := f.writers, f.writes, f.kept, f.sources, f.found
	f.mu.Unlock()
	s, err := readState(db, &sources)
	if err != nil {
		return nil, err
	}
	s.refs, s.number = 1, kept
	newest := func() bool { return writers == 0 && f.writes == writes } // under f.mu
	f.mu.Lock()
	if !newest() {
		found = remembered{}.behind(0)
	}
	f.mu.Unlock()
	s.remembered = found
	if s.base, err = s.readBase(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if newest() && f.now.Load() == nil {
		f.kept++
		s.refs, s.number = 2, f.kept
		f.now.Store(s)
		f.still.Store(s)
	}
	return s, nil
}

// drop takes the newest state away and closes it as soon as no view uses it.
func (f *fresh) drop() error {
	f.mu.Lock()
	s := f.now.Swap(nil)
	f.still.Store(nil)
	f.mu.Unlock()
	if s == nil {
		return nil
	}
	return f.release(s)
}

func (f *fresh) release(s *state) error {
	f.mu.Lock()
	s.refs--
	unused := s.refs == 0
	f.mu.Unlock()
	if !unused {
		return nil
	}
	return s.close()
}

// state is what views of the index at one moment share. All of it is a function of the rows.
type state struct {
	snap    *pebble.Snapshot
	applied uint64
	base    Base
	sources map[uint32]*SourceState // never changed
	number  uint64                  // see fresh
	refs    int                     // under fresh.mu

	remembered // shared with other states

	mu   sync.Mutex
	idle []*reader      // of views that were closed
	told map[uint32]any // by those who ask (View.Keep)
}

func readState(db *pebble.DB, told *sourcesAt) (*state, error) {
	s := &state{snap: db.NewSnapshot()}
	var err error
	if s.applied, err = readApplied(s.snap); err == nil {
		if told.db == db && told.applied == s.applied {
			s.sources = told.states
		} else {
			s.sources, err = readSources(s.snap)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.snap.Close())
	}
	return s, nil
}

func (s *state) close() error {
	var err error
	for _, r := range s.idle {
		err = errors.Join(err, r.close())
	}
	return errors.Join(err, s.snap.Close())
}

// maxIdle is how many readers a state keeps for the next views.
const maxIdle = 8

// reader are the iterators and buffers of one view.
type reader struct {
	history *pebble.Iterator // over the history
	clears  *pebble.Iterator // over clears and proofs
	key     []byte
	medium  []byte
	past    *objectPast // of the object whose events were read last; nil: of none
	events  []byte
}

func (s *state) reader() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return &reader{}
	}
	r := s.idle[n-1]
	s.idle = s.idle[:n-1]
	return r
}

// giveBack keeps a reader for the next view.
func (s *state) giveBack(r *reader) error {
	if !r.failed() {
		s.mu.Lock()
		if len(s.idle) < maxIdle {
			s.idle = append(s.idle, r)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
	}
	return r.close()
}

func (r *reader) failed() bool {
	return r.history != nil && r.history.Error() != nil || r.clears != nil && r.clears.Error() != nil
}

func (r *reader) close() error {
	var err error
	for _, it := range []*pebble.Iterator{r.history, r.clears} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}
