package continuity

import (
	"fmt"
	"math"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestLostEvents holds the bounds of R3: d missing event_ids and g missing seqs are at least d events, at most
// d + g - ceil(d/64), never less than d.
func TestLostEvents(t *testing.T) {
	const huge = math.MaxUint64
	for _, c := range []struct {
		missingIDs, missingSeqs uint64
		cause                   Cause
		kind                    Lost
		min, max                uint64
	}{
		{0, 1, PublisherQueue, LostExactly, 1, 1},
		{0, 1000, PublisherQueue, LostExactly, 1000, 1000},
		{1, 1, Transport, LostBetween, 1, 1},
		{1, 2, Transport, LostBetween, 1, 2},
		{2, 2, Transport, LostBetween, 2, 3},
		{63, 1, Transport, LostBetween, 63, 63},
		{64, 1, Transport, LostBetween, 64, 64},
		{64, 2, Transport, LostBetween, 64, 65},
		{65, 2, Transport, LostBetween, 65, 65},
		{65, 3, Transport, LostBetween, 65, 66},
		{128, 2, Transport, LostBetween, 128, 128},
		{128, 3, Transport, LostBetween, 128, 129},
		{129, 3, Transport, LostBetween, 129, 129},
		{65, 1, Transport, LostBetween, 65, 65}, // more than one message can hold: never less than d
		{1000, 15, Transport, LostBetween, 1000, 1000},
		{1000, 16, Transport, LostBetween, 1000, 1000},
		{1000, 17, Transport, LostBetween, 1000, 1001},
		{6400, 100, Transport, LostBetween, 6400, 6400},
		{6401, 101, Transport, LostBetween, 6401, 6401},
		{3, 1 << 40, Transport, LostBetween, 3, 1<<40 + 2},
		{huge - 10, 1, Transport, LostBetween, huge - 10, huge - 10},
		{huge - 10, huge - 10, Transport, LostBetween, huge - 10, huge}, // does not go round
	} {
		t.Run(fmt.Sprintf("ids %d seqs %d", c.missingIDs, c.missingSeqs), func(t *testing.T) {
			s := State{Epoch: 1, Seq: 1, HasEventID: true, EventID: 1}
			b := event.Batch{HasSeq: true, Seq: 2 + c.missingSeqs, Events: []event.Event{{Type: event.Stored, HasID: true, ID: 2 + c.missingIDs}}}
			g := s.Message(&b, [][]byte{{1}}, 0, false).Gap
			want := Gap{Cause: c.cause, Epoch: 1, First: 2, Last: 1 + c.missingSeqs, Lost: c.kind, Min: c.min, Max: c.max}
			if g != want {
				t.Errorf("got  %+v\nwant %+v", g, want)
			}
			if g.Missing() != c.missingSeqs {
				t.Errorf("Missing() = %d", g.Missing())
			}
		})
	}
}

func TestNothingMissing(t *testing.T) {
	for _, g := range []Gap{{}, {Cause: Reconnect, Epoch: 1}, {First: 1}, {First: 5, Last: 4}} {
		if g.Missing() != 0 {
			t.Errorf("%+v: Missing() = %d, want 0", g, g.Missing())
		}
	}
}
