package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// gapCauses says of each cause what it is and what to do, in the order in which help has them.
var gapCauses = []struct{ name, what, do string }{
	{"publisher_queue", "the publisher's own queue overflowed and dropped its oldest events",
		"on the master's host: make its event queue larger, give its sending thread CPU"},
	{"transport", "messages vanished on the way, as at a socket's high-water mark",
		"on the master's host: raise the ZMQ send high-water mark; then look at the network and this host's load"},
	{"recorder_slow", "messages vanished while kvjournal's own buffer was full",
		"on this host: a faster disk or fewer neighbours; `record --buffer` helps with bursts only"},
	{"publisher_restart", "another publisher process; its numbers start over",
		"on the master's host: see in its log why it ended; if that was planned, nothing"},
	{"late_join", "the recorder joined a stream that ran already",
		"nothing; to miss nothing, start kvjournal before the master"},
	{"disconnected", "the connection broke and the numbers jumped",
		"look at the network between the hosts, and in the master's log for a restart at that time"},
	{"reconnect", "the connection broke; the numbers go on, which proves nothing",
		"look at the network between the hosts; probably nothing is missing"},
	{"recorder_down", "no recorder ran, or it paused for want of room on the disk",
		"on this host: see in kvjournal's log why (`journalctl -u kvjournal`, if it is a service); `record --min-free`"},
	{"tail_loss", "the publisher's counters say that it sent more than arrived",
		"on the master's host: as for transport"},
	{"damaged", "a message that could not be decoded, kept raw, or offsets that this journal lost",
		"compare the master's version with the spec; where offsets are missing, check this host's disk"},
	{"silent", "the master changed something without an event, or lost a segment",
		"a restart of the master takes its segments, too; else update it: until then only a reading of it confirms presence"},
	{"unknown", "numbers are missing and no event_id tells why",
		"let the publisher send event ids; look at its queue and at the network"},
}

