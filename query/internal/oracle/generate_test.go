package oracle

import (
	"reflect"
	"testing"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// TestSameSeedSameStream: a printed seed is enough to see a failure again.
func TestSameSeedSameStream(t *testing.T) {
	for seed := range uint64(50) {
		if !reflect.DeepEqual(Generate(seed, Options{}), Generate(seed, Options{})) {
			t.Fatalf("seed %d gives different streams", seed)
		}
	}
}

// TestStreamsHoldEverything: each kind of trouble comes up in the first few hundred streams.
func TestStreamsHoldEverything(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(400) {
		s := Generate(seed, Options{})
		if len(s.Records) != len(s.Truth) {
			t.Fatalf("seed %d: %d records, %d truths", seed, len(s.Records), len(s.Truth))
		}
		for _, g := range heard(s, Repairs{}).Gaps() {
			count["gap "+g.Cause]++
		}
		countRecords(s, count)
	}
	for _, what := range []string{
		"gap publisher_queue", "gap transport", "gap publisher_restart", "gap late_join", "gap disconnected", "gap reconnect",
		"gap damaged", "gap unknown",
		"damage frame_count", "damage seq_frame", "damage cut", "damage trailing", "damage depth", "damage map_key",
		"damage malformed", "damage event_type", "damage key", "damage medium", "damage time", "damage scope", "damage event_id",
		"duplicate", "duplicate across a connection", "message in a window", "exact boundary", "full batch", "empty batch",
		"stored", "removed", "cleared", "event without id", "odd medium", "several backends", "several tenants",
		"clock back", "time ahead", "ends disconnected",
	} {
		if count[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	t.Log(count)
}

func countRecords(s *Stream, count map[string]int) {
	var b event.Batch
	var last [][]byte
	var lastTime int64
	lastMessage := -1
	broken, backends, tenants := false, map[string]bool{}, map[string]bool{}
	for i, r := range s.Records {
		switch r.Kind {
		case capture.Connected:
			if i > 0 && s.Records[i-1].Kind == capture.Disconnected {
				count["exact boundary"]++
			}
			broken = false
		case capture.Disconnected:
			broken = true
		case capture.Message:
			if broken {
				count["message in a window"]++
			}
			if sameFrames(r.Frames, last) {
				count["duplicate"]++
				if lastMessage < i-1 {
					count["duplicate across a connection"]++
				}
			}
			last, lastMessage = r.Frames, i
			b.Scan(r.Frames)
			if b.Damage != event.None {
				count["damage "+b.Damage.String()]++
				continue
			}
			switch {
			case b.Time > r.Received/1e6+hourMS:
				count["time ahead"]++
			case b.Time < lastTime:
				count["clock back"]++
			}
			lastTime = b.Time
			switch len(b.Events) {
			case 0:
				count["empty batch"]++
			case fullBatch:
				count["full batch"]++
			}
			for j := range b.Events {
				e := &b.Events[j]
				count[e.Type.String()]++
				backends[string(e.Backend)], tenants[string(e.Tenant)] = true, true
				if !e.HasID {
					count["event without id"]++
				}
				if string(e.Medium) == s.Media[2] {
					count["odd medium"]++
				}
			}
		}
	}
	if broken {
		count["ends disconnected"]++
	}
	if len(backends) > 1 {
		count["several backends"]++
	}
	if len(tenants) > 1 {
		count["several tenants"]++
	}
}

// TestLastKnownState: where nothing was lost, the state is the true one even where it is not confirmed, but for the
// survivors of clears and changes that are cut in two.
func TestLastKnownState(t *testing.T) {
	compared := 0
	for seed := range uint64(2000) {
		s := Generate(seed, Options{})
		o := heard(s, Repairs{})
		if len(o.Gaps()) > 0 {
			continue
		}
		if !o.last.keyed {
			continue
		}
		for i := range s.Records {
			offset := uint64(i + 1)
			for _, obj := range s.Objects {
				if cut := o.facts[offset].cut; cut != nil && *cut == obj {
					continue
				}
				for _, m := range s.Media {
					own, found := newest(o.events[placement{obj, m}], offset)
					got := o.AtOffset(offset, obj, m)
					if found && own.stored && !got.Present {
						continue
					}
					compared++
					if want := s.Truth[i].Present(obj, m); got.Present != want {
						t.Fatalf("seed %d: offset %d: %q on %s is present=%v, want %v", seed, offset, obj, m, got.Present, want)
					}
				}
			}
		}
	}
	if compared < 100_000 {
		t.Errorf("only %d answers compared", compared)
	}
}
