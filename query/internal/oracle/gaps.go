package oracle

import (
	"math"

	"github.com/kvjournal/kvjournal/journal/event"
)

// The causes that gaps names for a recorded stream alone.
const (
	PublisherQueue   = "publisher_queue"
	Transport        = "transport"
	PublisherRestart = "publisher_restart"
	LateJoin         = "late_join"
	DisconnectedGap  = "disconnected"
	Reconnect        = "reconnect"
	Damaged          = "damaged"
	Unknown          = "unknown"
)

// Gap is one line of gaps. A number that is left out is 0.
type Gap struct {
	Cause   string
	Epoch   uint64
	First   uint64 // missing seqs
	Last    uint64
	Missing uint64 // how many

	// Lost events: LostMin to LostMax, which are equal where the number is exact. All false and 0 where it is not known.
	LostKnown, LostExact bool
	LostMin, LostMax     uint64

	// Before is the offset of the newest message before the gap (0: none), After that of the message that shows it. For
	// a damaged message After is its own offset.
	Before, After uint64
}

func (g *Gap) missing(first, last uint64) {
	g.First, g.Last, g.Missing = first, last, last-first+1
}

func (g *Gap) lostExactly(n uint64) {
	g.LostKnown, g.LostExact, g.LostMin, g.LostMax = true, true, n, n
}

// lostBetween sets the bounds of R3 for d missing event_ids and width missing seqs.
func (g *Gap) lostBetween(d, width uint64) {
	batches := d / fullBatch // that must have carried the d events, at least
	if d%fullBatch != 0 {
		batches++
	}
	most := d
	if width > batches {
		if most += width - batches; most < d {
			most = math.MaxUint64
		}
	}
	g.LostKnown, g.LostMin, g.LostMax = true, d, most
}

func damageLine(b *event.Batch, epoch, before, offset uint64) Gap {
	g := Gap{Cause: Damaged, Epoch: epoch, Before: before, After: offset}
	if b.HasSeq {
		g.First, g.Last = b.Seq, b.Seq
	}
	return g
}

// Gaps returns the lines of gaps in the order in which they showed.
func (o *Oracle) Gaps() []Gap { return o.gaps }
