package mooncaketest

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// SimOptions configures a Sim. Durations of 0 mean the default that is named, or "never" where none is.
type SimOptions struct {
	Publisher Options
	Store     StoreOptions // ClearsOnly follows from Publisher.NoObjectKey

	// Rate is in events per second; 0 is flat out, as fast as the publisher sends (see the package's doc).
	Rate float64

	// Duration ends Run; 0 means that only its context or Kill does.
	Duration time.Duration

	// Burst is the number of events that come at once, on top of the rate, every BurstEvery (5 s). 0 means no bursts.
	Burst      int
	BurstEvery time.Duration

	// RestartEvery ends the publisher as SIGKILL would and starts a new one on the same port, with an empty store and
	// with its numbers from 1, as a restarted master has. 0 means never.
	RestartEvery time.Duration

	// Truth, if set, makes quiet moments: every QuietEvery (3 s) changes stop for QuietFor (400 ms); as soon as the
	// publisher rests, the store's true state is written. Another line is written at the end of Run, unless it was
	// killed. The Sim does not close it. See Checkpoint.
	Truth                *TruthWriter
	QuietEvery, QuietFor time.Duration

	// TailLoss is the probability, 0 to 1, with which a quiet moment begins with a loss: up to 33 changes or so whose
	// messages are numbered and counted and never reach the wire. Nothing shows that before the next message, but the
	// counters (R8, tail_loss). It makes quiet moments without Truth too.
	TailLoss float64

	// SilentRemovals is the number of objects a second that are removed without an event; of some that are on disk too
	// only the copy in memory is lost. 0 means none; Store.Silent counts them.
	SilentRemovals float64

	// SegmentLossEvery unmounts a segment each time it has passed, without an event for what lay in it, and mounts another
	// one with a new id at the same endpoint. 0 means never.
	SegmentLossEvery time.Duration

	// Standby makes each process begin as a standby: for as long nothing changes, and an Admin says 503 but to health and
	// role. It is measured on Publisher.Now. 0 means that it begins as the leader.
	Standby time.Duration

	// DrainTimeout (5 s and the queue's delay) bounds the wait at the end of Run for the publisher to send what is in its queue.
	DrainTimeout time.Duration
}

func (o *SimOptions) setDefaults() error {
	setDefault(&o.BurstEvery, 5*time.Second)
	setDefault(&o.QuietEvery, 3*time.Second)
	setDefault(&o.QuietFor, 400*time.Millisecond)
	setDefault(&o.DrainTimeout, 5*time.Second+o.Publisher.QueueDelay)
	if o.Rate < 0 || o.Burst < 0 || o.Duration < 0 || o.BurstEvery < 0 || o.RestartEvery < 0 || o.QuietEvery < 0 || o.QuietFor < 0 ||
		o.SilentRemovals < 0 || o.SegmentLossEvery < 0 || o.Standby < 0 {
		return errors.New("mooncaketest: rates, counts and durations must not be negative")
	}
	if !(o.TailLoss >= 0 && o.TailLoss <= 1) {
		return fmt.Errorf("mooncaketest: a tail loss of %v is no probability", o.TailLoss)
	}
	if o.quiets() && o.QuietFor >= o.QuietEvery {
		return fmt.Errorf("mooncaketest: quiet for %v every %v leaves no time for changes", o.QuietFor, o.QuietEvery)
	}
	o.Publisher.setDefaults()
	o.Store.ClearsOnly = o.Publisher.NoObjectKey
	return nil
}

// quiets reports whether there are quiet moments.
func (o *SimOptions) quiets() bool { return o.Truth != nil || o.TailLoss > 0 }

// Sim is a master: a store whose changes a publisher announces, and, with NewAdmin, an admin API beside it. Run drives it;
// the other methods may be called by other goroutines meanwhile. A Sim may also be driven by hand alone (Do and its
// neighbours), without Run; then Close ends it.
type Sim struct {
	o        SimOptions
	endpoint string
	killed   chan struct{}
	kill     sync.Once

	restarts sync.Mutex // held from the end of one publisher to the start of the next; taken before mu
	over     bool       // under restarts: no more restarts

	mu        sync.RWMutex // held while the store changes and its changes are enqueued
	store     *Store
	publisher *Publisher
	down      bool      // the process has been killed and no other was started
	standby   bool      // by hand
	leaderAt  time.Time // until then a standby; SimOptions.Standby
	starts    int       // publishers started
	past      Stats     // of the publishers before
	silent    int       // Store.Silent of the stores before
	byKey     bool      // stores get a directory: somebody asks by key

	changes    []Change // Run's
	chance     random   // Run's
	checkpoint int      // Run's, and start's under mu
}

// NewSim binds the first publisher; nothing is sent before Run or Do. Run ends the publisher; without it, Close does.
func NewSim(o SimOptions) (*Sim, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	s := &Sim{o: o, killed: make(chan struct{}), chance: newRandom(o.Store.Seed ^ chanceStream)}
	if err := s.start(); err != nil {
		return nil, err
	}
	s.endpoint = s.publisher.Endpoint()
	s.o.Publisher.Bind = s.endpoint // a restart takes the same port
	return s, nil
}

// chanceStream keeps the draws of a Sim apart from those of its store.
const chanceStream = 0x6368616e6365

// start starts a publisher with an empty store. Each has another seed: a restarted master's clients store new objects.
func (s *Sim) start() error {
	p, err := Start(s.o.Publisher)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.publisher != nil {
		s.past.add(s.publisher.Stats())
		s.silent += s.store.Silent()
	}
	store := s.o.Store
	store.Seed += uint64(s.starts) << 32
	s.store, s.publisher = NewStore(store), p
	if s.byKey {
		s.store.openDirectory()
	}
	s.down, s.leaderAt = false, s.o.Publisher.Now().Add(s.o.Standby)
	s.starts++
	s.checkpoint = 0
	return nil
}

// Endpoint is the address that subscribers connect to; restarts keep it.
func (s *Sim) Endpoint() string { return s.endpoint }

// Publisher is the current one: to hold its queue, to lose messages, to wait until it rests. A restart ends it.
func (s *Sim) Publisher() *Publisher {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.publisher
}

// Starts is the number of publishers started so far; the first counts.
func (s *Sim) Starts() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.starts
}

// Totals are the counters of all publishers so far, added up.
func (s *Sim) Totals() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	total := s.past
	total.add(s.publisher.Stats())
	return total
}

// Silent is Store.Silent of all stores so far, added up.
func (s *Sim) Silent() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.silent + s.store.Silent()
}

// View calls f with the current store and publisher while nothing changes. f must not keep the store, nor change it, nor
// call the Sim.
func (s *Sim) View(f func(*Store, *Publisher)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.store, s.publisher)
}

// IsStandby reports whether the master is a standby now: SimOptions.Standby, SetStandby.
func (s *Sim) IsStandby() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.isStandby()
}

func (s *Sim) isStandby() bool {
	return s.standby || s.o.Standby > 0 && s.o.Publisher.Now().Before(s.leaderAt)
}

// Kill makes Run end as if the process had been killed: see Publisher.Kill. It does not wait for Run.
func (s *Sim) Kill() { s.kill.Do(func() { close(s.killed) }) }
