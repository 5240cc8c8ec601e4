package continuity

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// reference is the meaning of conformance/model.py (follows, discontinue and apply, as far as they judge), with R5's window
// and R8's time beside it. It is written to be read, in signed numbers, and shares nothing with State.
type reference struct {
	heard         bool // any message at all
	seq           int64
	id            *int64 // of the last event; nil: not known
	epoch         int64
	keyed         bool
	newConnection bool
	down          bool // the new connection is the first of a recorder
	window, used  bool
	time          *int64
	frames        [][]byte
}

type judged struct {
	duplicate, follows, keyed, inWindow bool
	mark                                string
	epoch                               int64
	time                                string
	gap                                 string
}

func (r *reference) message(st *step) judged {
	b := &st.batch
	j := judged{inWindow: r.window, keyed: r.keyed, epoch: r.epoch}
	same := r.heard && len(st.frames) == len(r.frames)
	for i := 0; same && i < len(st.frames); i++ {
		same = bytes.Equal(st.frames[i], r.frames[i])
	}
	r.heard, r.frames = true, st.frames
	if same {
		j.duplicate, j.time = true, r.timeText()
		return j
	}
	r.used = r.used || r.window
	if damaged := b.Damage != event.None; !damaged && b.Time-3_600_000 <= st.received/1_000_000 {
		t := b.Time
		r.time = &t
	}
	j.time = r.timeText()
	if !b.HasSeq {
		j.mark = "behind damaged"
		return j
	}
	var first *int64
	if n := len(b.Events); n > 0 && b.Events[0].HasID {
		v := int64(b.Events[0].ID)
		first = &v
	}
	seq := int64(b.Seq)
	fits := r.id == nil || first == nil || *first == *r.id+1
	j.follows = r.seq > 0 && !r.newConnection && seq == r.seq+1 && fits
	still := r.window && r.newConnection && seq == r.seq+1 && fits // as if the old connection's messages still came
	if !still && !j.follows && !(r.seq == 0 && seq == 1) {
		r.discontinue(&j, seq, first, st.slow)
	}
	j.epoch, j.keyed = r.epoch, r.keyed
	if !still {
		r.newConnection, r.down = false, false
	}
	r.seq = seq
	if b.Damage != event.None {
		r.id, j.mark = nil, "behind damaged"
		return j
	}
	for i := range b.Events {
		r.keyed = r.keyed || b.Events[i].Type != event.Cleared
		r.id = nil
		if b.Events[i].HasID {
			v := int64(b.Events[i].ID)
			r.id = &v
		}
	}
	return j
}

func (r *reference) discontinue(j *judged, seq int64, first *int64, slow bool) {
	known := first != nil && r.id != nil
	jump := int64(0)
	if known {
		jump = *first - *r.id - 1
	}
	restart := seq <= r.seq || jump < 0 || (seq == r.seq+1 && jump != 0 && !r.newConnection)
	if restart {
		r.epoch++
		r.keyed = false
		j.mark, j.gap = "before publisher_restart", fmt.Sprintf("publisher_restart %d", r.epoch)
		if seq > 1 {
			j.mark = "behind publisher_restart"
			j.gap += fmt.Sprintf(" 1-%d", seq-1)
		}
		return
	}
	if r.newConnection {
		r.keyed = false
	}
	if seq == r.seq+1 {
		j.mark, j.gap = "behind reconnect", fmt.Sprintf("reconnect %d", r.epoch)
		return
	}
	width := seq - r.seq - 1
	cause, lost := "", ""
	switch {
	case r.seq == 0:
		cause = "late_join"
	case r.newConnection && r.down:
		cause = "recorder_down"
	case r.newConnection:
		cause = "disconnected"
	case !known:
		cause = "unknown"
	case jump == 0:
		cause, lost = "publisher_queue", fmt.Sprintf(" lost %d", width)
	default:
		cause = "transport"
		if slow {
			cause = "recorder_slow"
		}
		lost = fmt.Sprintf(" lost %d..%d", jump, max(jump, jump+width-(jump+63)/64))
	}
	j.mark = "behind " + cause
	j.gap = fmt.Sprintf("%s %d %d-%d%s", cause, r.epoch, r.seq+1, seq-1, lost)
}

