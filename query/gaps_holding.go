package query

import (
	"slices"

	"github.com/kvjournal/kvjournal/index"
)

// holding is the set of media that hold an object, each with its newest `stored`, in the order of those.
type holding struct {
	list []held
	n    int            // how many of list are not gone
	at   map[string]int // in list, once it is long
}

type held struct {
	medium string
	stored index.Position
	silent bool // in an epoch whose master changes things without an event (R11)
	gone   bool
}

func (h *holding) reset() {
	h.list, h.n = h.list[:0], 0
	clear(h.at)
}

// newest is the newest `stored`; there is one.
func (h *holding) newest() *held { return &h.list[len(h.list)-1] }

// add takes a medium that does not hold the object, and a position behind all others.
func (h *holding) add(medium string, p index.Position, silent bool) {
	h.list, h.n = append(h.list, held{medium: medium, stored: p, silent: silent}), h.n+1
	switch n := len(h.list); {
	case n <= fewMedia && len(h.at) == 0:
	case len(h.at) == 0 || n > 4*h.n: // it became long, or is mostly gone
		h.list = slices.DeleteFunc(h.list, func(m held) bool { return m.gone })
		if h.at == nil {
			h.at = map[string]int{}
		}
		clear(h.at)
		for i := range h.list {
			h.at[h.list[i].medium] = i
		}
	default:
		h.at[medium] = n - 1
	}
}

func (h *holding) remove(medium string) {
	i, known := h.at[medium]
	if len(h.at) == 0 {
		i = slices.IndexFunc(h.list, func(m held) bool { return !m.gone && m.medium == medium })
		known = i >= 0
	}
	if !known {
		return
	}
	delete(h.at, medium)
	h.list[i].gone = true
	h.n--
	for n := len(h.list); n > 0 && h.list[n-1].gone; n-- {
		h.list = h.list[:n-1]
	}
}
