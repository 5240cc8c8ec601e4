package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// changesShown is how many changes a table has where no other number is asked for.
const changesShown = 50

func newDiff() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "diff --from WHEN --to WHEN",
		Short: "What was gained and lost between two moments, on each medium",
		Long: `The objects that were present on a medium at one of two moments and not at the other, by what was last known of each:
gained, or lost. Sums by medium, tenant and group follow, with what happened in between that casts doubt on them.

Each change has the certainty of both ends: "confirmed" is never wrong about what the publisher had announced by that
moment. Where events were lost in between, objects may have changed of which nothing is listed here.

It reads the events between the moments, not the history before: its cost grows with the time between them.
Only a clear (a remove-all) in between costs more: all objects of that tenant are looked at.

A table shows the first 50 changes and the sums. JSON has all changes; with --summary, only one object with the sums.

` + whenHelp,
		Example: `  kvjournal diff --dir /var/lib/kvjournal --from -10m --to -5m
  kvjournal diff --dir DIR --from 2026-11-29T12:00:00Z --to 2026-11-29T12:03:00Z --medium cpu
  kvjournal diff --dir DIR --from offset:1200 --summary --output json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("from") {
				return usageError(fmt.Errorf("diff compares two moments: name the first with --from, as in --from -10m"))
			}
			if only, _ := cmd.Flags().GetBool("summary"); a.output == "table" && !only {
				a.fixed.Set("summary", "after")
				if !cmd.Flags().Changed("limit") {
					a.fixed.Set("limit", fmt.Sprint(changesShown))
				}
			}
			return a.ask("diff", "comparing", diffTable)
		},
	}
	a = newAsking(cmd)
	a.text("from", "from", "the first moment (needed)")
	a.text("to", "to", "the second moment (default: the newest indexed batch)")
	a.where()
	a.text("medium", "medium", "only this medium (default: all)")
	a.bytes("group", "group_id", "only objects of this group_id")
	a.bytes("prefix", "prefix", "only keys that begin with this")
	a.yes("summary", "summary", "only the sums")
	a.number("limit", "limit", 0, "at most this many changes; 0: all (default: 50 in a table, else all)")
	return cmd
}

// diffTable shows changes, and the summary, to a person.
func diffTable(out printer) (show func([]byte) error, end func()) {
	t := &diffShow{out: out}
	return t.show, func() {}
}

type diffShow struct {
	out   printer
	n     uint64
	scope string
}

var diffWidths = []int{26, 7, 21, 19, 19}

func (t *diffShow) show(line []byte) error {
	if bytes.HasPrefix(line, []byte(`{"gained":`)) {
		var s query.DiffSummary
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		t.summary(&s)
		return nil
	}
	var c query.ChangeOut
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	if t.n == 0 {
		t.out.row(diffWidths, "OBJECT", "CHANGE", "BY", "BEFORE", "AFTER")
	}
	t.n++
	if scope := scopeWords(&c.Name); scope != t.scope {
		t.scope = scope
		t.out.row(nil, shorten(scope, tableWidth))
	}
	sign := "+"
	if c.Change == query.Lost {
		sign = "-"
	}
	t.out.row(diffWidths, "  "+shorten(printable(c.Name.Key), diffWidths[0]-2), sign+shorten(printable(query.Bytes(c.Medium)), diffWidths[1]-1),
		shorten(changedBy(c.Event), diffWidths[2]), certaintyWords(c.CertaintyFrom, c.DoubtFrom), certaintyWords(c.CertaintyTo, c.DoubtTo))
	return nil
}

// changedBy tells in a few words the event that a change ended in.
func changedBy(e *query.EvidenceOut) string {
	switch {
	case e == nil:
		return "-"
	case e.Time != nil:
		s := fmt.Sprintf("%d/%d", e.Epoch, e.Seq)
		if e.Cause == "cleared" {
			s = "clear"
		}
		return s + " " + e.Time.UTC().Format("15:04:05.000")
	}
	return fmt.Sprintf("%s %d/%d", e.Cause, e.Epoch, e.Seq)
}

func certaintyWords(certainty string, d *query.Doubt) string {
	if certainty == query.Confirmed || d == nil {
		return certainty
	}
	if d.Cause == query.DoubtNoEvidence {
		return "not known"
	}
	return "? " + shorten(d.Cause, 17)
}

func (t *diffShow) summary(s *query.DiffSummary) {
	out := t.out
	changes := s.Gained + s.Lost
	switch {
	case changes == 0:
		out.row(nil, "No object was gained or lost, by what is known.")
	case t.n == 0:
	case changes > t.n:
		out.row(nil, fmt.Sprintf("… and %s more: see all with --limit 0", number(changes-t.n)))
		fallthrough
	default:
		out.row(nil, "  +: gained on a medium, -: lost. BY: epoch/seq and publisher time of the event.")
		out.row(nil)
	}
	for i := range s.From {
		out.row(nil, "from  "+sourceAsOf(&s.From[i]))
		if i < len(s.To) {
			out.row(nil, "to    "+sourceAsOf(&s.To[i]))
		}
	}
	sure := s.GainedConfirmed + s.LostConfirmed
	out.say(fmt.Sprintf("%s %s between, %s %s of %s %s; what %s of them came to is confirmed", number(s.Events), query.Plural(s.Events, "event", "events"),
		number(changes), query.Plural(changes, "change", "changes"), number(s.Objects), query.Plural(s.Objects, "object", "objects"), number(sure)))
	if changes > 0 {
		t.tallies(s)
	}
	out.row(nil)
	for _, line := range doubtWords(s) {
		out.say(line)
	}
}

// groupsShown is how many groups a table lists.
const groupsShown = 10

func (t *diffShow) tallies(s *query.DiffSummary) {
	widths := []int{46, 12, 12, 12, 12}
	row := func(name string, c *query.ChangeTally) {
		t.out.row(widths, shorten(name, widths[0]), number(c.Gained), number(c.Lost), number(c.Gained+c.Lost-c.GainedConfirmed-c.LostConfirmed))
	}
	rest := func(n int, o *query.OtherChanges, what string, more *query.ChangeTally) {
		if o != nil {
			n += int(o.Number)
			more.Gained, more.Lost = more.Gained+o.Gained, more.Lost+o.Lost
			more.GainedConfirmed, more.LostConfirmed = more.GainedConfirmed+o.GainedConfirmed, more.LostConfirmed+o.LostConfirmed
		}
		if n > 0 {
			row(fmt.Sprintf("(%s more %s)", number(uint64(n)), what), more)
		}
	}
	sum := func(a, b *query.ChangeTally) {
		a.Gained, a.Lost = a.Gained+b.Gained, a.Lost+b.Lost
		a.GainedConfirmed, a.LostConfirmed = a.GainedConfirmed+b.GainedConfirmed, a.LostConfirmed+b.LostConfirmed
	}
	t.out.row(nil)
	t.out.row(widths, "MEDIUM", "GAINED", "LOST", "UNCERTAIN")
	var more query.ChangeTally
	for i := range s.Media {
		row(printable(query.Bytes(s.Media[i].Medium)), &s.Media[i].ChangeTally)
	}
	rest(0, s.OtherMedia, "media", &more)

	t.out.row(nil)
	t.out.row(widths, "TENANT (SOURCE, BACKEND)", "GAINED", "LOST", "UNCERTAIN")
	more = query.ChangeTally{}
	for i := range s.Tenants {
		if i < tenantsShown {
			row(scopeWords(&s.Tenants[i].Name), &s.Tenants[i].ChangeTally)
		} else {
			sum(&more, &s.Tenants[i].ChangeTally)
		}
	}
	rest(max(0, len(s.Tenants)-tenantsShown), s.OtherTenants, "tenants", &more)
	if len(s.Groups) == 0 {
		return
	}
	t.out.row(nil)
	t.out.row(widths, "GROUP", "GAINED", "LOST", "UNCERTAIN")
	more = query.ChangeTally{}
	for i := range s.Groups {
		if i < groupsShown {
			row(printable(s.Groups[i].Group), &s.Groups[i].ChangeTally)
		} else {
			sum(&more, &s.Groups[i].ChangeTally)
		}
	}
	rest(max(0, len(s.Groups)-groupsShown), s.OtherGroups, "groups", &more)
	if s.WithoutGroup != nil {
		row("(without a group)", s.WithoutGroup)
	}
}

// doubtWords tells what happened between the moments that casts doubt on a comparison.
func doubtWords(s *query.DiffSummary) []string {
	if s.Marks == 0 && len(s.Gaps) == 0 && s.Clears == 0 {
		return []string{"Nothing in between casts doubt: no gap, no restart, no clear."}
	}
	var lines []string
	if len(s.Gaps) > 0 {
		var gaps []string
		for _, g := range s.Gaps {
			text := fmt.Sprintf("%s %s", number(g.Gaps), g.Cause)
			switch {
			case g.NotKnown == g.Gaps:
				text += " (events lost: not known)"
			case g.LostEventsMin == g.LostEventsMax && g.NotKnown == 0:
				text += fmt.Sprintf(" (%s events lost)", number(g.LostEventsMin))
			case g.NotKnown == 0:
				text += fmt.Sprintf(" (%s to %s events lost)", number(g.LostEventsMin), number(g.LostEventsMax))
			default:
				text += fmt.Sprintf(" (at least %s events lost)", number(g.LostEventsMin))
			}
			gaps = append(gaps, text)
		}
		lines = append(lines, "IN DOUBT: in between there was a gap or a restart: "+strings.Join(gaps, ", ")+
			". What the lost events told of is not listed, unless a later event showed it; objects that were present before and have no newer event are uncertain now. See `kvjournal gaps`.")
	} else if s.Marks > 0 {
		lines = append(lines, fmt.Sprintf("IN DOUBT: %s %s in between, without a gap in the numbers: what was known before is uncertain now.", number(s.Marks), query.Plural(s.Marks, "mark", "marks")))
	}
	if s.Restarts > 0 {
		lines = append(lines, "After a restart of the publisher, what it held before is most likely gone, though no event says so.")
	}
	if s.Clears > 0 {
		lines = append(lines, fmt.Sprintf("%s %s in between: objects lost by %s are uncertain, because what was stored meanwhile may have survived.", number(s.Clears), query.Plural(s.Clears, "clear", "clears"), query.Plural(s.Clears, "it", "them")))
	}
	return lines
}