func (r *reference) timeText() string {
	if r.time == nil {
		return ""
	}
	return fmt.Sprint(*r.time)
}

// connects, disconnects and starts return whether a mark is due.
func (r *reference) connects() bool {
	r.newConnection = r.newConnection || r.heard
	return r.closeWindow()
}

func (r *reference) disconnects() {
	r.window = true
	if r.heard {
		r.newConnection = true // of a recorder that was down it stays so: that explains more
	}
}

func (r *reference) starts(down bool) bool {
	if r.heard {
		r.newConnection, r.down = true, down
	}
	return r.closeWindow()
}

func (r *reference) closeWindow() bool {
	due := r.window && r.used
	r.window, r.used = false, false
	return due
}

// judgedBy puts a Verdict into the reference's words.
func judgedBy(v Verdict) judged {
	j := judged{duplicate: v.Duplicate, follows: v.Follows, keyed: v.Keyed, inWindow: v.InWindow, epoch: int64(v.Epoch)}
	if v.HasTime {
		j.time = fmt.Sprint(v.Time)
	}
	switch v.Mark {
	case MarkBefore:
		j.mark = "before " + v.MarkCause.String()
	case MarkBehind:
		j.mark = "behind " + v.MarkCause.String()
	}
	if g := v.Gap; g.Cause != CauseNone {
		j.gap = fmt.Sprintf("%s %d", g.Cause, g.Epoch)
		if g.First != 0 || g.Last != 0 {
			j.gap += fmt.Sprintf(" %d-%d", g.First, g.Last)
		}
		switch g.Lost {
		case LostExactly:
			j.gap += fmt.Sprintf(" lost %d", g.Min)
		case LostBetween:
			j.gap += fmt.Sprintf(" lost %d..%d", g.Min, g.Max)
		}
	}
	return j
}

// TestAgainstModel holds every verdict on random streams against the reference.
func TestAgainstModel(t *testing.T) {
	seed := testkit.Seed(t)
	met := map[string]int{}
	for run := range 400 {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		steps := randomSteps(rng, 80)
		var s State
		r := reference{epoch: 1, id: new(int64)} // as model.py: the event before the first is number 0
		for i := range steps {
			st := &steps[i]
			var got, want any
			switch st.kind {
			case stepConnect:
				got, want = s.Connects() == Disconnected, r.connects()
			case stepDisconnect:
				s.Disconnects()
				r.disconnects()
			case stepRecorder:
				got, want = s.RecorderStarts(RecorderWasDown) == Disconnected, r.starts(true)
			case stepImport:
				got, want = s.RecorderStarts(ConnectionBroken) == Disconnected, r.starts(false)
			default:
				v := s.Message(&st.batch, st.frames, st.received, st.slow)
				got, want = judgedBy(v), r.message(st)
				met[v.Gap.Cause.String()]++
				met["mark "+v.MarkCause.String()]++
				if v.Damage != st.batch.Damage && !v.Duplicate {
					t.Fatalf("seed %d, run %d, step %d: damage %v", seed, run, i, v.Damage)
				}
			}
			if got != want {
				for k := range i + 1 {
					t.Log(k, steps[k].String())
				}
				t.Fatalf("seed %d, run %d, step %d\ngot  %+v\nwant %+v", seed, run, i, got, want)
			}
		}
	}
	for _, cause := range []Cause{PublisherQueue, Transport, PublisherRestart, LateJoin, Disconnected, Reconnect, RecorderDown, RecorderSlow, Unknown} {
		if met[cause.String()] == 0 {
			t.Errorf("seed %d: no gap was of cause %s: the streams are too tame", seed, cause)
		}
	}
	if met["mark damaged"] == 0 {
		t.Errorf("seed %d: no mark by damage", seed)
	}
}
