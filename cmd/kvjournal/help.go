package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandGroups are the headings of the list of commands; what no other names stands under the last.
var commandGroups = []struct {
	title string
	names []string
}{
	{"Where things are, and how it came to that", []string{"lookup", "objects", "why", "history", "diff", "lifetimes"}},
	{"What was recorded, and what was lost", []string{"gaps", "activity", "log", "stats"}},
	{"Data in and out", []string{"record", "import", "export", "backup", "restore"}},
	{"When something is wrong", []string{"verify", "repair", "rebuild"}},
	{"More", nil},
}

// helpOn prints a command's help: what it does, how it is called, examples, commands and flags, in lines that fit.
func helpOn(cmd *cobra.Command, _ []string) {
	fmt.Fprint(cmd.OutOrStdout(), helpText(cmd))
}

func helpText(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, strings.Join(lines, "\n"))
		}
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(strings.Join(reflow(text, tableWidth), "\n") + "\n")
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND [flags]"
	}
	section("Usage", []string{"  " + usage})
	if cmd.Example != "" {
		section("Examples", strings.Split(cmd.Example, "\n"))
	}
	listed := map[string]bool{}
	for _, g := range commandGroups {
		var rows [][2]string
		for _, c := range cmd.Commands() {
			if !listed[c.Name()] && c.IsAvailableCommand() && (len(g.names) == 0 || slices.Contains(g.names, c.Name())) {
				listed[c.Name()] = true
				rows = append(rows, [2]string{"  " + c.Name(), c.Short})
			}
		}
		section(g.title, twoColumns(rows))
	}
	var flags [][2]string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, flagHelp(f))
		}
	})
	section("Flags", twoColumns(flags))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nMore of each: %s COMMAND --help.\n", cmd.CommandPath())
	}
	return b.String()
}

// flagHelp is a flag as it is written, and what it does.
func flagHelp(f *pflag.Flag) [2]string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	switch t := f.Value.Type(); {
	case t == "bool":
	case kind == "directory", f.Name == "dir":
		name += " DIR"
	case f.Name == "at" || f.Name == "from" || f.Name == "to":
		name += " WHEN"
	case f.Name == "out" || f.Name == "snapshot" || f.Name == "config" || f.Name == "master-ca" || strings.HasSuffix(f.Name, "-file"):
		name += " FILE"
	case kind == "string", kind == "stringArray":
		name += " " + strings.ToUpper(f.Name)
	case kind == "uint" || kind == "int":
		name += " N"
	default:
		name += " " + strings.ToUpper(kind)
	}
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
		return [2]string{name, usage}
	}
	return [2]string{name, usage + " (default: " + f.DefValue + ")"}
}

// twoColumns writes names and what they are, the latter broken into lines.
func twoColumns(rows [][2]string) (lines []string) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, columns(r[0]))
	}
	for _, r := range rows {
		for i, text := range paragraph(r[1], tableWidth-wide-3) {
			name := ""
			if i == 0 {
				name = r[0]
			}
			lines = append(lines, name+strings.Repeat(" ", wide-columns(name)+3)+text)
		}
	}
	return lines
}

// reflow breaks the paragraphs of a text anew. Lines that are indented stand as they are, and so does a paragraph that ends in one.
func reflow(text string, width int) (lines []string) {
	begun := false // a paragraph that the next line goes on with
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line == "", strings.HasPrefix(line, " "):
			lines, begun = append(lines, line), false
		case begun:
			last := len(lines) - 1
			lines = append(lines[:last], paragraph(lines[last]+" "+line, width)...)
		default:
			lines, begun = append(lines, paragraph(line, width)...), true
		}
	}
	return lines
}
