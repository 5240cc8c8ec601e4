package continuity

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

type stepKind uint8

const (
	stepMessage stepKind = iota
	stepConnect
	stepDisconnect
	stepRecorder
	stepImport
)

// step is one thing that happens to a source.
type step struct {
	kind     stepKind
	batch    event.Batch
	frames   [][]byte
	received int64
	slow     bool
}

func (st *step) String() string {
	switch st.kind {
	case stepConnect:
		return "connect"
	case stepDisconnect:
		return "disconnect"
	case stepRecorder:
		return "recorder-starts"
	case stepImport:
		return "import-starts"
	}
	out := fmt.Sprintf("msg %x %s", st.frames, st.batch.Damage)
	for _, e := range st.batch.Events {
		out += fmt.Sprintf(" %s %v %d", e.Type, e.HasID, e.ID)
	}
	return out
}

// randomSteps makes a stream that is mostly in order, with every kind of fault near the boundaries of the rules.
func randomSteps(rng *rand.Rand, n int) []step {
	var seq, id uint64
	if rng.IntN(3) == 0 {
		seq, id = uint64(rng.IntN(100)), uint64(rng.IntN(100))
	}
	received := int64(1_790_000_000_000)
	var out []step
	var last *step
	for len(out) < n {
		received += int64(rng.IntN(2000))
		switch p := rng.IntN(100); {
		case p < 6:
			out = append(out, step{kind: stepDisconnect})
			if rng.IntN(2) == 0 {
				out = append(out, step{kind: stepConnect})
			}
			continue
		case p < 10:
			out = append(out, step{kind: stepConnect})
			continue
		case p < 12:
			out = append(out, step{kind: stepRecorder})
			continue
		case p < 13:
			out = append(out, step{kind: stepImport})
			continue
		case p < 20 && last != nil:
			again := *last
			again.frames = nil
			for _, f := range last.frames {
				again.frames = append(again.frames, append([]byte(nil), f...))
			}
			out = append(out, again)
			continue
		}
		st := step{received: received * 1e6, slow: rng.IntN(8) == 0}
		seq++
		switch rng.IntN(12) {
		case 0:
			seq += uint64(rng.IntN(3))
		case 1:
			seq += uint64(rng.IntN(200))
		case 2:
			seq -= min(seq-1, uint64(rng.IntN(4)))
		case 3:
			if rng.IntN(3) == 0 {
				seq = 1
				if rng.IntN(2) == 0 {
					id = 0
				}
			}
		}
		b := &st.batch
		b.HasSeq, b.Seq = true, seq
		st.frames = [][]byte{nil, binary.BigEndian.AppendUint64(nil, seq), binary.AppendUvarint(nil, uint64(len(out)))}
		switch rng.IntN(10) {
		case 0:
			b.Damage = event.MapKey
		case 1:
			*b = event.Batch{Damage: event.SeqFrameSize}
			st.frames[1] = st.frames[1][:rng.IntN(8)]
		default:
			switch rng.IntN(14) {
			case 0:
				id += uint64(rng.IntN(2))
			case 1:
				id += uint64(rng.IntN(300))
			case 2:
				id -= min(id, uint64(rng.IntN(4)))
			}
			ids := rng.IntN(10) > 0
			for range rng.IntN(5) {
				id++
				b.Events = append(b.Events, event.Event{Type: event.Type(1 + rng.IntN(3)), HasID: ids, ID: id})
			}
			b.HasTime = true
			b.Time = received + int64(rng.IntN(20_000)) - 10_000
			if rng.IntN(10) == 0 {
				b.Time = received + maxAheadMs - 1 + int64(rng.IntN(3))
			}
		}
		out = append(out, st)
		last = &out[len(out)-1]
	}
	return out
}
