package run

import (
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/message"
)

// seenLimit bounds the objects that are remembered of a stream of any length.
const seenLimit = 100_000

// seenObjects is a sample of the objects of a stream's messages, each message as likely as any other.
type seenObjects struct {
	rng  *rand.Rand
	n    int
	kept []contender.Object
}

func (s *seenObjects) add(m *message.Message) {
	s.n++
	at := len(s.kept)
	if at == seenLimit {
		if at = s.rng.IntN(s.n); at >= seenLimit {
			return
		}
	}
	o, ok := (&asker{rng: s.rng}).someObject(m)
	switch {
	case !ok:
	case at == len(s.kept):
		s.kept = append(s.kept, o)
	default:
		s.kept[at] = o
	}
}
