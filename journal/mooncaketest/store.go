package mooncaketest

import (
	"fmt"
	"iter"
	"slices"

	"github.com/kvjournal/kvjournal/journal/event"
)

// StoreOptions configures a Store. The zero value is one tenant with about 100,000 objects and no remove-alls.
type StoreOptions struct {
	// Seed selects the sequence of changes: equal options give equal changes.
	Seed uint64

	// Tenants is the number of tenants: "default", "tenant-1", "tenant-2" … 0 means 1. With two or more the last one
	// is small: it gets 2 % of the new objects, and remove-alls happen there.
	Tenants int

	// Objects is the number of live objects that the store grows to and then keeps, within a few percent. 0 means
	// 100,000. More need about 130 bytes each.
	Objects int

	// ClearEvery is the least number of events between two remove-alls; 0 means that there are none. A remove-all
	// waits further until it would be no more than a twentieth of all events, so that a large lone tenant is emptied
	// rarely.
	ClearEvery int

	// ClearsOnly says that nobody will see any event but clears (a publisher without object keys). Remove-alls then
	// come every ClearEvery events, whatever they cost.
	ClearsOnly bool

	// RacyClears lets some objects be stored between the last removed of a remove-all and its cleared. They live on,
	// although the stream says they are gone: real masters do this (spec/master-admin.md; R7). Replaying the events
	// does not give the store's state any more.
	RacyClears bool

	// PendingPuts is the number of puts that have begun and not ended, once the store is under way: an admin API lists
	// their keys, and says REPLICA_IS_NOT_READY of them. One in 16 is abandoned without an event. 0 means that a put
	// begins and ends at once.
	PendingPuts int

	// OddKeys makes one new key in so many an odd one: with a comma, a newline, %, +, &, a NUL, beyond ASCII, or no valid
	// UTF-8. 0 means none.
	OddKeys int

	// Shards is the number of parts that an admin API's listing walks through, one by one; 0 means DefaultShards. A
	// lookup by key takes time with objects / shards, about 1 µs for each 1,000.
	Shards int

	// Segments is the number of segments mounted at the start, and again after a restart; 0 means 2.
	Segments int
}

// Object is one object of a store. An object on no medium does not exist.
type Object struct {
	Tenant, Key string
	CPU, Disk   bool
}

// media is a set of media.
type media uint8

const (
	onCPU media = 1 << iota
	onDisk
)

// object is what the store keeps of one. An object that was removed keeps its name and may come back.
type object struct {
	name    name
	tenant  uint32
	at      uint32 // its place in Store.live or Store.gone
	slot    uint32 // its place in its shard of Store.directory, from 1; 0: not there
	segment uint16 // where it lies, if on the medium cpu
	media   media  // none: gone, or its put has not ended
	grouped bool   // its stored-on-cpu events carry a group_id
}

// goneLimit bounds how many removed objects the store remembers, to store some of them again.
const goneLimit = 4096

// Store is a model of what a Mooncake store holds, and makes up changes to it. An object is put into memory, offloaded
// to disk, evicted from memory and removed from disk: about 4 events; some are upserted, evicted without a copy on
// disk, loaded back, removed early, announced twice or stored again after they were gone.
//
// It is a pure function of its options and the number of calls, has no clock, and is not safe for use by several
// goroutines at once (Sim.View is).
type Store struct {
	o       StoreOptions
	r       random
	tenants []string
	live    []*object
	gone    []*object
	pending []*object // puts begun and not ended, the oldest first
	counts  []int     // live objects by tenant
	scratch []byte

	directory *directory // nil until somebody asks by key
	segments  *segments
	silent    int // changes that no event told of

	emitted   int // events so far
	lastClear int // emitted when the last remove-all ended

	clearing     []*object // what a remove-all in progress has still to remove
	clearTenant  int
	clearPending bool
}

// NewStore returns an empty store.
func NewStore(o StoreOptions) *Store {
	if o.Tenants <= 0 {
		o.Tenants = 1
	}
	if o.Objects <= 0 {
		o.Objects = 100_000
	}
	setDefault(&o.Segments, defaultSegmentCount)
	s := &Store{
		o: o, r: newRandom(o.Seed), tenants: []string{event.DefaultTenant}, counts: make([]int, o.Tenants),
		segments: newSegments(o.Seed, o.Segments),
	}
	for i := 1; i < o.Tenants; i++ {
		s.tenants = append(s.tenants, fmt.Sprintf("tenant-%d", i))
	}
	return s
}

