package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// historyShown is how many lines a table has of each object where nothing else is asked for.
const historyShown = 100

func newHistory() *cobra.Command {
	var a *asking
	var key oneKey
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "All that touched one object, and what was known of it after each",
		Long: `What touched one object, in order: each stored and removed, each cleared of its scope (tenant and backend), each reading of
the master that says something of it (a correction is what it found to be otherwise), and each
mark: a place in the stream of its source behind which all that was known before is in doubt. From the object's first
event on; a mark or a clear before that touched nothing.

AFTER is where the object was behind the line, as lookup --at offset:N would say: + is present, - is absent, and ?
means uncertain; then why. A line that the same batch goes on from is uncertain: a batch is announced as a whole.

Without --limit the table has the newest 100 lines of each object, JSON has all. With --from, --limit counts from there.

` + whenHelp,
		Example: `  kvjournal history --dir /var/lib/kvjournal 7b3e52f4…_0_k
  kvjournal history --dir DIR --tenant tenant-1 --from -10m --limit 20 KEY
  kvjournal history --dir DIR --output json --raw KEY`,
		Args: key.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := key.of(a, args); err != nil {
				return err
			}
			if a.output == "table" {
				a.fixed.Set("notes", "true")
				if !cmd.Flags().Changed("limit") {
					a.fixed.Set("limit", strconv.Itoa(historyShown))
				}
			}
			return a.ask("history", "reading the history", historyTable)
		},
	}
	a = newAsking(cmd)
	a.object()
	a.span()
	a.number("limit", "limit", 0, "at most this many lines of each object; 0: all (default: 100 in a table, else all)")
	a.yes("raw", "raw", "the original events too, with all their fields")
	key.flags(cmd)
	return cmd
}

// object adds the flags that say which object of that key.
func (a *asking) object() {
	a.text("source", "source", "source (default: whichever has it)")
	a.bytes("backend", "backend_id", "backend_id (default: whichever has it)")
	a.bytes("tenant", "tenant_id", `tenant_id (default: "default")`)
}

var historyWidths = []int{12, 9, 11, 14, 22}

// historyTable shows histories to a person.
func historyTable(out printer) (show func([]byte) error, end func()) {
	h := &historyShow{out: out}
	return h.show, func() {}
}

type historyShow struct {
	out   printer
	day   string
	lines int // of this object
	note  query.HistoryNote
}

func (h *historyShow) show(line []byte) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case query.NoteObject, query.NoteRest, query.NoteNever:
		var n query.HistoryNote
		if err := json.Unmarshal(line, &n); err != nil {
			return err
		}
		h.showNote(&n)
		return nil
	}
	var l query.HistoryLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	h.showLine(&l)
	return nil
}

func (h *historyShow) showNote(n *query.HistoryNote) {
	switch n.Kind {
	case query.NoteObject:
		if h.note.Kind != "" {
			h.out.row(nil)
		}
		h.out.row(nil, shorten(printable(n.Key), tableWidth))
		h.out.row(nil, fmt.Sprintf("  source %s, backend %s, tenant %s", shorten(printable(query.Bytes(n.Source)), 24), shorten(printable(n.Backend), 24), shorten(printable(n.Tenant), 24)))
		h.note, h.day, h.lines = *n, "", 0
	case query.NoteRest:
		switch {
		case h.lines == 0:
			h.out.row(nil, "  Nothing touched it in this span.")
			h.out.row(nil, "  Its first event is at "+spot(h.note.First)+".")
			h.out.row(nil, "  Its newest is at "+spot(h.note.Last)+".")
		case n.Older != 0:
			h.out.row(nil, fmt.Sprintf("  Older lines are left out: see them with --to offset:%d, or all with --limit 0.", n.Older))
		case n.Newer != 0:
			h.out.row(nil, fmt.Sprintf("  Newer lines are left out: go on with --from offset:%d, or see all with --limit 0.", n.Newer))
		}
	case query.NoteNever:
		h.out.row(nil, "No event that was recorded ever named this object.")
		elsewhereRows(h.out, n.Elsewhere)
		if hint := cutKeyHint(n.Key); hint != "" {
			h.out.say(hint)
		} else if len(n.Elsewhere) == 0 {
			h.out.say("Look at the key's spelling (a key of any bytes goes in with --base64), at --tenant, and at `kvjournal gaps`: an event that was lost may have named it.")
		}
	}
}

func spot(e *query.EvidenceOut) string {
	if e == nil {
		return "-"
	}
	s := fmt.Sprintf("offset %d", e.Offset)
	if e.Time != nil {
		s += ", " + clock(e.Time)
	}
	return s
}

