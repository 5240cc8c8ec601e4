package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

func newStats() *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "What is recorded, how large it is, and where each source stands",
		Long: `What is recorded, how large it is, and where each source stands: whether it is connected, its newest sequence
number and batch, and how much was lost (see kvjournal gaps).

What stands at or below "durable offset" survives kill -9 and a loss of power.`,
		Example: `  kvjournal stats --dir /var/lib/kvjournal
  kvjournal stats --dir /var/lib/kvjournal --output json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printAnswer(cmd, dir, output, statsTable, func(t *target, show func([]byte) error) error {
				return t.stats(cmd.Context(), show)
			})
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	return cmd
}

func statsTable(out printer) (show func([]byte) error, end func()) {
	show = func(line []byte) error {
		var s query.StatsOut
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		w := []int{16}
		out.row(w, "events", fmt.Sprintf("%s in %s messages (%s duplicate, %s damaged)", number(s.Events), number(s.Messages), number(s.Duplicates), number(s.Damaged)))
		out.row(w, "live objects", number(s.ObjectsLive))
		out.row(w, "durable offset", number(s.DurableOffset))
		if h := s.Horizon; h != nil {
			out.row(w, "horizon", horizonText(h)+"; what came before was pruned")
		}
		if l := s.LostEnd; l != nil {
			out.row(w, "LOST", fmt.Sprintf("offsets %d to %d, which had been acknowledged, are gone from the journal's end", l.First, l.Last))
		}
		out.row(w, "journal", fmt.Sprintf("%s in tables, %s in logs; raw %s%s", bytesOf(s.Journal.Bytes), bytesOf(s.Journal.WALBytes), bytesOf(s.Journal.RawBytes), perEvent(s.Journal.BytesPerEvent, s.Journal.RawBytesPerEvent)))
		out.row(w, "index", fmt.Sprintf("%s%s; at offset %s, %s behind", bytesOf(s.Index.Bytes), perEvent(s.Index.BytesPerEvent, nil), number(s.Index.AppliedOffset), number(s.Index.Lag)))
		if r := s.Recorder; r != nil {
			out.row(w, "recorder", fmt.Sprintf("up %d s, buffer %s of %s", r.UptimeSeconds, bytesOf(uint64(r.BufferBytes)), bytesOf(uint64(r.BufferMaxBytes))))
			for i := range r.Sockets {
				if so := &r.Sockets[i]; so.LastError != "" {
					out.say("last trouble  " + socketTrouble(so))
				}
			}
			switch p := r.Paused; {
			case p != nil:
				out.row(w, "PAUSED", fmt.Sprintf("since %s: %s free on the disk, --min-free is %s", clock(&p.Since), bytesOf(p.FreeBytes), bytesOf(r.MinFreeBytes)))
			case r.DiskFull:
				out.row(w, "DISK FULL", "nothing can be written until there is room")
			}
		}
		if len(s.Sources) == 0 {
			out.row(w, "sources", "none yet")
			return nil
		}
		out.WriteByte('\n')
		sw := []int{16, 5, 12, 9, 11, 5, 5}
		out.row(sw, "SOURCE", "EPOCH", "SEQ", "CONNECTED", "EVENTS", "GAPS", "MARKS", "LAST BATCH (UTC)")
		for _, src := range s.Sources {
			connected := "no"
			if src.Connected {
				connected = "yes"
			}
			out.row(sw, shorten(printable(query.Bytes(src.Source)), sw[0]), fmt.Sprint(src.Epoch), fmt.Sprint(src.Seq), connected, number(src.Events), number(src.Gaps), number(src.Marks), clock(src.LastTime))
		}
		return nil
	}
	return show, func() {}
}

// socketTrouble says in a line what was wrong with an endpoint last.
func socketTrouble(s *query.SocketStats) string {
	state := "not connected"
	if s.Connected {
		state = "connected again"
	}
	return fmt.Sprintf("%s, %s, at %s: %s (%s)", shorten(printable(query.Bytes(s.Source)), 16), s.Endpoint, clock(s.LastErrorTime), s.LastError, state)
}

func perEvent(bytes, raw *float64) string {
	if bytes == nil {
		return ""
	}
	s := fmt.Sprintf(" (%.1f B an event", *bytes)
	if raw != nil {
		s += fmt.Sprintf(", raw %.1f", *raw)
	}
	return s + ")"
}
