package datadir

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// grantEvery is how often a scheduler looks whether more compactions may run; it also looks whenever one has ended.
const grantEvery = 100 * time.Millisecond

// scheduler lets as many compactions run as the database allows, as Pebble's own does, but none before Open has returned it. Pebble's begins
// in the middle of Open: where an operation behind that fails, it may start a compaction from which Open takes the caches away, which
// panics, and its goroutine stays behind for ever.
//
// It is a grant's handle, too. Its mutex is taken behind the database's own, so that nothing of the database that locks is called with it.
type scheduler struct {
	db   pebble.DBForCompaction // from Register on
	poke chan struct{}          // holds one
	stop chan struct{}          // closed by Unregister
	done sync.WaitGroup

	mu      sync.Mutex
	open    bool // and not closed again
	running int
}

func newScheduler() *scheduler {
	return &scheduler{poke: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// opened lets compactions begin, those first that wait already.
func (s *scheduler) opened() {
	s.mu.Lock()
	s.open = true
	s.mu.Unlock()
	s.again()
	s.done.Add(1)
	go s.run()
}

func (s *scheduler) run() {
	defer s.done.Done()
	t := time.NewTicker(grantEvery)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.poke:
		case <-t.C:
		}
		for s.begin() {
			if waits, _ := s.db.GetWaitingCompaction(); !waits || !s.db.Schedule(s) {
				s.end()
				break
			}
		}
	}
}

// begin counts a compaction in, if another is allowed.
func (s *scheduler) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || s.running >= s.db.GetAllowedWithoutPermission() {
		return false
	}
	s.running++
	return true
}

func (s *scheduler) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

func (s *scheduler) again() {
	select {
	case s.poke <- struct{}{}:
	default: // it will look anyway
	}
}

// Unregister implements pebble.CompactionScheduler: behind it no method of the database is called.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	open := s.open
	s.open = false
	s.mu.Unlock()
	if open {
		close(s.stop)
		s.done.Wait()
	}
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.begin() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (s *scheduler) UpdateGetAllowedWithoutPermission() { s.again() }

// Started implements pebble.CompactionGrantHandle.
func (s *scheduler) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (s *scheduler) Done() {
	s.end()
	s.again()
}
