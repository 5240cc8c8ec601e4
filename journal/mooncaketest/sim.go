package mooncaketest

import (
	"context"
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

	// DrainTimeout (5 s) bounds the wait at the end of Run for the publisher to send what is in its queue.
	DrainTimeout time.Duration
}

func (o *SimOptions) setDefaults() error {
	setDefault(&o.BurstEvery, 5*time.Second)
	setDefault(&o.QuietEvery, 3*time.Second)
	setDefault(&o.QuietFor, 400*time.Millisecond)
	setDefault(&o.DrainTimeout, 5*time.Second)
	if o.Rate < 0 || o.Burst < 0 || o.Duration < 0 || o.BurstEvery < 0 || o.RestartEvery < 0 || o.QuietEvery < 0 || o.QuietFor < 0 {
		return errors.New("mooncaketest: rates, counts and durations must not be negative")
	}
	if o.Truth != nil && o.QuietFor >= o.QuietEvery {
		return fmt.Errorf("mooncaketest: quiet for %v every %v leaves no time for changes", o.QuietFor, o.QuietEvery)
	}
	o.Publisher.setDefaults()
	o.Store.ClearsOnly = o.Publisher.NoObjectKey
	return nil
}

const (
	flatOutChunk = 256              // events generated between two looks at the clock, flat out
	burstChunk   = 64               // events of a burst that are enqueued together
	flatOutRest  = time.Millisecond // the longest rest when the queue is full, flat out
	resumeAfter  = 50 * time.Millisecond
)

// Sim is a master as far as its event stream is concerned: a store whose changes a publisher announces. Run drives it;
// the other methods may be called by other goroutines meanwhile.
type Sim struct {
	o        SimOptions
	endpoint string
	killed   chan struct{}
	kill     sync.Once

	mu        sync.Mutex // held while the store changes and its changes are enqueued
	store     *Store
	publisher *Publisher
	starts    int   // publishers started
	past      Stats // of the publishers before

	changes    []Change // Run's
	checkpoint int
}

// NewSim binds the first publisher; nothing is sent before Run. Run must be called, it also ends the publisher.
func NewSim(o SimOptions) (*Sim, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	s := &Sim{o: o, killed: make(chan struct{})}
	if err := s.start(); err != nil {
		return nil, err
	}
	s.endpoint = s.publisher.Endpoint()
	s.o.Publisher.Bind = s.endpoint // a restart takes the same port
	return s, nil
}

// start starts a publisher with an empty store. Each has another seed: a restarted master's clients store new objects.
func (s *Sim) start() error {
	store := s.o.Store
	store.Seed += uint64(s.starts) << 32
	p, err := Start(s.o.Publisher)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.publisher != nil {
		s.past.add(s.publisher.Stats())
	}
	s.store, s.publisher = NewStore(store), p
	s.starts++
	s.checkpoint = 0
	return nil
}

// Endpoint is the address that subscribers connect to; restarts keep it.
func (s *Sim) Endpoint() string { return s.endpoint }

// Starts is the number of publishers started so far; the first counts.
func (s *Sim) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Totals are the counters of all publishers so far, added up.
func (s *Sim) Totals() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.past
	total.add(s.publisher.Stats())
	return total
}

// View calls f with the current store and publisher while nothing changes: the place for an admin API to read from. f
// must not keep the store, nor change it.
func (s *Sim) View(f func(*Store, *Publisher)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.store, s.publisher)
}

// Kill makes Run end as if the process had been killed: see Publisher.Kill. It does not wait for Run.
func (s *Sim) Kill() { s.kill.Do(func() { close(s.killed) }) }

// Run makes changes until ctx is done, SimOptions.Duration is over, or Kill is called; then it ends the publisher, in
// good order unless it was killed. None of these is an error; a socket or a truth file that fails is. Run may be called
// once.
func (s *Sim) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.drive(ctx)
	select {
	case <-s.killed:
		s.publisher.Kill()
		return err
	default:
	}
	drain, cancelDrain := context.WithTimeout(context.WithoutCancel(ctx), s.o.DrainTimeout)
	defer cancelDrain()
	if s.o.Truth != nil && err == nil {
		err = s.writeTruth(drain)
	} else if idle := s.publisher.WaitIdle(drain); err == nil {
		err = idle
	}
	if drain.Err() != nil {
		s.publisher.Kill()
		return errors.Join(err, fmt.Errorf("mooncaketest: the queue was not empty after %v", s.o.DrainTimeout))
	}
	return errors.Join(err, s.publisher.Close())
}

