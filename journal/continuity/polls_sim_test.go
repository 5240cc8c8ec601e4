package continuity

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// world is a publisher whose true counters are known, with a wire and an admin server between it and the state.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	seed     uint64
	run      int
	lossy    bool // messages get lost on the wire
	now      int64
	process  int // 1, 2, …
	counters Counters
	sent     bool // the last batch is counted already
	lastID   uint64
	lostSum  map[uint64]uint64 // events behind each sequence number of this process
	wire     []step            // sent and not received
	state    State
	polls    Polls
	pending  *pendingPoll
	history  []pastPoll
	touched  int  // messages and connection changes that the state was told
	ending   bool // the process has ended and the socket has not noticed: less than minQuiet, R8 rests on that too
	restarts int  // what the state called a restart
	blind    int  // times that a poll left no numbers by which the old process's messages, if some come, are known again
	met      map[string]int
	log      []string
}

type pendingPoll struct {
	at      int64
	process int
	seq     uint64 // true
	touched int
}

type pastPoll struct {
	pendingPoll
	answered bool
	counters Counters
	showed   MarkPlace
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log {
		w.t.Log(l)
	}
	w.t.Fatalf("seed %d, run %d: %s", w.seed, w.run, fmt.Sprintf(format, args...))
}

func (w *world) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// seq is the last number given by this process.
func (w *world) seq() uint64 {
	n := w.counters.Sum()
	if !w.sent {
		n++
	}
	return n
}

func (w *world) count() {
	if !w.sent {
		w.counters.Batches++
		w.counters.Events += w.lostSum[w.counters.Sum()]
		w.sent = true
	}
}

// batch sends one; it is counted a little later.
func (w *world) batch() {
	w.count()
	seq := w.seq() + 1
	st := step{kind: stepMessage, received: w.now}
	st.batch = event.Batch{HasSeq: true, Seq: seq}
	n := 1 + w.rng.IntN(3)
	if w.rng.IntN(9) == 0 {
		n = fullBatch
	}
	for range n {
		w.lastID++
		st.batch.Events = append(st.batch.Events, event.Event{Type: event.Stored, HasID: true, ID: w.lastID})
	}
	st.frames = [][]byte{nil, binary.BigEndian.AppendUint64(nil, seq), binary.AppendUvarint(nil, uint64(w.process))}
	w.lostSum[seq] = uint64(n)
	w.sent = false
	if w.lossy && w.rng.IntN(3) == 0 {
		w.say("process %d loses %d of %d events", w.process, seq, n)
		return
	}
	w.wire = append(w.wire, st)
}

func (w *world) drop() {
	w.count()
	w.counters.Dropped++
	w.lostSum[w.seq()] = 1
}

// receive gives the state what is on the wire, up to n.
func (w *world) receive(n int) {
	for ; n > 0 && len(w.wire) > 0; n-- {
		st := &w.wire[0]
		v := w.state.Message(&st.batch, st.frames, st.received, false)
		w.say("process %d: %s: %+v", w.process, st.String(), v)
		w.wire = w.wire[1:]
		w.touched++
		if v.Gap.Cause == PublisherRestart {
			w.restarts++
		}
	}
}

// restart replaces the process. What is on the wire still comes, before the socket has noticed, or behind.
func (w *world) restart() {
	w.process++
	w.counters, w.sent, w.lastID = Counters{Enabled: true, HasKeyless: true}, true, 0
	w.lostSum = map[uint64]uint64{}
	w.say("process %d begins", w.process)
	w.ending = true
	for range w.rng.IntN(3) {
		w.poll() // overtakes the rest
	}
	w.receive(w.rng.IntN(4))
	if w.rng.IntN(3) == 0 {
		w.poll()
	}
	w.state.Disconnects()
	w.ending = false
	w.touched++
	w.say("disconnect")
	if w.rng.IntN(3) == 0 {
		w.poll()
	}
	w.receive(len(w.wire))
	if w.rng.IntN(3) == 0 {
		w.poll()
	}
	w.state.Connects()
	w.touched++
	w.say("connect")
}

