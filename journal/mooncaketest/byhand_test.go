package mooncaketest

import (
	"errors"
	"maps"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// checkDirectory holds a directory against its store: every live object is found, every pending one is there unreadable, and
// nothing else is.
func checkDirectory(t *testing.T, s *Store) {
	t.Helper()
	known := map[*object]bool{}
	for i := range s.directory.shards {
		for at, slot := range s.directory.shards[i] {
			if slot.object.slot != uint32(at+1) || known[slot.object] {
				t.Fatalf("shard %d, slot %d: object says %d", i, at, slot.object.slot)
			}
			known[slot.object] = true
		}
	}
	used := map[uint16]int64{}
	for _, o := range s.live {
		if s.directory.find(o.tenant, o.name.key()) != o || o.media == 0 {
			t.Fatalf("%q is live and not found", o.name.key())
		}
		if o.media&onCPU != 0 {
			used[o.segment] += objectBytes
		}
	}
	for _, o := range s.pending {
		if !known[o] || o.media != 0 {
			t.Fatalf("%q is pending and not known, or readable", o.name.key())
		}
	}
	for _, o := range s.gone {
		if known[o] || o.media != 0 {
			t.Fatalf("%q is gone and known", o.name.key())
		}
	}
	if len(known) != len(s.live)+len(s.pending) {
		t.Fatalf("%d known, %d live, %d pending", len(known), len(s.live), len(s.pending))
	}
	for i, segment := range s.segments.all {
		if segment != nil && segment.used != used[uint16(i)] || segment == nil && used[uint16(i)] > 0 {
			t.Fatalf("segment %d: %+v, objects need %d", i, segment, used[uint16(i)])
		}
	}
}

// Whatever is done, by the store itself, by hand and silently: directory, lists and segments agree.
func TestStoreByHandKeepsItsBooks(t *testing.T) {
	for seed := range uint64(5) {
		s := NewStore(StoreOptions{Seed: seed, Tenants: 3, Objects: 200, ClearEvery: 300, PendingPuts: 7, OddKeys: 4, RacyClears: true, Shards: 16})
		steps(s, 100)
		s.openDirectory()
		r := newRandom(seed)
		keys := []string{"a", "b", "c,d", ""}
		for range 5000 {
			tenant, key := s.tenants[r.below(len(s.tenants))], keys[r.below(len(keys))]
			if len(s.live) > 0 && r.below(2) == 0 {
				o := s.live[r.below(len(s.live))]
				tenant, key = s.tenants[o.tenant], o.name.key()
			}
			if len(s.pending) > 0 && r.below(4) == 0 {
				o := s.pending[r.below(len(s.pending))]
				tenant, key = s.tenants[o.tenant], o.name.key()
			}
			var err error
			switch r.below(12) {
			case 0:
				err = s.apply(stored(tenant, CPU, key))
			case 1:
				err = s.apply(stored(tenant, Disk, key))
			case 2:
				err = s.apply(removed(tenant, CPU, key))
			case 3:
				err = s.apply(removed(tenant, Disk, key))
			case 4:
				s.loseSilently(r)
			case 5:
				if r.below(20) == 0 {
					err = s.apply(Change{Type: event.Cleared, Tenant: tenant})
				}
			case 6:
				if mounted := s.Segments(); r.below(20) == 0 && len(mounted) > 0 {
					if s.unmount(mounted[0].ID) < 0 {
						t.Fatal("not unmounted")
					}
				} else if len(mounted) < 3 {
					s.segments.mount("x:1")
				}
			case 7: // begun and ended, or given up, by hand: neither is left in the books
				s.beginPut(tenant, key)
				if r.below(2) == 0 {
					s.abandonPut(tenant, key)
				} else {
					err = s.apply(stored(tenant, CPU, key))
				}
			default:
				s.Step(nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		checkDirectory(t, s)
		if s.Silent() == 0 || len(s.pending) == 0 {
			t.Errorf("seed %d: %d silent, %d pending", seed, s.Silent(), len(s.pending))
		}
	}
}

// Pending puts keep the stream's replay true.
func TestStorePendingPuts(t *testing.T) {
	s := NewStore(StoreOptions{Seed: 1, Tenants: 2, Objects: 300, ClearEvery: 500, PendingPuts: 5})
	s.openDirectory()
	replayed := state{}
	for range 5000 {
		step := s.Step(nil)
		if len(step) == 0 {
			t.Fatal("a step without an event")
		}
		replayed.apply(step...)
		if len(s.pending) > 5 {
			t.Fatalf("%d puts are pending", len(s.pending))
		}
	}
	if truth := stateOf(s); !maps.Equal(truth, replayed) {
		t.Errorf("%d rows in the store, %d replayed", len(truth), len(replayed))
	}
	checkDirectory(t, s)
}

// Do changes store and stream, Silently the store alone, both as a replay of the events would.
func TestSimByHand(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	s, got := subscribe(t, m.Endpoint(), probe(m.Sim))
	m.do(put("a"), stored("t", Disk, "b"), Change{Type: event.Stored, Tenant: "t", Medium: "tape", Key: "c"})
	m.silently(put("quiet"), removed("t", Disk, "b"))
	m.do(removed("default", CPU, "a"), put("d"))
	waitIdle(t, m.Publisher())
	if last := m.Totals().PublishedBatches; got[len(got)-1].seq < last {
		got = append(got, s.until(seqIs(last))...)
	}
	replayed := state{}
	for _, message := range got {
		replayed.apply(message.changes...)
	}
	said := state{}
	said.apply(put("d"), stored("t", Disk, "b"), stored("t", "tape", "c"))
	if !maps.Equal(replayed, said) {
		t.Errorf("the stream says %v", replayed)
	}
	held := state{}
	held.apply(put("d"), put("quiet"))
	m.View(func(s *Store, _ *Publisher) {
		if truth := stateOf(s); !maps.Equal(truth, held) || s.Silent() != 2 {
			t.Errorf("the store holds %v, %d silent", truth, s.Silent())
		}
	})
	if err := m.Do(Change{Type: 99}); err == nil {
		t.Error("a change of no type was accepted")
	}
}

func TestSimClose(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a"))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if n := m.Totals().PublishedEvents; n != 1 {
		t.Errorf("%d events were sent", n)
	}
	if err := m.Restart(); !errors.Is(err, ErrEnded) {
		t.Errorf("a restart behind the end: %v", err)
	}
	m.want("/role", 200, "leader")
}
