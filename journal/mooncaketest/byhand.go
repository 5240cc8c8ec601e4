package mooncaketest

import (
	"fmt"
	"slices"

	"github.com/kvjournal/kvjournal/journal/event"
)

// What is done to a store by hand, and what happens in it without an event.

// openDirectory makes objects findable by key, and keeps them so.
func (s *Store) openDirectory() *directory {
	if s.directory == nil {
		shards := s.o.Shards
		if shards <= 0 {
			shards = DefaultShards
		}
		s.directory = newDirectory(shards)
		for _, known := range [][]*object{s.live, s.pending} {
			for _, o := range known {
				s.directory.add(o)
			}
		}
	}
	return s.directory
}

// tenant is the number of a tenant; "" is the default one, as on the wire.
func (s *Store) tenant(name string) uint32 {
	if name == "" {
		name = event.DefaultTenant
	}
	for i, t := range s.tenants {
		if t == name {
			return uint32(i)
		}
	}
	s.tenants = append(s.tenants, name)
	s.counts = append(s.counts, 0)
	return uint32(len(s.tenants) - 1)
}

// find returns an object by its key, with what it belongs to. o is nil if there is none.
func (s *Store) find(tenant, key string) (o *object, number uint32) {
	number = s.tenant(tenant)
	return s.openDirectory().find(number, key), number
}

// recall returns an object that does not exist, the remembered one if there is one: no two may have the same key.
func (s *Store) recall(tenant uint32, key string) *object {
	for _, o := range s.gone {
		if o.tenant == tenant && o.name.key() == key {
			s.gone = takeOut(s.gone, o)
			return o
		}
	}
	return &object{name: name(groupPrefix + key), tenant: tenant}
}

// dropPending takes an object out of the store's own puts: it was ended or abandoned by hand.
func (s *Store) dropPending(o *object) {
	s.pending = slices.DeleteFunc(s.pending, func(p *object) bool { return p == o })
}

// apply changes the store as an event says. A medium other than CPU and Disk is none of the store's.
func (s *Store) apply(c Change) error {
	m := media(0)
	switch c.Medium {
	case CPU:
		m = onCPU
	case Disk:
		m = onDisk
	}
	switch c.Type {
	case event.Stored:
		o, tenant := s.find(c.Tenant, c.Key)
		switch {
		case m == 0:
		case o == nil:
			s.insert(s.recall(tenant, c.Key), m)
		case o.media == 0: // its put has ended
			s.dropPending(o)
			s.insert(o, m)
		default:
			s.give(o, m)
		}
	case event.Removed:
		if o, _ := s.find(c.Tenant, c.Key); o != nil {
			s.take(o, o.media&m)
		}
	case event.Cleared:
		tenant := s.tenant(c.Tenant)
		for i := len(s.live) - 1; i >= 0; i-- {
			if o := s.live[i]; o.tenant == tenant {
				s.take(o, o.media)
			}
		}
	default:
		return fmt.Errorf("mooncaketest: no change of type %d", c.Type)
	}
	return nil
}

// beginPut lists an object that is not readable yet. One that exists stays as it is.
func (s *Store) beginPut(tenant, key string) {
	if o, number := s.find(tenant, key); o == nil {
		s.directory.add(s.recall(number, key))
	}
}

// abandonPut takes an object back whose put has begun and not ended.
func (s *Store) abandonPut(tenant, key string) {
	if o, _ := s.find(tenant, key); o != nil && o.media == 0 {
		s.dropPending(o)
		s.directory.remove(o)
	}
}

// loseSilently removes an object, or only its copy in memory where one on disk stays, without an event, as masters do
// (spec/master-admin.md, "Masters change things silently"). It does nothing to an empty store. r decides which.
func (s *Store) loseSilently(r random) {
	if len(s.live) == 0 {
		return
	}
	o := s.live[r.below(len(s.live))]
	lost := o.media
	if lost == onCPU|onDisk && r.below(2) == 0 {
		lost = onCPU
	}
	s.take(o, lost)
	s.silent++
}

// Silent is the number of changes that no event told of, by an object each: silent removals and lost segments.
func (s *Store) Silent() int { return s.silent }