// poll sends or answers one.
func (w *world) poll() {
	if w.pending == nil {
		if later := int64(w.rng.IntN(3)) * minQuiet / 2; later > 0 && !w.ending {
			w.now += later
			w.count() // counters are behind for less than minQuiet: R8 rests on that
		}
		w.pending = &pendingPoll{w.now, w.process, w.seq(), w.touched}
		w.polls.Sent(&w.state, w.now)
		w.say("poll sent at %d, true seq %d of process %d", w.now, w.seq(), w.process)
		return
	}
	sent := *w.pending
	w.pending = nil
	if w.rng.IntN(20) == 0 {
		w.polls.Failed()
		w.history = append(w.history, pastPoll{pendingPoll: sent})
		w.say("poll failed")
		return
	}
	before := w.state
	o := w.polls.Answered(&w.state, w.counters)
	w.say("poll answered %+v: %+v", w.counters, o)
	w.history = append(w.history, pastPoll{sent, true, w.counters, o.Mark})
	w.met[o.Gap.Cause.String()]++
	if o.Gap.Cause == PublisherRestart {
		w.restarts++
	}
	if o.Gap.Missing() > 0 || o.Gap.Cause == PublisherRestart && before.Seq == 0 {
		w.blind++
	}
	if o.Settled {
		w.met["settled"]++
		w.checkSettled(o)
	}
	if o.Gap.Cause == TailLoss {
		lost := uint64(0)
		for n := o.Gap.First; n <= o.Gap.Last; n++ {
			lost += w.lostSum[n]
		}
		if lost < o.Gap.Min || lost > o.Gap.Max || o.Gap.First != before.Seq+1 || o.Gap.Last != w.counters.Sum() {
			w.fail("%d were lost with %d..%d, said to be %+v", lost, before.Seq+1, w.counters.Sum(), o.Gap)
		}
		if o.Gap.Lost == LostExactly {
			w.met["tail loss exactly"]++
		}
	}
	// Two polls in a row that settle by R8's words do so, or show a loss.
	if n := len(w.history); n > 1 && !o.Settled && o.Mark == NoMark {
		a, b := &w.history[n-2], &w.history[n-1]
		if a.answered && a.counters == b.counters && b.at-a.at >= minQuiet && a.touched == w.touched && w.state.Connected &&
			a.process == w.process && a.showed == NoMark && b.counters.Sum() >= w.state.Seq {
			w.fail("these polls settle")
		}
	}
}

// checkSettled holds the claim against what was true, and against R8's words.
func (w *world) checkSettled(o Outcome) {
	first := -1
	for i := range w.history {
		if w.history[i].at == o.Since && w.history[i].answered {
			first = i
		}
	}
	if first < 0 {
		w.fail("no poll was sent at %d", o.Since)
	}
	a, b := w.history[first], w.history[len(w.history)-1]
	switch {
	case a.process != w.process && a.seq <= w.state.Seq+1:
		// Another process answered the second poll, with the same counters: the socket will tell. The first is still true, but
		// may have been behind by the batch that was just sent.
	case a.seq != w.state.Seq:
		w.fail("settled at %d, but %d were given then", w.state.Seq, a.seq)
	case b.at-a.at < minQuiet || a.touched != w.touched || a.counters != b.counters:
		w.fail("these polls do not settle: %+v and %+v", a, b)
	}
	for _, p := range w.history[first:] {
		if !p.answered || p.counters != a.counters {
			w.fail("a poll between says something else")
		}
	}
}

// TestPollsNeverWrong runs random publishers with known counters: what settles was true, lost events lie within the
// bounds, and where nothing gets lost, on the wire or by a poll, no restart is told twice.
func TestPollsNeverWrong(t *testing.T) {
	seed := testkit.Seed(t)
	met := map[string]int{}
	for run := range 500 {
		w := world{t: t, rng: rand.New(rand.NewPCG(seed, uint64(run))), seed: seed, run: run, lossy: run%2 == 0, process: 1, sent: true, met: met}
		w.counters = Counters{Enabled: true, HasKeyless: true}
		w.lostSum = map[uint64]uint64{}
		if run%3 == 0 { // the recorder comes late
			for range w.rng.IntN(5) {
				w.batch()
			}
			w.wire = nil
		}
		w.state.Connects()
		for range 120 {
			switch p := w.rng.IntN(100); {
			case p < 20:
				w.batch()
			case p < 26:
				w.drop()
			case p < 50:
				w.receive(1 + w.rng.IntN(4))
			case p < 60:
				w.count()
			case p < 63:
				w.restart()
			case p < 75: // a quiet time: the recorder hands over messages before polls
				w.count()
				w.receive(len(w.wire))
				for range 8 {
					w.poll()
				}
			default:
				// A poll is only sent behind what was received: the recorder's own queue is in order.
				w.receive(len(w.wire))
				w.poll()
			}
			if w.rng.IntN(10) == 0 {
				last := w.state.Last()
				restored, err := DecodeState(w.state.AppendBinary(nil))
				if err != nil {
					w.fail("%v", err)
				}
				restored.SetLast(last)
				w.state = restored
			}
		}
		if !w.lossy && w.restarts > w.process-1+w.blind {
			w.fail("%d restarts were told, %d were", w.restarts, w.process-1)
		}
	}
	for _, k := range []string{"settled", "tail_loss", "tail loss exactly", "publisher_restart", "disconnected", "reconnect", "late_join"} {
		if met[k] == 0 {
			t.Errorf("seed %d: never met: %s", seed, k)
		}
	}
	t.Log(met)
}
