package continuity

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

func TestStateRoundTrip(t *testing.T) {
	states := []State{
		{},
		{Epoch: 1, Seq: 1},
		{Epoch: math.MaxUint64, Seq: math.MaxUint64, HasEventID: true, EventID: math.MaxUint64, Keyed: true, HasTime: true, Time: math.MaxInt64, Break: RecorderWasDown, Window: true, WindowUsed: true},
		{Epoch: 3, Seq: 9, HasTime: true, Time: math.MinInt64, Break: ConnectionBroken},
	}
	for i := range 32 { // each flag alone and with the others
		states = append(states, State{Epoch: 2, Seq: 7, HasEventID: i&1 != 0, Keyed: i&2 != 0, HasTime: i&4 != 0, Window: i&8 != 0, WindowUsed: i&16 != 0})
	}
	for _, s := range states {
		b := s.AppendBinary([]byte("head"))
		got, err := DecodeState(b[4:])
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v came back as %+v, %v", s, got, err)
		}
		for cut := range len(b) - 4 {
			if _, err := DecodeState(b[4 : 4+cut]); !errors.Is(err, ErrState) {
				t.Errorf("%+v cut to %d bytes: %v", s, cut, err)
			}
		}
		if _, err := DecodeState(append(b[4:], 0)); !errors.Is(err, ErrState) {
			t.Errorf("%+v with a byte behind it: %v", s, err)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	s := State{Epoch: 2, Seq: 300, HasEventID: true, EventID: 70_000, Time: -1, HasTime: true, Break: RecorderWasDown}
	f.Add(s.AppendBinary(nil))
	f.Add([]byte{})
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

// TestRestoredAnywhere: a state that is written down and read back between any two steps judges as if it had not been.
func TestRestoredAnywhere(t *testing.T) {
	seed := testkit.Seed(t)
	for run := range 200 {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		steps := randomSteps(rng, 60)
		var kept, restored State
		for i := range steps {
			if rng.IntN(2) == 0 {
				frames := restored.Last()
				next, err := DecodeState(restored.AppendBinary(nil))
				if err != nil {
					t.Fatal(err)
				}
				copied := make([][]byte, len(frames))
				for i := range frames {
					copied[i] = append([]byte(nil), frames[i]...)
				}
				if frames != nil {
					next.SetLast(copied)
				}
				restored = next
			}
			a, b := steps[i].apply(&kept), steps[i].apply(&restored)
			if a != b {
				t.Fatalf("seed %d, run %d, step %d (%s)\nkept     %s\nrestored %s", seed, run, i, steps[i].String(), a, b)
			}
		}
		kept.last, restored.last = nil, nil
		if !reflect.DeepEqual(kept, restored) {
			t.Fatalf("seed %d, run %d: in the end %+v and %+v", seed, run, kept, restored)
		}
	}
}

// apply takes the step and says everything that came of it.
func (st *step) apply(s *State) string {
	switch st.kind {
	case stepConnect:
		return s.Connects().String()
	case stepDisconnect:
		s.Disconnects()
		return ""
	case stepRecorder:
		return s.RecorderStarts(RecorderWasDown).String()
	case stepImport:
		return s.RecorderStarts(ConnectionBroken).String()
	}
	return fmt.Sprintf("%+v", s.Message(&st.batch, st.frames, st.received, st.slow))
}