// Live returns the number of objects.
func (s *Store) Live() int { return len(s.live) }

// Objects lists all objects, in no order.
func (s *Store) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range s.live {
			if !yield(Object{s.tenants[o.tenant], o.name.key(), o.media&onCPU != 0, o.media&onDisk != 0}) {
				return
			}
		}
	}
}

// Step makes one atomic change and appends its events, one or more, to dst. All of them must be enqueued together. A
// remove-all is many steps: one for each object, and one that sends cleared; the steps between belong to it too.
func (s *Store) Step(dst []Change) []Change {
	before := len(dst)
	for len(dst) == before { // a put that only begins has no event
		if s.clearPending || s.beginClear() {
			dst = s.stepClear(dst)
		} else if s.wantsPut() {
			dst = s.put(dst)
		} else {
			dst = s.advance(dst, s.live[s.r.below(len(s.live))])
		}
	}
	s.emitted += len(dst) - before
	return dst
}

// wantsPut keeps the number of objects near its target. An object lives through about three steps after its put, so one
// put in four steps keeps the number as it is.
func (s *Store) wantsPut() bool {
	switch n := len(s.live); {
	case n == 0:
		return true
	case n < s.o.Objects:
		return s.r.below(2) == 0
	default:
		return s.r.below(5) == 0
	}
}

func (s *Store) pickTenant() int {
	last := s.o.Tenants - 1
	if last == 0 || s.r.below(50) == 0 {
		return last
	}
	return s.r.below(last)
}

// put stores a new object in memory, or now and then one that was gone.
func (s *Store) put(dst []Change) []Change {
	var o *object
	if len(s.gone) == 0 || s.r.below(16) > 0 {
		o = s.newObject(s.pickTenant())
	} else {
		o = s.gone[s.r.below(len(s.gone))]
		s.gone = takeOut(s.gone, o)
	}
	if s.o.PendingPuts <= 0 {
		return s.putInto(dst, o)
	}
	return s.putLater(dst, o)
}

// putLater begins a put, and ends the oldest one if there are more than the options want.
func (s *Store) putLater(dst []Change, o *object) []Change {
	s.pending = append(s.pending, o)
	if s.directory != nil {
		s.directory.add(o)
	}
	if len(s.pending) <= s.o.PendingPuts {
		return dst
	}
	oldest := s.pending[0]
	s.pending = slices.Delete(s.pending, 0, 1)
	if s.r.below(16) == 0 {
		if s.directory != nil {
			s.directory.remove(oldest)
		}
		return dst
	}
	return s.putInto(dst, oldest)
}

func (s *Store) newObject(tenant int) *object {
	o := &object{tenant: uint32(tenant), grouped: s.r.below(3) > 0}
	if s.o.OddKeys > 0 && s.r.below(s.o.OddKeys) == 0 {
		o.name, s.scratch = s.r.newOddName(s.scratch)
	} else {
		o.name, s.scratch = s.r.newName(s.scratch)
	}
	return o
}

func (s *Store) putInto(dst []Change, o *object) []Change {
	s.insert(o, onCPU)
	return append(dst, s.change(event.Stored, o, onCPU))
}

// insert makes an object live that is on no medium yet.
func (s *Store) insert(o *object, m media) {
	o.at = uint32(len(s.live))
	s.live = append(s.live, o)
	s.counts[o.tenant]++
	if s.directory != nil {
		s.directory.add(o)
	}
	s.give(o, m)
}

// give puts a live object on one more medium.
func (s *Store) give(o *object, m media) {
	if m&^o.media&onCPU != 0 {
		s.segments.allocate(o)
	}
	o.media |= m
}

// take takes media away from an object, and forgets it once none is left. One on no medium stays as it is.
func (s *Store) take(o *object, m media) {
	if m &= o.media; m == 0 {
		return
	}
	if m&onCPU != 0 {
		s.segments.free(o)
	}
	if o.media &^= m; o.media != 0 {
		return
	}
	s.live = takeOut(s.live, o)
	s.counts[o.tenant]--
	if s.directory != nil {
		s.directory.remove(o)
	}
	if len(s.gone) == goneLimit {
		s.gone = takeOut(s.gone, s.gone[s.r.below(goneLimit)])
	}
	o.at = uint32(len(s.gone))
	s.gone = append(s.gone, o)
}

