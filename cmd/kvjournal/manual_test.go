package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown are the commands that a user sees, and the flags of one.
func shown(root *cobra.Command) (commands []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			commands = append(commands, c)
		}
	}
	return commands
}

func shownFlags(c *cobra.Command) (names []string) {
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// rendered is a page as a terminal shows it, in one line of words; roff's warnings are errors.
func rendered(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("man", "--warnings=w", "-l", path)
	cmd.Env = append(os.Environ(), "MANWIDTH=1000", "LC_ALL=C.UTF-8", "MANROFFOPT=-rHY=0", "TERM=dumb")
	r := runCommand(t, cmd, "")
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("man -l %s: exit %d, %s", path, r.code, r.stderr)
	}
	return strings.Join(strings.Fields(regexp.MustCompile(".\b").ReplaceAllString(r.stdout, "")), " ")
}

// Every command has a page, which names each of its flags, settings and examples, and which man shows as they were written.
func TestManual(t *testing.T) {
	t.Parallel()
	share := t.TempDir()
	kvjournal(t, "manual", share).answered(t)
	root := newRoot()
	show := func(path string) string { return "" }
	if _, err := exec.LookPath("man"); err == nil {
		show = func(path string) string { return rendered(t, path) }
	} else {
		t.Logf("the pages are read, and not shown: %v", err)
	}
	overview, err := os.ReadFile(filepath.Join(share, "man", "man1", "kvjournal.1"))
	if err != nil {
		t.Fatal(err)
	}
	pages := 1
	for _, c := range shown(root) {
		path := filepath.Join(share, "man", "man1", "kvjournal-"+c.Name()+".1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("no page: %v", err)
			continue
		}
		pages++
		if !strings.Contains(string(overview), ".BR kvjournal\\-"+c.Name()+" (1)") {
			t.Errorf("kvjournal(1) does not name %s", c.Name())
		}
		var want []string
		for _, name := range shownFlags(c) {
			want = append(want, "--"+name)
		}
		for _, name := range settingsOf(c) {
			want = append(want, envName(name))
		}
		want = append(want, strings.Split(c.Example, "\n")...)
		page := show(path)
		for _, w := range want {
			if !strings.Contains(string(b), roff(w)) {
				t.Errorf("%s lacks %q", path, w)
			}
			if w = strings.Join(strings.Fields(w), " "); page != "" && !strings.Contains(page, w) {
				t.Errorf("man shows %s without %q:\n%s", path, w, page)
			}
		}
	}
	if files, err := os.ReadDir(filepath.Join(share, "man", "man1")); err != nil || len(files) != pages {
		t.Errorf("%d pages for %d commands: %v", len(files), pages, err)
	}
}

// offered are the words that the shells offer behind a command line.
func offered(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	lines := kvjournal(t, append([]string{"__complete"}, args...)...).answered(t)
	for _, line := range lines {
		if d, ok := strings.CutPrefix(line, ":"); ok {
			return words, d
		}
		word, _, _ := strings.Cut(line, "\t")
		words = append(words, word)
	}
	t.Fatalf("%q: %q", args, lines)
	return nil, ""
}

// The shells are offered every command and every flag, and the words that a flag takes.
func TestCompletions(t *testing.T) {
	t.Parallel()
	root := newRoot()
	commands, _ := offered(t, "")
	for _, c := range shown(root) {
		if !slices.Contains(commands, c.Name()) {
			t.Errorf("%s is not offered: %q", c.Name(), commands)
		}
		flags, _ := offered(t, c.Name(), "--")
		for _, name := range shownFlags(c) {
			if !slices.Contains(flags, "--"+name) {
				t.Errorf("%s --%s is not offered: %q", c.Name(), name, flags)
			}
		}
	}
	if slices.Contains(commands, "manual") {
		t.Errorf("what is hidden is offered: %q", commands)
	}
	const noFiles, files, dirs, extensions = "4", "0", "16", "8"
	for _, c := range []struct {
		args      string
		words     []string
		directive string
	}{
		{"stats --output ", []string{"table", "json"}, noFiles},
		{"objects --certainty ", []string{"confirmed", "uncertain"}, noFiles},
		{"stats --dir ", nil, dirs},
		{"backup --to ", nil, dirs},
		{"repair --to ", nil, dirs},
		{"restore --from ", nil, dirs},
		{"gaps --from ", []string{"-1h", "-5m", "offset:", "seq:"}, "6"},
		{"record --config ", nil, files},
		{"export --out ", nil, files},
		{"record --keep ", nil, noFiles},
		{"lookup ", nil, noFiles},
		{"import ", []string{"kvcap", "zst"}, extensions},
	} {
		words, directive := offered(t, strings.Split(c.args, " ")...)
		if !slices.Equal(words, c.words) || directive != c.directive {
			t.Errorf("%q: %q, directive %s; want %q, %s", c.args, words, directive, c.words, c.directive)
		}
	}
	// A file of settings that cannot be read is no matter of the shell's.
	if words, _ := offered(t, "stats", "--config", "/nowhere", "--output", ""); len(words) != 2 {
		t.Errorf("%q", words)
	}
	share := t.TempDir()
	kvjournal(t, "manual", share).answered(t)
	for shell, path := range map[string]string{"bash": "bash-completion/completions/kvjournal", "zsh": "zsh/site-functions/_kvjournal", "fish": "fish/vendor_completions.d/kvjournal.fish"} {
		b, err := os.ReadFile(filepath.Join(share, path))
		if err != nil || !strings.Contains(string(b), "__complete") {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is read, and not run: %v", path, err)
		} else if r := runCommand(t, exec.Command(shell, "-n", filepath.Join(share, path)), ""); r.code != 0 {
			t.Errorf("%s -n %s: %s", shell, path, r.stderr)
		}
	}
}