func (h *historyShow) showLine(l *query.HistoryLine) {
	if h.lines == 0 {
		h.out.row(historyWidths, "TIME (UTC)", "OFFSET", "EPOCH/SEQ", "WHAT", "AFTER", "DOUBT")
	}
	h.lines++
	when := l.Time
	if when == nil {
		when = l.Received
	}
	at := "-"
	if when != nil {
		day := when.UTC().Format("2006-01-02")
		if day != h.day {
			h.day = day
			h.out.row(nil, day)
		}
		at = when.UTC().Format("15:04:05.000")
	}
	if l.Time == nil && at != "-" {
		at = "~" + at[:len(at)-1] // our clock, not the publisher's
	}
	seq := "-"
	if l.Seq != nil {
		seq = fmt.Sprintf("%d/%d", l.Epoch, *l.Seq)
	}
	if l.Kind == query.KindMark {
		h.out.row(historyWidths[:3], at, strconv.FormatUint(l.Offset, 10), seq, "MARK "+l.Mark.Cause)
		for _, s := range paragraph(markText(l), tableWidth-14) {
			h.out.row(nil, "              "+s)
		}
		return
	}
	what := l.Kind
	if l.Medium != "" {
		what += " " + printable(query.Bytes(l.Medium))
	}
	cells := []string{at, strconv.FormatUint(l.Offset, 10), seq, shorten(what, historyWidths[3]), shorten(after(l), historyWidths[4])}
	if d := doubts(l); d != "" {
		cells = append(cells, d)
	}
	h.out.row(historyWidths, cells...)
	if l.Reading != nil {
		for _, line := range paragraph(readingText(l), tableWidth-14) {
			h.out.row(nil, "              "+line)
		}
	}
	if l.Event == nil {
		return
	}
	h.raw("event", l.Event)
	h.raw("batch", l.Batch)
}

// readingText tells of a reading of the master.
func readingText(l *query.HistoryLine) string {
	s := "The master was read, and says the same as was known"
	if l.Kind == query.KindCorrection {
		s = "The master was read, and has it on " + printable(query.Bytes(l.Medium))
		if l.State == query.Absent {
			s = "The master was read, and does not have it on " + printable(query.Bytes(l.Medium))
		}
		s += ", other than was known"
	}
	s += " (" + strings.ReplaceAll(l.Reading.Why, "_", " ")
	if l.Reading.From != "" {
		s += ", " + shorten(printable(query.Bytes(l.Reading.From)), 50)
	}
	return s + fmt.Sprintf("; it ended at offset %d).", l.Reading.Ended)
}

// after tells where the object was behind a line.
func after(l *query.HistoryLine) string {
	var names []string
	for name := range l.Media {
		names = append(names, name)
	}
	sort.Strings(names)
	var s []string
	for _, name := range names {
		m := l.Media[name]
		sign := "-"
		if m.State == query.Present {
			sign = "+"
		}
		if m.Certainty != query.Confirmed {
			sign += "?"
		}
		s = append(s, sign+shorten(printable(query.Bytes(name)), 10))
	}
	if l.MediaLeftOut > 0 {
		s = append(s, fmt.Sprintf("and %d more", l.MediaLeftOut))
	}
	return strings.Join(s, " ")
}

// doubts names what casts doubt on the state behind a line, each once.
func doubts(l *query.HistoryLine) string {
	var s []string
	for _, m := range l.Media {
		if m.Doubt != nil && !slices.Contains(s, m.Doubt.Cause) {
			s = append(s, m.Doubt.Cause)
		}
	}
	slices.Sort(s)
	return shorten(strings.Join(s, ", "), tableWidth-78)
}

// markText tells of a mark in a sentence or two.
func markText(l *query.HistoryLine) string {
	m := l.Mark
	var s string
	if g := m.Gap; g != nil {
		s = historyGap(g)
		if m.Losses > 1 {
			more := ""
			if m.LossesMore {
				more = "more than "
			}
			s += fmt.Sprintf(", the first of %s%d losses up to offset %d", more, m.Losses, m.ExtendsTo.Offset)
		}
		s += ". "
	} else if m.ExtendsTo != nil {
		s = fmt.Sprintf("Up to offset %d. ", m.ExtendsTo.Offset)
	}
	s += "What was known before is in doubt"
	if m.Shadow {
		s += ", and what this batch itself says is no proof: it stands in the shadow of the loss (lost events may be newer)"
	}
	return s + ". Last known: " + after(l) + "."
}

// historyGap tells what is missing.
func historyGap(g *query.GapOut) string {
	switch {
	case g.FirstMissingOffset != nil:
		return fmt.Sprintf("The journal lost its offsets %d to %d", *g.FirstMissingOffset, *g.LastMissingOffset)
	case g.Damage != "":
		return "The message could not be decoded (" + g.Damage + ")"
	case g.FirstMissingSeq == nil && g.Cause == "publisher_restart":
		return "Another publisher process began; the first of its messages was seen"
	case g.FirstMissingSeq == nil:
		return "The numbers go on; that proves nothing across connections"
	}
	return fmt.Sprintf("Missing: seq %s; lost events: %s", missing(g), lost(g))
}

// raw shows a JSON object to a person, a field a line.
func (h *historyShow) raw(what string, object json.RawMessage) {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return
		}
		h.out.row(nil, "    "+shorten(harmless(fmt.Sprintf("%s %s: %s", what, name, v)), tableWidth-4))
	}
}

// shellQuote writes s so that a shell reads it as one word.
func shellQuote(s string) string { return query.ShellWord(s) }