// advance lets an object live on.
func (s *Store) advance(dst []Change, o *object) []Change {
	chance := s.r.below(100)
	if chance < 4 {
		return s.upsert(dst, o)
	}
	switch o.media {
	case onCPU:
		switch {
		case chance < 12: // evicted without a copy on disk, or removed
			return s.removed(dst, o, onCPU)
		case chance < 22: // evicted, the copy on disk made in the same breath
			return s.removed(s.stored(dst, o, onDisk), o, onCPU)
		case chance < 24: // a further replica
			return s.stored(dst, o, onCPU)
		}
		return s.stored(dst, o, onDisk) // offload
	case onDisk:
		if chance < 8 { // loaded back
			return s.stored(dst, o, onCPU)
		}
		return s.removed(dst, o, onDisk)
	default:
		switch {
		case chance < 8: // removed
			return s.removed(s.removed(dst, o, onCPU), o, onDisk)
		case chance < 9: // the disk is full
			return s.removed(dst, o, onDisk)
		case chance < 11: // evicted with two replicas: retractions are not deduplicated
			return s.removed(s.removed(dst, o, onCPU), o, onCPU)
		}
		return s.removed(dst, o, onCPU) // evicted, the copy on disk stays
	}
}

// upsert replaces an object: removed for the old value, medium by medium, then stored for the new one.
func (s *Store) upsert(dst []Change, o *object) []Change {
	for _, m := range [...]media{onCPU, onDisk} {
		if o.media&m != 0 {
			dst = append(dst, s.change(event.Removed, o, m))
		}
	}
	if o.media&onCPU != 0 {
		s.segments.free(o)
	}
	o.media = 0
	return s.stored(dst, o, onCPU)
}

func (s *Store) stored(dst []Change, o *object, m media) []Change {
	s.give(o, m)
	return append(dst, s.change(event.Stored, o, m))
}

// removed retracts one medium. One that the object is not on is retracted all the same.
func (s *Store) removed(dst []Change, o *object, m media) []Change {
	s.take(o, m)
	return append(dst, s.change(event.Removed, o, m))
}

func (s *Store) change(t event.Type, o *object, m media) Change {
	c := Change{Type: t, Tenant: s.tenants[o.tenant], Key: o.name.key(), Medium: Disk}
	if m == onCPU {
		c.Medium = CPU
		if o.grouped && t == event.Stored {
			c.Group = o.name.group()
		}
	}
	return c
}

// beginClear begins a remove-all of the last tenant if one is due. An empty tenant is never cleared.
func (s *Store) beginClear() bool {
	since, tenant := s.emitted-s.lastClear, s.o.Tenants-1
	n := s.counts[tenant]
	if s.o.ClearEvery <= 0 || n == 0 || since < s.o.ClearEvery || !s.o.ClearsOnly && since < 20*n {
		return false
	}
	s.clearTenant, s.clearPending = tenant, true
	s.clearing = slices.Grow(s.clearing[:0], n)
	for _, o := range s.live {
		if int(o.tenant) == tenant {
			s.clearing = append(s.clearing, o)
		}
	}
	return true
}

// stepClear removes one object of the tenant that is being emptied, or, behind the last one, sends cleared.
func (s *Store) stepClear(dst []Change) []Change {
	if last := len(s.clearing) - 1; last >= 0 {
		o := s.clearing[last]
		s.clearing = s.clearing[:last]
		for _, m := range [...]media{onCPU, onDisk} {
			if o.media&m != 0 {
				dst = s.removed(dst, o, m)
			}
		}
		return dst
	}
	if s.o.RacyClears {
		for range 1 + s.r.below(3) {
			dst = s.putInto(dst, s.newObject(s.clearTenant))
		}
	}
	s.clearPending = false
	s.lastClear = s.emitted
	return append(dst, Change{Type: event.Cleared, Tenant: s.tenants[s.clearTenant]})
}

// takeOut removes o from the list that it is in, moving the last one to its place.
func takeOut(list []*object, o *object) []*object {
	last := len(list) - 1
	moved := list[last]
	list[o.at], moved.at = moved, o.at
	list[last] = nil
	return list[:last]
}
