package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

func newWhy() *cobra.Command {
	var a *asking
	var key oneKey
	cmd := &cobra.Command{
		Use:   "why KEY",
		Short: "The story behind an answer: what was known, what casts doubt on it, what to look at next",
		Long: `What lookup answers for an object at a moment, told in sentences: which events led to it, what was lost and where, what
would have to be true for the answer to be wrong, and what to look at next.

It speaks of the stream: what the publisher had announced by the moment; a change still in its queue comes later.

` + whenHelp,
		Example: `  kvjournal why --dir /var/lib/kvjournal 7b3e52f4…_0_k
  kvjournal why --dir DIR --tenant tenant-1 --at 2026-11-29T12:03:00Z KEY`,
		Args: key.args,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := key.of(a, args); err != nil {
				return err
			}
			return a.ask("why", "looking back", func(out printer) (func([]byte) error, func()) { return whyTable(out, a.dir) })
		},
	}
	a = newAsking(cmd)
	a.object()
	a.text("at", "at", "the moment (default: as of the newest indexed batch)")
	key.flags(cmd)
	return cmd
}

// whyTable tells stories to a person. Commands get the directory's flag, so that they can be run as they stand.
func whyTable(out printer, dir string) (show func([]byte) error, end func()) {
	first := true
	show = func(line []byte) error {
		var w query.WhyOut
		if err := json.Unmarshal(line, &w); err != nil {
			return err
		}
		if !first {
			out.row(nil)
		}
		first = false
		out.row(nil, shorten(printable(w.Key), tableWidth))
		where := "  "
		if w.Source != "" {
			where += "source " + w.Source + ", "
		}
		if w.Backend != nil {
			where += "backend " + printable(w.Backend) + ", "
		}
		out.row(nil, shorten(where+"tenant "+printable(w.Tenant), tableWidth))
		out.row(nil)
		for _, s := range w.Story {
			item(out, "", s.Text)
		}
		if hint := cutKeyHint(w.Key); hint != "" && unheard(w.Answer) {
			item(out, "", hint)
		}
		if len(w.WrongIf) > 0 {
			out.row(nil)
			out.row(nil, "What could make it otherwise:")
			for _, s := range w.WrongIf {
				item(out, "- ", s)
			}
		}
		out.row(nil)
		out.row(nil, "Next:")
		for _, n := range w.Next {
			item(out, "- ", n.Text)
			if n.Command != "" {
				whyCommand(out, inDir(n.Command, dir))
			}
		}
		return nil
	}
	return show, func() {}
}

// commandWidth is how long a command may be that is shown to be copied: some lines of a terminal. Longer ones hold a long key.
const commandWidth = 1000

func whyCommand(out printer, command string) {
	if len(command) > commandWidth {
		out.row(nil, "    "+shorten(command, tableWidth-4))
		out.row(nil, "    (cut, since the key is long; whole with --output json)")
		return
	}
	out.row(nil, "    "+command)
}

// item writes a sentence, indented, its first line behind a sign.
func item(out printer, sign, text string) {
	// What comes from the stream may be hostile.
	for i, s := range paragraph(harmless(text), tableWidth-4) {
		if i > 0 {
			sign = strings.Repeat(" ", len(sign))
		}
		out.row(nil, "  "+sign+s)
	}
}

// inDir puts the directory into a command.
func inDir(command, dir string) string {
	program, rest, _ := strings.Cut(command, " ")
	sub, rest, more := strings.Cut(rest, " ")
	s := program + " " + sub + " --dir " + shellQuote(dir)
	if more {
		s += " " + rest
	}
	return s
}
