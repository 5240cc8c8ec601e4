package query

import (
	"slices"
	"sync"
)

// creditState is where an attributor stands that has accounted for all losses and polls of a source up to an offset. It is a function of
// those alone: neither changes once it is indexed.
type creditState struct {
	at    uint64
	drops drops
	epoch uint64 // that drops are of
	// from is the first offset of losses that no poll was found behind yet; lost sums them up.
	from uint64
	lost lostBetween
}

// CreditCache keeps, for questions about a few losses of many, what those before them were credited with: at places of each source that are
// some losses and polls apart. Without it each question goes through all that lies before its span. It may be used by many at once.
//
// BenchmarkGapsPage: 100 losses of 100,000, each with a poll behind it, in processor time. Before, all losses before the span were read
// twice, and all polls; what is left is reading the losses and polls of the page, and those from the place before it on.
//
//	                    before      after
//	the first 100       288 ms      3.4 ms
//	in the middle       654 ms      3.1 ms
//	the last 100      1,037 ms      2.3 ms
type CreditCache struct {
	mu      sync.Mutex
	sources map[uint32]*creditTrail
}

// creditTrail are the places of a source, in their order, every so many losses and polls.
type creditTrail struct {
	every  int
	states []creditState
}

// Bounds of a CreditCache: a state has some 150 bytes.
const (
	creditSpacing = 256  // losses and polls between two places, at first
	creditPlaces  = 2048 // of a source; then each second one goes, and the next are twice as far apart
	creditSources = 64   // beyond, all begin anew
)

// before is the last state that is kept of a source and lies before an offset; that at its beginning where there is none.
func (c *CreditCache) before(source uint32, offset uint64) creditState {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t := c.sources[source]; t != nil {
			i, _ := slices.BinarySearchFunc(t.states, offset, func(s creditState, offset uint64) int {
				if s.at < offset {
					return -1
				}
				return 1
			})
			if i > 0 {
				return t.states[i-1]
			}
		}
	}
	return creditState{from: 1}
}

// spacing is how many losses and polls lie between two places of a source.
func (c *CreditCache) spacing(source uint32) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.sources[source]; t != nil {
		return t.every
	}
	return creditSpacing
}

// keep keeps a state of a source, if it lies behind those that are kept.
func (c *CreditCache) keep(source uint32, s creditState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.sources[source]
	if t == nil {
		if c.sources == nil || len(c.sources) >= creditSources {
			c.sources = map[uint32]*creditTrail{}
		}
		t = &creditTrail{every: creditSpacing}
		c.sources[source] = t
	}
	if n := len(t.states); n > 0 && s.at <= t.states[n-1].at {
		return
	}
	t.states = append(t.states, s)
	if len(t.states) < creditPlaces {
		return
	}
	half := t.states[:0]
	for i := 1; i < len(t.states); i += 2 {
		half = append(half, t.states[i])
	}
	t.states, t.every = half, 2*t.every
}
