package mooncaketest

import "fmt"

// The methods of this file drive a Sim by hand, alone or while Run drives it too. Each is atomic: an admin API sees all
// of it or nothing.

// Do changes the store and enqueues the events that say so, as the master's own changes. Media other than CPU and Disk
// are announced only. A Stored of an object whose put was begun ends the put.
func (s *Sim) Do(changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.apply(changes); err != nil {
		return err
	}
	s.publisher.Enqueue(changes...)
	return nil
}

// Silently changes the store and announces nothing.
func (s *Sim) Silently(changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.silent += len(changes)
	return s.apply(changes)
}

func (s *Sim) apply(changes []Change) error {
	s.openDirectory()
	for _, c := range changes {
		if err := s.store.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// openDirectory makes objects findable by key, from now on and after every restart. The caller holds mu.
func (s *Sim) openDirectory() {
	s.byKey = true
	s.store.openDirectory()
}

// BeginPut makes a key listed and not readable yet; one that is listed stays as it is. Do with a Stored ends the put,
// AbandonPut takes it back; neither the beginning nor that is announced.
func (s *Sim) BeginPut(tenant, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openDirectory()
	s.store.beginPut(tenant, key)
}

// AbandonPut takes back a put that has not ended.
func (s *Sim) AbandonPut(tenant, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openDirectory()
	s.store.abandonPut(tenant, key)
}

// UnmountSegment takes a segment away, by its id: what lay in it is not in memory any more, and no event says so. It
// returns the number of objects that this concerns.
func (s *Sim) UnmountSegment(id string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.store.unmount(id)
	if lost < 0 {
		return 0, fmt.Errorf("mooncaketest: no segment %s is mounted", id)
	}
	return lost, nil
}

// MountSegment adds a segment, with a new id. Its endpoint is host:port.
func (s *Sim) MountSegment(endpoint string) Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.store.segments.mount(endpoint)
}

// SetStandby makes the master a standby, or ends that. Run changes nothing meanwhile; Do works all the same.
// SimOptions.Standby is not shortened by it.
func (s *Sim) SetStandby(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = on
}

// Restart ends the publisher as SIGKILL would and starts a new one on the same port, with an empty store and the same
// segments. It fails once the Sim has ended, or if the port is taken.
func (s *Sim) Restart() error {
	s.restarts.Lock()
	defer s.restarts.Unlock()
	if s.over {
		return ErrEnded
	}
	s.goDown().Kill()
	return s.start()
}

// goDown marks the process as dead, before it dies, and returns its publisher.
func (s *Sim) goDown() *Publisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	return s.publisher
}

// Close ends a Sim that is not Run: what is in the queue is sent, and connected subscribers get Options.Linger to take
// it. An Admin goes on answering.
func (s *Sim) Close() error {
	s.restarts.Lock()
	defer s.restarts.Unlock()
	s.over = true
	return s.Publisher().Close()
}