func gapHelp() string {
	var b strings.Builder
	for _, c := range gapCauses {
		for _, line := range append(hanging("  "+c.name+": "+c.what+".", tableWidth, 4), hanging("      "+c.do, tableWidth, 6)...) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func newGaps() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "What was lost: each gap, restart and damaged message, why, and what it put in doubt",
		Long: `Each loss as a later message showed it: how many sequence numbers are missing, how many events that was where it
can be told, the cause, and how many objects it put in doubt.

TIME is the publisher's time of the message that showed it, and it happened WITHIN so long before: since the message
before the loss.

OBJECTS IN DOUBT is "newly of present": so many objects were surely present until the loss and no longer are, of so many
that were present then as last known. The rest was in doubt already. An object is sure again with its next event.
JSON has the scopes too (in_doubt). Counting takes a pass over all objects; --no-objects leaves it out.

RESOLVED names the first reading of the master behind the loss (JSON: resolved_by). It resolves the doubts of the tenants
that it covered, and of no others: the master shows the tenant "default" only, and other tenants stay in doubt unless
a snapshot file covers them (kvjournal reconcile --snapshot). What the master gave no answer about stays in doubt too.

Where the master's counters were read before and after the loss, the line below says what they tell (JSON:
attribution): whether its own queue dropped what is missing, or whether it was lost on the way.

--summary counts the losses by cause and hour.

The causes, and what to do:

` + gapHelp() + `
` + whenHelp,
		Example: `  kvjournal gaps --dir /var/lib/kvjournal
  kvjournal gaps --dir /var/lib/kvjournal --from -1h --no-objects
  kvjournal gaps --dir /var/lib/kvjournal --summary --output json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := gapTable
			if summary, err := cmd.Flags().GetBool("summary"); err == nil && summary {
				table = gapSummaryTable
			}
			a.nothing = a.sayNothingLost
			return a.ask("gaps", "counting objects in doubt", table)
		},
	}
	a = newAsking(cmd)
	a.text("source", "source", "source (default: all)")
	a.span()
	a.yes("summary", "summary", "count by cause and hour")
	a.yes("no-objects", "no_objects", "leave out the objects in doubt")
	return cmd
}

// gapTable shows losses to a person, source by source, and at the end what to do about each cause.
func gapTable(out printer) (show func([]byte) error, end func()) {
	widths := []int{12, 8, 17, missingWidth, 15}
	n, heading := 0, ""
	causes := map[string]bool{}
	show = func(line []byte) error {
		var g query.GapOut
		if err := json.Unmarshal(line, &g); err != nil {
			return err
		}
		when := g.TimeAfter
		if when == nil {
			when = g.Received
		}
		day, at, _ := strings.Cut(clock(when), " ")
		if n == 0 {
			out.row(widths, "TIME (UTC)", "WITHIN", "CAUSE", "MISSING SEQ", "LOST EVENTS", "OBJECTS IN DOUBT")
		}
		if h := "-- " + day + ", source " + shorten(printable(query.Bytes(g.Source)), 60); h != heading {
			heading = h
			out.row(nil, h)
		}
		n++
		causes[g.Cause] = true
		out.row(widths, at, within(&g), g.Cause, missing(&g), lost(&g), inDoubt(g.InDoubt))
		if a := g.Attribution; a != nil {
			for _, line := range paragraph(a.Text, tableWidth-14) {
				out.row(nil, strings.Repeat(" ", 14)+line)
			}
		}
		if r := g.ResolvedBy; r != nil {
			for _, line := range paragraph(resolvedText(r), tableWidth-14) {
				out.row(nil, strings.Repeat(" ", 14)+line)
			}
		}
		return nil
	}
	end = func() {
		if n > 0 {
			adviseOn(out, causes)
		}
	}
	return show, end
}

// resolvedText tells what resolved a loss.
func resolvedText(r *query.ResolvedOut) string {
	var tenants []string
	for i, t := range r.TenantsBase64 {
		if i == 3 {
			break
		}
		tenants = append(tenants, shorten(printable(query.Bytes(t)), 24))
	}
	s := "RESOLVED for tenant " + strings.Join(tenants, ", ")
	if len(tenants) == 0 {
		s = "The master was read, but no tenant was covered,"
	}
	if more := r.TenantsTotal - len(tenants); more > 0 {
		s += fmt.Sprintf(" and %s more", number(uint64(more)))
	}
	return fmt.Sprintf("%s: the master was read by %s (offset %d, %s), %s corrections, %s.", s, clock(r.Time), r.Offset, strings.ReplaceAll(r.Why, "_", " "), number(uint64(r.Corrections)), span(r.TookMs))
}

// adviseOn says what to do about each of the causes.
func adviseOn(out printer, causes map[string]bool) {
	out.row(nil)
	for _, c := range gapCauses {
		if causes[c.name] {
			out.say(c.name + ": " + c.what + ".")
			out.say("  " + c.do + ".")
		}
	}
}

// within tells how long before the loss showed it may have begun: the time between the batches around it.
func within(g *query.GapOut) string {
	if g.TimeBefore == nil || g.TimeAfter == nil || g.TimeAfter.Before(g.TimeBefore.Time) {
		return "-"
	}
	return span(g.TimeAfter.Sub(g.TimeBefore.Time).Milliseconds())
}

// missingWidth is how wide missing numbers are shown.
const missingWidth = 20

// missing shows the missing numbers, with the epoch before them as in seq:EPOCH/N.
func missing(g *query.GapOut) string {
	switch {
	case g.FirstMissingOffset != nil:
		return fmt.Sprintf("offsets %d-%d", *g.FirstMissingOffset, *g.LastMissingOffset)
	case g.FirstMissingSeq == nil:
		return fmt.Sprintf("- (epoch %d)", g.Epoch)
	case g.Cause == "damaged":
		return fmt.Sprintf("(is %d/%d)", g.Epoch, *g.FirstMissingSeq)
	case *g.FirstMissingSeq == *g.LastMissingSeq:
		return fmt.Sprintf("%d/%d", g.Epoch, *g.FirstMissingSeq)
	}
	s := fmt.Sprintf("%d/%d-%d", g.Epoch, *g.FirstMissingSeq, *g.LastMissingSeq)
	if len(s) > missingWidth {
		s = fmt.Sprintf("%d/%d +%s", g.Epoch, *g.FirstMissingSeq, roughly(*g.LastMissingSeq-*g.FirstMissingSeq))
	}
	return s
}

func lost(g *query.GapOut) string {
	switch {
	case g.LostEvents != nil:
		return roughly(*g.LostEvents)
	case g.LostEventsMin != nil:
		return between(*g.LostEventsMin, *g.LostEventsMax)
	case g.Damage != "":
		return shorten(g.Damage, 16)
	case g.Cause == "reconnect":
		return "none, it seems"
	}
	return "not known"
}

func between(least, most uint64) string {
	if least == most {
		return roughly(least)
	}
	return roughly(least) + "-" + roughly(most)
}

func inDoubt(d *query.InDoubt) string {
	switch {
	case d == nil:
		return "not counted"
	case d.Objects == 0 && d.AlreadyInDoubt == 0:
		return "none"
	}
	return roughly(d.Objects) + " of " + roughly(d.Objects+d.AlreadyInDoubt)
}

// roughly shows a number in 7 characters at most.
func roughly(n uint64) string {
	if n < 1e6 {
		return number(n)
	}
	f, unit := float64(n), 0
	for f >= 999.95 && unit < 6 {
		f, unit = f/1000, unit+1
	}
	return fmt.Sprintf("%.1f%c", f, " kMGTPE"[unit])
}

// gapSummaryTable shows losses by cause and hour.
func gapSummaryTable(out printer) (show func([]byte) error, end func()) {
	widths := []int{17, 17, 8, 12, 19}
	causes := map[string]bool{}
	show = func(line []byte) error {
		var h query.GapsHour
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		if len(causes) == 0 {
			out.row(widths, "HOUR (UTC)", "CAUSE", "LOSSES", "MISSING SEQS", "LOST EVENTS", "OBJECTS IN DOUBT")
		}
		causes[h.Cause] = true
		hour := "not known"
		if h.Hour != nil {
			hour = h.Hour.UTC().Format("2006-01-02 15:04")
		}
		events := "not known"
		if h.LostEventsMin != nil {
			events = between(*h.LostEventsMin, *h.LostEventsMax)
			if h.NotKnown > 0 {
				events += " + ?"
			}
		}
		objects := "not counted"
		if h.ObjectsInDoubt != nil {
			objects = roughly(*h.ObjectsInDoubt)
		}
		out.row(widths, hour, h.Cause, roughly(h.Losses), roughly(h.MissingSeqs), events, objects)
		return nil
	}
	end = func() {
		if len(causes) > 0 {
			adviseOn(out, causes)
		}
	}
	return show, end
}
