package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManual writes what a package installs beside the program. It is hidden: `make manual` and `make install` call it.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:     "manual DIR",
		Short:   "Write man pages and completions of all commands, as they lie under /usr/share",
		Example: `  kvjournal manual /usr/local/share`,
		Hidden:  true,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := manualFiles(cmd.Root())
			if err != nil {
				return err
			}
			for _, name := range sortedKeys(files) {
				path := filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, files[name], 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// manualFiles are the pages and completions, by their paths below a share directory.
func manualFiles(root *cobra.Command) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, c := range append(root.Commands(), root) {
		if c == root || c.IsAvailableCommand() {
			files[filepath.Join("man", "man1", manName(c)+".1")] = []byte(manPage(c))
		}
	}
	for _, s := range []struct {
		path  string
		write func(*bytes.Buffer) error
	}{
		{"bash-completion/completions/kvjournal", func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) }},
		{"zsh/site-functions/_kvjournal", func(b *bytes.Buffer) error { return root.GenZshCompletion(b) }},
		{"fish/vendor_completions.d/kvjournal.fish", func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) }},
	} {
		var b bytes.Buffer
		if err := s.write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		files[filepath.FromSlash(s.path)] = b.Bytes()
	}
	return files, nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a command's page in roff, man(7).
func manPage(c *cobra.Command) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	c.InitDefaultHelpFlag()
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"kvjournal\" \"kvjournal\"\n", strings.ToUpper(roff(manName(c))))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(manName(c)), roff(lowerFirst(c.Short)))
	section("SYNOPSIS")
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		use = c.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, ".B %s\n", roff(use))
	section("DESCRIPTION")
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	b.WriteString(roffText(text))
	if c.HasAvailableSubCommands() {
		section("COMMANDS")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(manName(sub)), roffLine(sub.Short+"."))
			}
		}
	}
	section("OPTIONS")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			h := flagHelp(f)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(h[0])), roffLine(strings.ReplaceAll(h[1], "\n", " ")))
		}
	})
	manSettings(&b, c)
	if c.Example != "" {
		section("EXAMPLES")
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roffLines(c.Example))
	}
	section("EXIT STATUS")
	b.WriteString("0: answered, or done. 1: failed. 2: called wrongly.\n")
	section("SEE ALSO")
	b.WriteString(manSeeAlso(c))
	return b.String()
}

// manSettings says how environment and file set what flags do.
func manSettings(b *strings.Builder, c *cobra.Command) {
	names := settingsOf(c)
	if len(names) == 0 {
		return
	}
	b.WriteString(".SH ENVIRONMENT\n")
	b.WriteString(roffLine("An option that is not given is taken from the environment, or else from the file that --config or "+envName("config")+
		" names (TOML: name = \"value\", the option's name without the dashes).") + "\n")
	if c.Annotations[serviceAnnotation] != "" {
		b.WriteString(roffLine("What takes several values has them with blanks between. --endpoint, --master and --source come from one place together.") + "\n")
	}
	for _, name := range names {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(envName(name)), roffLine("as --"+name))
	}
}

func manSeeAlso(c *cobra.Command) string {
	var all []string
	for _, other := range append([]*cobra.Command{c.Root()}, c.Root().Commands()...) {
		if other != c && (other == c.Root() || other.IsAvailableCommand()) {
			all = append(all, ".BR "+roff(manName(other))+" (1)")
		}
	}
	return strings.Join(all, ",\n") + "\n"
}

// roffEscapes are the characters that roff takes for others, as quotes and dashes that no shell knows.
var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff escapes text that stands inside a line.
func roff(text string) string { return roffEscapes.Replace(text) }

// roffLine escapes a whole line: a dot at its beginning would be a request.
func roffLine(line string) string {
	line = roff(line)
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}

func roffLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = roffLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// roffText writes a help text: paragraphs are filled, indented lines stand as they are.
func roffText(text string) string {
	var b strings.Builder
	standing := false
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != standing && line != "" {
			standing = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[standing])
		}
		if line == "" {
			line = ".PP"
		} else {
			line = roffLine(line)
		}
		b.WriteString(line + "\n")
	}
	if standing {
		b.WriteString(".fi\n")
	}
	return b.String()
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
