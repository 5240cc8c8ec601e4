package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

func newGaps() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "What was lost: each gap, restart and damaged message, and why",
		Long: `Each loss as a later message showed it: how many sequence numbers are missing, how many events that was where it
can be told, and the cause:

  publisher_queue    the publisher's own queue overflowed and dropped its oldest events
  transport          messages vanished on the way, as at a socket's high-water mark
  recorder_slow      messages vanished while kvjournal's own buffer was full
  publisher_restart  another publisher process; its numbers start over
  late_join          the recorder joined a stream that ran already
  disconnected       the connection broke and the numbers jumped
  reconnect          the connection broke; the numbers go on, which proves nothing
  recorder_down      no recorder ran
  damaged            a message that could not be decoded, kept raw
  unknown            numbers are missing and no event_id tells why`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.ask("gaps", "reading gaps", gapTable) },
	}
	a = newAsking(cmd)
	a.text("source", "source", "source (default: all)")
	return cmd
}

// gapTable shows losses to a person, and how many there were at the end.
func gapTable(out printer) (show func([]byte) error, end func()) {
	widths := []int{23, 14, 5, 17, 21}
	n := 0
	show = func(line []byte) error {
		var g query.GapOut
		if err := json.Unmarshal(line, &g); err != nil {
			return err
		}
		if n == 0 {
			out.row(widths, "TIME (UTC)", "SOURCE", "EPOCH", "CAUSE", "MISSING SEQ", "LOST EVENTS")
		}
		n++
		when := g.TimeAfter
		if when == nil {
			when = g.Received
		}
		out.row(widths, clock(when), shorten(g.Source, widths[1]), fmt.Sprint(g.Epoch), g.Cause, missing(&g), lost(&g))
		return nil
	}
	end = func() {
		if n == 0 {
			out.row(nil, "No loss was seen.")
		}
	}
	return show, end
}

func missing(g *query.GapOut) string {
	switch {
	case g.FirstMissingOffset != nil:
		return fmt.Sprintf("offsets %d-%d", *g.FirstMissingOffset, *g.LastMissingOffset)
	case g.FirstMissingSeq == nil:
		return "-"
	case g.Cause == "damaged":
		return fmt.Sprintf("(is %d)", *g.FirstMissingSeq)
	case *g.FirstMissingSeq == *g.LastMissingSeq:
		return fmt.Sprint(*g.FirstMissingSeq)
	}
	return fmt.Sprintf("%d-%d", *g.FirstMissingSeq, *g.LastMissingSeq)
}

func lost(g *query.GapOut) string {
	switch {
	case g.LostEvents != nil:
		return number(*g.LostEvents)
	case g.LostEventsMin != nil && *g.LostEventsMin == *g.LostEventsMax:
		return number(*g.LostEventsMin)
	case g.LostEventsMin != nil:
		return number(*g.LostEventsMin) + " to " + number(*g.LostEventsMax)
	case g.Damage != "":
		return g.Damage
	case g.Cause == "reconnect":
		return "none by the numbers"
	}
	return "not known"
}
