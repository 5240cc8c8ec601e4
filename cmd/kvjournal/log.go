package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

func newLog() *cobra.Command {
	var a *asking
	var follow bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "What was recorded, event by event: also what is missing, and what became of the recorder",
		Long: `Prints what was recorded between two moments, in the order of offsets: each event, and between them each gap, each
damaged or repeated message, and when the connection and the recorder came and went.

With --key, every event of one object is shown; a cleared of its scope is one too (of every tenant, unless
--tenant names the object's).

--type takes stored, removed, cleared (or event for all three), gap, damaged, duplicate, empty, connected, disconnected,
recorder_started, recorder_stopped, tail_lost, publisher_status, reconciliation_begun, reconciliation_part,
reconciliation_ended (or fact for all that are no events), with commas between. Where objects are
chosen (--backend, --tenant, --key, --prefix, --medium), facts are left out unless --type asks for them.

--follow also waits while no recorder runs, and goes on when one does: nothing is shown twice and nothing is left out.

With --raw a message is shown if any of its events is wanted. Damaged messages are not among the payloads, since nothing
behind one could be read, unless --type damaged asks for them. --output json has all frames of each, in base64.

` + whenHelp,
		Example: `  kvjournal log --from 2026-11-29T12:00:00Z --to 2026-11-29T12:05:00Z
  kvjournal log --from -10m --type removed,cleared --tenant t1
  kvjournal log --key KEY
  kvjournal log --type fact                 # gaps, connections and recorders only
  kvjournal log --from -1m --follow         # and what comes from then on, until Ctrl-C
  kvjournal log --raw > messages.msgpack    # the payloads, one MessagePack value behind the other`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := logTable
			if raw, _ := cmd.Flags().GetBool("raw"); raw && a.output == "table" {
				if isTerminal(cmd.OutOrStdout()) {
					return usageError(errors.New("--raw writes bytes that a terminal cannot show: send them to a file (kvjournal log --raw … > FILE), or use --output json"))
				}
				table = a.payloads
			}
			if follow {
				return a.follow(cmd.Context(), table)
			}
			return a.ask("log", "reading the journal", table)
		},
	}
	a = newAsking(cmd)
	a.where()
	a.span()
	a.bytes("key", "object_key", "object_key (default: all)")
	a.bytes("prefix", "prefix", "object_keys that begin so")
	a.text("type", "type", "types of lines, with commas between (default: all)")
	a.text("medium", "medium", "medium (default: all)")
	a.number("limit", "limit", 0, "end after so many lines (default: all)")
	a.yes("raw", "raw", "the messages as they were received")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what is recorded from then on")
	return cmd
}

// payloads writes the payload of each message, as it was received.
func (a *asking) payloads(out printer) (show func([]byte) error, end func()) {
	damaged, all := 0, a.cmd.Flags().Changed("type")
	var frames [][]byte
	var buf []byte
	show = func(line []byte) error {
		// Before the type there are but numbers.
		_, rest, _ := bytes.Cut(line, []byte(`"type":"`))
		if !all && bytes.HasPrefix(rest, []byte(query.LogDamaged+`"`)) {
			damaged++
			return nil
		}
		if bytes.HasPrefix(rest, []byte("publisher_status")) || bytes.HasPrefix(rest, []byte("reconciliation_")) {
			return nil // no message of the publisher
		}
		var err error
		if frames, buf, err = query.FramesOf(line, frames[:0], buf[:0]); err != nil {
			return err
		}
		if len(frames) > 0 {
			_, err = out.Write(frames[len(frames)-1])
		}
		return err
	}
	end = func() {
		if damaged > 0 {
			fmt.Fprintf(a.cmd.ErrOrStderr(), "%s damaged messages are not in it; --type damaged writes them, --output json all\n", number(uint64(damaged)))
		}
	}
	return show, end
}

// logTable shows a line to a person.
func logTable(out printer) (show func([]byte) error, end func()) {
	widths := []int{10, 12, 11, 8, 6, 10}
	n := 0
	heading := ""
	show = func(line []byte) error {
		var l query.LogLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if n == 0 {
			out.row(widths, "OFFSET", "TIME (UTC)", "EPOCH/SEQ", "EVENT", "MEDIUM", "TENANT", "OBJECT")
		}
		n++
		at := time.Unix(0, l.Received).UTC()
		if l.HasTime {
			at = time.UnixMilli(l.Time).UTC()
		}
		if l.Gap != nil && l.Gap.TimeAfter != nil {
			at = l.Gap.TimeAfter.UTC()
		}
		if h := at.Format("2006-01-02") + ", source " + shorten(printable(query.Bytes(l.Source)), 60); h != heading {
			heading = h
			out.row(nil, "-- "+h)
		}
		place := "-"
		if l.HasSeq {
			place = fmt.Sprintf("%d/%d", l.Epoch, l.Seq)
		}
		cells := []string{fmt.Sprint(l.Offset), at.Format("15:04:05.000"), place}
		if l.Event == 0 {
			for i, text := range hanging(factText(&l), tableWidth-41, 3) {
				if i > 0 {
					cells = []string{"", "", ""}
				}
				out.row(widths, append(cells, text)...)
			}
			return nil
		}
		key := shorten(printable(l.Key), 31)
		if l.Type == "cleared" {
			key = "(all of " + shorten(printable(l.Backend), 21) + ")"
		}
		medium := shorten(l.Medium, widths[4])
		if medium == "" {
			medium = "-"
		}
		out.row(widths, append(cells, l.Type, medium, shorten(printable(l.Tenant), widths[5]), key)...)
		return nil
	}
	end = func() {
		if n == 0 {
			out.row(nil, "Nothing was recorded there that fits.")
		}
	}
	return show, end
}

// factText says what a line that is no event tells of.
func factText(l *query.LogLine) string {
	if g := l.Gap; g != nil {
		return "!! " + gapText(g) + "; all before is in doubt"
	}
	text := ""
	switch l.Type {
	case query.LogDamaged:
		return "!! damaged (" + l.Damage + "): kept raw, nothing of it applied; all before is in doubt"
	case query.LogDuplicate:
		return "   the same message again; changes nothing"
	case query.LogEmpty:
		return "   a message without events"
	case "connected":
		text = ".. connected"
	case "disconnected":
		return ".. connection lost; nothing is proven until it is there again"
	case "recorder_started":
		text = ".. recorder started"
	case "recorder_stopped":
		text = ".. recorder stopped"
	default:
		text = ".. " + strings.ReplaceAll(l.Type, "_", " ") + contentText(l)
	}
	if l.MarkCause != "" {
		text += "; all before is in doubt (" + l.MarkCause + ")"
	}
	return text
}

// gapText says what is missing.
func gapText(g *query.GapOut) string {
	switch {
	case g.FirstMissingOffset != nil:
		return fmt.Sprintf("the journal lost its offsets %d-%d", *g.FirstMissingOffset, *g.LastMissingOffset)
	case g.Cause == "publisher_restart" && g.FirstMissingSeq == nil:
		return g.Cause + ": another process; its numbers start over"
	case g.Cause == "reconnect":
		return g.Cause + ": nothing missing by the numbers"
	case g.FirstMissingSeq == nil:
		return g.Cause
	}
	text := fmt.Sprintf("%s: seq %s missing, ", g.Cause, missing(g))
	if g.LostEvents == nil && g.LostEventsMin == nil {
		return text + "number of events not known"
	}
	if n := lost(g); n != "1" {
		return text + n + " events lost"
	}
	return text + "1 event lost"
}
