package mooncaketest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
)

const (
	flatOutChunk = 256              // events generated between two looks at the clock, flat out
	burstChunk   = 64               // events of a burst that are enqueued together
	flatOutRest  = time.Millisecond // the longest rest when the queue is full, flat out
	resumeAfter  = 50 * time.Millisecond
	tailEvents   = 32                    // the most changes that TailLoss adds to be lost, and a few
	standbyLook  = 10 * time.Millisecond // between two looks at whether a standby has become the leader
)

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
	s.restarts.Lock()
	s.over = true
	s.restarts.Unlock()
	select {
	case <-s.killed:
		s.goDown().Kill()
		return err
	default:
	}
	drain, cancelDrain := context.WithTimeout(context.WithoutCancel(ctx), s.o.DrainTimeout)
	defer cancelDrain()
	if s.o.Truth != nil && err == nil {
		err = s.writeTruth(drain)
	} else if idle := s.Publisher().WaitIdle(drain); err == nil {
		err = idle
	}
	if drain.Err() != nil {
		s.Publisher().Kill()
		return errors.Join(err, fmt.Errorf("mooncaketest: the queue was not empty after %v", s.o.DrainTimeout))
	}
	return errors.Join(err, s.Publisher().Close())
}

// schedule is when each thing happens next; the zero time is never.
type schedule struct{ quiet, burst, restart, segment, end time.Time }

// next is the earliest of them.
func (t schedule) next() time.Time {
	var next time.Time
	for _, at := range [...]time.Time{t.quiet, t.burst, t.restart, t.segment, t.end} {
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
	at.quiet = later(s.o.quiets(), s.o.QuietEvery)
	at.burst = later(s.o.Burst > 0, s.o.BurstEvery)
	at.restart = later(s.o.RestartEvery > 0, s.o.RestartEvery)
	at.segment = later(s.o.SegmentLossEvery > 0, s.o.SegmentLossEvery)
	at.end = later(s.o.Duration > 0, s.o.Duration)
	pace, silent := pacer{rate: s.o.Rate, last: now}, pacer{rate: s.o.SilentRemovals, last: now}
	skip := func() {
		now := time.Now()
		pace.skip(now)
		silent.skip(now)
	}

	for ctx.Err() == nil {
		now = time.Now()
		switch {
		case !at.end.IsZero() && !now.Before(at.end), s.stopped():
			return nil // Run finds out why it ended
		case isDue(&at.restart, s.o.RestartEvery, now):
			if err := s.Restart(); err != nil {
				return err
			}
			skip()
		case s.IsStandby():
			_ = pause.For(ctx, standbyLook)
			skip()
		case isDue(&at.segment, s.o.SegmentLossEvery, now):
			s.loseSegment()
		case isDue(&at.burst, s.o.BurstEvery, now):
			s.generate(s.o.Burst, burstChunk)
		case isDue(&at.quiet, s.o.QuietEvery, now):
			if err := s.quiet(ctx, now); err != nil {
				return err
			}
			skip()
		case s.o.Rate == 0:
			s.loseSilently(&silent, now)
			s.generate(flatOutChunk, flatOutChunk)
			s.rest(ctx)
		default:
			s.loseSilently(&silent, now)
			if due := pace.due(now); due > 0 {
				pace.spend(s.generate(due, 1))
			}
			wait := pace.wait()
			if silent.rate > 0 {
				wait = min(wait, silent.wait())
			}
			if next := at.next(); !next.IsZero() {
				wait = min(wait, time.Until(next))
			}
			_ = pause.For(ctx, wait)
		}
	}
	return nil
}

// stopped reports whether the publisher has ended, other than for a restart.
func (s *Sim) stopped() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.down && s.publisher.hasEnded()
}

// loseSilently removes as many objects without an event as have come due.
func (s *Sim) loseSilently(silent *pacer, now time.Time) {
	if silent.rate == 0 {
		return
	}
	due := silent.due(now)
	if due <= 0 {
		return
	}
	silent.spend(due)
	s.mu.Lock()
	defer s.mu.Unlock()
	for range due {
		s.store.loseSilently(s.chance)
	}
}

// loseSegment unmounts one segment, and mounts another in its place.
func (s *Sim) loseSegment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mounted := s.store.Segments(); len(mounted) > 0 {
		lost := mounted[s.chance.below(len(mounted))]
		s.store.unmount(lost.ID)
		s.store.segments.mount(lost.Endpoint)
	}
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
	p := s.Publisher()
	for until := time.Now().Add(flatOutRest); p.QueueLength() > room && time.Now().Before(until); {
		_ = pause.For(ctx, flatOutRest/5)
	}
}

// quiet loses the tail if chance wants it, writes the truth once the publisher rests, and lets changes go on QuietFor after
// since, but never so early that the next batch could carry the time of the line.
func (s *Sim) quiet(ctx context.Context, since time.Time) error {
	if s.o.TailLoss > 0 && s.chance.chance(s.o.TailLoss) {
		s.loseTail(ctx)
	}
	if s.o.Truth != nil {
		if err := s.writeTruth(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	_ = pause.For(ctx, max(time.Until(since.Add(s.o.QuietFor)), resumeAfter))
	return nil
}

// loseTail makes some more changes, and loses on the wire what the publisher sends from now on until it rests.
func (s *Sim) loseTail(ctx context.Context) {
	p := s.Publisher()
	p.Lose(true)
	defer p.Lose(false)
	s.generate(1+s.chance.below(tailEvents), 1)
	_ = p.WaitIdle(ctx) // whoever asks next learns of an end
}

// writeTruth waits until the publisher rests and writes what the store holds.
func (s *Sim) writeTruth(ctx context.Context) error {
	for {
		p := s.Publisher()
		err := p.WaitIdle(ctx)
		if err == nil {
			var done bool
			if done, err = s.writeTruthOf(p); done || err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil || !s.wasReplaced(p) {
			return err
		}
	}
}

// wasReplaced reports whether another publisher than p runs now. It waits for the end of a restart by hand.
func (s *Sim) wasReplaced(p *Publisher) bool {
	s.restarts.Lock()
	defer s.restarts.Unlock()
	return s.Publisher() != p
}

// writeTruthOf writes a line unless something was done by hand since the publisher was seen at rest.
func (s *Sim) writeTruthOf(p *Publisher) (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.publisher != p || s.down || !p.rests() {
		return false, nil
	}
	c := Checkpoint{
		Checkpoint: s.checkpoint,
		UnixMS:     s.o.Publisher.Now().UnixMilli(),
		Backend:    p.BackendID(),
		Stats:      p.Stats(),
		State:      s.store.Objects(),
	}
	s.checkpoint++
	return true, s.o.Truth.Write(c)
}
