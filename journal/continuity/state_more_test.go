package continuity

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"
)

// TestStatesOfEarlierVersions: what the first version wrote decodes, and is written as it was while nothing new happened.
// The bytes are a fixture: they were printed by that version.
func TestStatesOfEarlierVersions(t *testing.T) {
	for _, c := range []struct {
		hex   string
		state State
	}{
		{"000000000000", State{}},
		{"050103ac02f0a204f6a1899fc568", State{Epoch: 3, Seq: 300, HasEventID: true, EventID: 70_000, HasTime: true, Time: 1_796_000_000_123, Break: ConnectionBroken}},
		{"1f0201ffffffffffffffffff010909", State{Epoch: 1, Seq: math.MaxUint64, HasEventID: true, EventID: 9, Keyed: true, HasTime: true, Time: -5, Break: RecorderWasDown, Window: true, WindowUsed: true}},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeState(b)
		if err != nil || !reflect.DeepEqual(got, c.state) {
			t.Errorf("%s is %+v, %v\nwant %+v", c.hex, got, err, c.state)
		}
		if again := hex.EncodeToString(c.state.AppendBinary(nil)); again != c.hex {
			t.Errorf("%+v is written as %s, want %s", c.state, again, c.hex)
		}
	}
}

// fullState has every field set.
func fullState() State {
	r := func(n uint64) replaced {
		return replaced{n, numbers{n + 1, true, n + 2}, [16]byte{1, 15: byte(n)}}
	}
	return State{
		Epoch: 9, Seq: 300, HasEventID: true, EventID: 70_000, Keyed: true, HasTime: true, Time: 5, Break: ConnectionBroken, Window: true, WindowUsed: true,
		Endpoint: 1, Connected: true, FromPoll: true, Anchored: true, Changes: math.MaxUint64,
		earlier: earlier{earlierTail, r(8)},
		others:  []link{{endpoint: 0, old: r(2), broken: true, window: true, connected: true}, {endpoint: 7}, {endpoint: MaxEndpoint, old: r(math.MaxUint64)}},
	}
}

func TestNewStateRoundTrip(t *testing.T) {
	states := []State{fullState(), {Endpoint: 3}, {Changes: 1}, {others: []link{{endpoint: 1}}}}
	for i := range 8 {
		states = append(states, State{Epoch: 1, Connected: i&1 != 0, FromPoll: i&2 != 0, Anchored: i&4 != 0})
	}
	for i := range 16 {
		l := link{endpoint: 2, broken: i&1 != 0, window: i&2 != 0, connected: i&4 != 0}
		if i&8 != 0 {
			l.old = replaced{epoch: 1}
		}
		states = append(states, State{Epoch: 1, others: []link{l}})
	}
	for _, s := range states {
		b := s.AppendBinary(nil)
		got, err := DecodeState(b)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v came back as %+v, %v", s, got, err)
		}
		for cut := range b {
			if _, err := DecodeState(b[:cut]); !errors.Is(err, ErrState) {
				t.Errorf("%+v cut to %d bytes: %v", s, cut, err)
			}
		}
		if _, err := DecodeState(append(b, 0)); !errors.Is(err, ErrState) {
			t.Errorf("%+v with a byte behind it: %v", s, err)
		}
	}
	for name, break1 := range map[string]func(*State){
		"endpoints do not ascend":           func(s *State) { s.others[1].endpoint = 0 },
		"the one that delivers is no other": func(s *State) { s.Endpoint = 7 },
		"endpoint too large":                func(s *State) { s.Endpoint = MaxEndpoint + 1 },
		"other endpoint too large":          func(s *State) { s.others[2].endpoint = MaxEndpoint + 1 },
		"earlier messages of no process":    func(s *State) { s.earlier.epoch = 0 },
		"unknown kind of earlier messages":  func(s *State) { s.earlier.kind = 3 },
	} {
		s := fullState()
		break1(&s)
		if _, err := DecodeState(s.AppendBinary(nil)); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeNewState(f *testing.F) {
	s := fullState()
	f.Add(s.AppendBinary(nil))
	s.others, s.Endpoint, s.earlier = s.others[:1], 9, earlier{earlierProcess, s.earlier.replaced}
	f.Add(s.AppendBinary(nil))
	f.Add((&State{Epoch: 1, Connected: true, Changes: 4}).AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		again, err := DecodeState(s.AppendBinary(nil))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v came back as %+v, %v", s, again, err)
		}
	})
}
