package continuity

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// group is what State means for several endpoints: a reference for each that ever delivered, and a name for the one that does.
type group struct {
	now       int
	reference // of now
	old       map[int]*reference
	changed   map[int]bool // an old endpoint's connection changed since its last message
	window    map[int]bool // of those that do not deliver
}

func (g *group) message(on int, st *step) string {
	if on == g.now {
		return fmt.Sprint(g.reference.message(st), false)
	}
	b := &st.batch
	stale := func(again bool) string {
		j := judged{duplicate: again, keyed: g.keyed, inWindow: g.reference.window, epoch: g.old[on].epoch, time: g.timeText()}
		return fmt.Sprint(j, true)
	}
	old := g.old[on]
	if old != nil {
		same := len(old.frames) == len(st.frames)
		for i := 0; same && i < len(st.frames); i++ {
			same = bytes.Equal(old.frames[i], st.frames[i])
		}
		if same {
			return stale(true)
		}
	}
	if !b.HasSeq {
		if old != nil && !g.changed[on] {
			return stale(false)
		}
		j := judged{mark: "behind damaged", keyed: g.keyed, inWindow: g.reference.window, epoch: g.epoch, time: g.timeText()}
		return fmt.Sprint(j, false)
	}
	if old != nil {
		seq := int64(b.Seq)
		other := seq <= old.seq
		if n := len(b.Events); n > 0 && b.Events[0].HasID && old.id != nil {
			first := int64(b.Events[0].ID)
			other = other || first <= *old.id || seq == old.seq+1 && first != *old.id+1 && !g.changed[on]
		}
		if !other && !(g.changed[on] && g.newConnection) {
			old.seq, old.frames = seq, st.frames
			if b.Damage != event.None {
				old.id = nil
			} else if n := len(b.Events); n > 0 {
				old.id = nil
				if b.Events[n-1].HasID {
					id := int64(b.Events[n-1].ID)
					old.id = &id
				}
			}
			return stale(false)
		}
	}
	next := reference{epoch: g.epoch, id: new(int64), time: g.time, window: g.window[on]}
	if g.heard {
		next.heard, next.seq, next.id = true, math.MaxInt64, nil // whatever comes goes back: a restart
	}
	g.window[g.now] = g.reference.window
	delete(g.old, g.now)
	if g.seq != 0 {
		was := g.reference
		g.old[g.now], g.changed[g.now] = &was, g.newConnection
	}
	delete(g.old, on)
	g.now, g.reference = on, next
	return fmt.Sprint(g.reference.message(st), false)
}

// connection takes a connection event; it returns whether a mark is due.
func (g *group) connection(on int, up bool) bool {
	if on != g.now {
		g.changed[on], g.window[on] = true, !up
		return false
	}
	if up {
		return g.connects()
	}
	g.disconnects()
	return false
}

// TestGroupAgainstModel holds the verdicts of several endpoints' random streams, mixed, against the reference; and the same
// again with the state written down and read back between any two of them.
func TestGroupAgainstModel(t *testing.T) {
	seed := testkit.Seed(t)
	met := map[string]int{}
	for run := range 400 {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		const endpoints = 3
		var streams [endpoints][]step
		for i := range streams {
			streams[i] = randomSteps(rng, 60)
		}
		var s, restored State
		g := group{reference: reference{epoch: 1, id: new(int64)}, old: map[int]*reference{}, changed: map[int]bool{}, window: map[int]bool{}}
		on := 0
		for i := 0; ; i++ {
			if rng.IntN(6) == 0 {
				on = rng.IntN(endpoints)
			}
			if len(streams[on]) == 0 {
				break
			}
			st := &streams[on][0]
			streams[on] = streams[on][1:]
			if rng.IntN(2) == 0 {
				next, err := DecodeState(restored.AppendBinary(nil))
				if err != nil {
					t.Fatal(err)
				}
				next.SetLast(restored.Last())
				restored = next
			}
			got, again, want := "", "", ""
			switch st.kind {
			case stepConnect:
				got, again = s.ConnectsFrom(on).String(), restored.ConnectsFrom(on).String()
				if g.connection(on, true) {
					want = "disconnected"
				}
			case stepDisconnect:
				s.DisconnectsFrom(on)
				restored.DisconnectsFrom(on)
				g.connection(on, false)
			case stepRecorder, stepImport:
				cause := Break(RecorderWasDown)
				if st.kind == stepImport {
					cause = ConnectionBroken
				}
				got, again = s.RecorderStarts(cause).String(), restored.RecorderStarts(cause).String()
				if g.starts(st.kind == stepRecorder) {
					want = "disconnected"
				}
				for e := range endpoints {
					if e != g.now {
						g.changed[e], g.window[e] = true, false
					}
				}
			default:
				v := s.MessageFrom(on, &st.batch, st.frames, st.received, st.slow)
				w := restored.MessageFrom(on, &st.batch, st.frames, st.received, st.slow)
				got, again = fmt.Sprint(judgedBy(v), v.Stale), fmt.Sprint(judgedBy(w), w.Stale)
				want = g.message(on, st)
				met[fmt.Sprint("stale ", v.Stale, " duplicate ", v.Duplicate)]++
				if v.Stale && (v.Gap != Gap{} || v.Mark != NoMark || v.Follows) {
					t.Fatalf("seed %d, run %d, step %d: stale, and yet %+v", seed, run, i, v)
				}
			}
			if got != want || again != want {
				t.Fatalf("seed %d, run %d, step %d: %d %s\ngot      %s\nrestored %s\nwant     %s", seed, run, i, on, st.String(), got, again, want)
			}
			if s.Endpoint != g.now {
				t.Fatalf("seed %d, run %d, step %d: endpoint %d delivers, want %d", seed, run, i, s.Endpoint, g.now)
			}
		}
		s.last, restored.last = nil, nil
		if !reflect.DeepEqual(s, restored) {
			t.Fatalf("seed %d, run %d: in the end %+v and %+v", seed, run, s, restored)
		}
	}
	for _, stale := range []bool{false, true} {
		for _, duplicate := range []bool{false, true} {
			if k := fmt.Sprint("stale ", stale, " duplicate ", duplicate); met[k] == 0 {
				t.Errorf("seed %d: no verdict was %s", seed, k)
			}
		}
	}
}
