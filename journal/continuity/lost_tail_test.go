package continuity

import (
	"math"
	"testing"
)

// TestLostTail tries every way in which a small tail can be lost: the bounds hold what was lost, and are the best possible.
func TestLostTail(t *testing.T) {
	type told struct {
		missing, drops, events uint64 // drops: as many may be dropped events
	}
	const had = 10 // events before the tail
	found := map[told][2]uint64{}
	for batches := range uint64(4) {
		for dropped := range uint64(4) {
			for events := batches; events <= batches*fullBatch; events++ {
				for more := range uint64(5) { // drops that were before the tail, for all that is known
					k := told{batches + dropped, dropped + more, had + events}
					lost := events + dropped
					b, is := found[k]
					if !is {
						b = [2]uint64{lost, lost}
					}
					found[k] = [2]uint64{min(b[0], lost), max(b[1], lost)}
				}
			}
		}
	}
	for k, want := range found {
		if k.missing == 0 || k.missing > 3 || k.drops > 4 { // else not all ways were tried
			continue
		}
		s := State{Epoch: 1, Seq: 5, HasEventID: true, EventID: had, Anchored: true}
		drops := min(k.drops, k.missing)
		if least, most := s.lostTail(&Counters{Events: k.events}, k.missing, drops); least != want[0] || most != want[1] {
			t.Errorf("%+v: %d to %d, want %d to %d", k, least, most, want[0], want[1])
		}
		for _, s := range []State{{Epoch: 1, Seq: 5, HasEventID: true, EventID: had}, {Epoch: 1, Seq: 5, Anchored: true}} {
			if least, most := s.lostTail(&Counters{Events: k.events}, k.missing, drops); least > want[0] || most < want[1] || least != k.missing {
				t.Errorf("%+v, not anchored: %d to %d do not hold %d to %d", k, least, most, want[0], want[1])
			}
		}
	}
	const huge = math.MaxUint64
	for _, c := range []struct {
		name                   string
		state                  State
		events, missing, drops uint64
		least, most            uint64
	}{
		{"huge", State{}, huge, huge, huge, huge, huge},
		{"huge, of small batches", State{}, huge - 1, huge / 2, 0, huge / 2, huge - 1},
		{"huge, anchored", State{Anchored: true, HasEventID: true}, huge, huge, huge, huge, huge},
		{"fewer events than ids", State{Anchored: true, HasEventID: true, EventID: 50}, 40, 3, 0, 3, 40},
		{"fewer events than batches", State{Anchored: true, HasEventID: true, EventID: 50}, 52, 3, 0, 3, 52},
		{"more events than fit", State{Anchored: true, HasEventID: true, EventID: 50}, 500, 3, 0, 3, 192},
		{"nothing published", State{}, 0, 3, 3, 3, 3},
		{"nothing published or dropped", State{}, 0, 3, 0, 3, 192}, // so the counters say nonsense
	} {
		if least, most := c.state.lostTail(&Counters{Events: c.events}, c.missing, c.drops); least != c.least || most != c.most {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, least, most, c.least, c.most)
		}
	}
}

func TestCountersSum(t *testing.T) {
	if c := (Counters{Batches: math.MaxUint64, Dropped: 1}); c.Sum() != math.MaxUint64 {
		t.Errorf("the sum goes round: %d", c.Sum())
	}
	if saturatingSub(1, 2) != 0 || saturatingSub(5, 2) != 3 {
		t.Error("saturatingSub")
	}
}