// schedule is when each thing happens next; the zero time is never.
type schedule struct{ quiet, burst, restart, end time.Time }

// next is the earliest of them.
func (t schedule) next() time.Time {
	var next time.Time
	for _, at := range [...]time.Time{t.quiet, t.burst, t.restart, t.end} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// isDue reports whether *at has come, and if so moves it on by every.
func isDue(at *time.Time, every time.Duration, now time.Time) bool {
	if at.IsZero() || now.Before(*at) {
		return false
	}
	for !now.Before(*at) {
		*at = at.Add(every)
	}
	return true
}

// drive is Run without the end.
func (s *Sim) drive(ctx context.Context) error {
	now := time.Now()
	var at schedule
	later := func(wanted bool, d time.Duration) (t time.Time) {
		if wanted {
			t = now.Add(d)
		}
		return t
	}
	at.quiet = later(s.o.Truth != nil, s.o.QuietEvery)
	at.burst = later(s.o.Burst > 0, s.o.BurstEvery)
	at.restart = later(s.o.RestartEvery > 0, s.o.RestartEvery)
	at.end = later(s.o.Duration > 0, s.o.Duration)
	pace := pacer{rate: s.o.Rate, last: now}

	for ctx.Err() == nil {
		now = time.Now()
		switch {
		case !at.end.IsZero() && !now.Before(at.end), s.publisher.hasEnded():
			return nil // Run finds out why it ended
		case isDue(&at.restart, s.o.RestartEvery, now):
			if err := s.restart(); err != nil {
				return err
			}
			pace.skip(time.Now())
		case isDue(&at.burst, s.o.BurstEvery, now):
			s.generate(s.o.Burst, burstChunk)
		case isDue(&at.quiet, s.o.QuietEvery, now):
			if err := s.quiet(ctx, now); err != nil {
				return err
			}
			pace.skip(time.Now())
		case s.o.Rate == 0:
			s.generate(flatOutChunk, flatOutChunk)
			s.rest(ctx)
		default:
			if due := pace.due(now); due > 0 {
				pace.spend(s.generate(due, 1))
			}
			wait := pace.wait()
			if next := at.next(); !next.IsZero() {
				wait = min(wait, time.Until(next))
			}
			sleep(ctx, wait)
		}
	}
	return nil
}

// generate makes at least n events' worth of changes and enqueues them, chunk events or a little more at a time. It
// returns how many events it made.
func (s *Sim) generate(n, chunk int) int {
	chunk = max(1, min(chunk, s.o.Publisher.QueueCapacity/4))
	made := 0
	for made < n {
		made += s.enqueue(min(chunk, n-made))
	}
	return made
}

func (s *Sim) enqueue(atLeast int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = s.changes[:0]
	for len(s.changes) < atLeast {
		s.changes = s.store.Step(s.changes)
	}
	s.publisher.Enqueue(s.changes...)
	return len(s.changes)
}

// rest gives the sender the processor while the queue is full: see the package's doc.
func (s *Sim) rest(ctx context.Context) {
	room := s.o.Publisher.QueueCapacity - min(flatOutChunk, s.o.Publisher.QueueCapacity)
	for until := time.Now().Add(flatOutRest); s.publisher.QueueLength() > room && time.Now().Before(until); {
		sleep(ctx, flatOutRest/5)
	}
}

func (s *Sim) restart() error {
	s.publisher.Kill()
	return s.start()
}

// quiet writes the truth once the publisher rests, and lets changes go on QuietFor after since, but never so early that
// the next batch could carry the time of the line.
func (s *Sim) quiet(ctx context.Context, since time.Time) error {
	if err := s.writeTruth(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	sleep(ctx, max(time.Until(since.Add(s.o.QuietFor)), resumeAfter))
	return nil
}

func (s *Sim) writeTruth(ctx context.Context) error {
	if err := s.publisher.WaitIdle(ctx); err != nil {
		return err
	}
	c := Checkpoint{
		Checkpoint: s.checkpoint,
		UnixMS:     s.o.Publisher.Now().UnixMilli(),
		Backend:    s.publisher.BackendID(),
		Stats:      s.publisher.Stats(),
		State:      s.store.Objects(),
	}
	s.checkpoint++
	return s.o.Truth.Write(c)
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
