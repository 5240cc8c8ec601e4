package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The README is run as it stands. Its convention: in a block marked console, a line that begins with "$ " is a command, for a
// shell that all blocks share (a line that ends in \ goes on in the next); what follows is what it prints, stdout and stderr. There, a
// line of … stands for any lines, or none, and a … inside a line for any text. A command with nothing behind it may print
// anything. Every command must end with exit code 0.

// readmeStep is a command of the README.
type readmeStep struct {
	line    int // in the README
	command string
	want    []string
}

// readmeSteps finds the commands of a README.
func readmeSteps(text string) (steps []readmeStep) {
	console := false
	var open *readmeStep // its command goes on
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			console, open = line == "```console", nil
		case !console:
		case open != nil:
			open.command += "\n" + line
			if !strings.HasSuffix(line, `\`) {
				open = nil
			}
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, readmeStep{line: i + 1, command: line[2:]})
			if strings.HasSuffix(line, `\`) {
				open = &steps[len(steps)-1]
			}
		case len(steps) > 0:
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
		}
	}
	return steps
}

// shownLines compares what was shown with what came: at is how many lines of want have a match, from the first on.
func shownLines(want, got []string) (at int, ok bool) {
	if len(want) == 0 {
		return 0, len(got) == 0
	}
	if want[0] == "…" {
		best := 0
		for skip := range len(got) + 1 {
			n, ok := shownLines(want[1:], got[skip:])
			if ok {
				return 1 + n, true
			}
			best = max(best, n)
		}
		return 1 + best, false
	}
	if len(got) == 0 || !shownLine(want[0], got[0]) {
		return 0, false
	}
	n, ok := shownLines(want[1:], got[1:])
	return 1 + n, ok
}

func shownLine(want, got string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(strings.TrimRight(got, " "))
}

// shell is a bash that is given one command after the other.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T, dir string) *shell {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--norc")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, write, write
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
		read.Close()
	})
	s := &shell{in, bufio.NewReader(read)}
	s.run(t, "set -o pipefail")
	return s
}

// run runs a command to its end and returns the lines it printed.
func (s *shell) run(t *testing.T, command string) (lines []string, code int) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n\\001%%d\\n' $?\n", command); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: the shell ended: %v", command, err)
		}
		line = strings.TrimSuffix(line, "\n")
		if end, ok := strings.CutPrefix(line, "\x01"); ok {
			if code, err = strconv.Atoi(end); err != nil {
				t.Fatal(err)
			}
			return slices.Delete(lines, len(lines)-1, len(lines)), code // the empty line, or what ended without a newline
		}
		lines = append(lines, line)
	}
}

func readReadme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every command of the README runs, and prints what the README shows.
func TestReadme(t *testing.T) {
	t.Parallel()
	if shown, recorded := runDocument(t, "README.md", readReadme(t)); !recorded || shown < 10 {
		t.Errorf("%d commands show what they print; recorded: %v", shown, recorded)
	}
}

// runDocument runs the commands of a document: shown is how many of them show what they print, recorded whether a recorder ran. A
// master stands in for the one that it names, and a directory of the test for the one that it names.
func runDocument(t *testing.T, name, text string) (shown int, recorded bool) {
	t.Helper()
	tmp := t.TempDir()
	if err := os.Symlink(filepath.Dir(kvjournalBinary), filepath.Join(tmp, "bin")); err != nil {
		t.Fatal(err)
	}
	sim, endpoint := simulate(t, "--rate", "2000", "--admin", "127.0.0.1:0")
	admin := regexp.MustCompile(`admin API on (http://[0-9.:]+)`).FindStringSubmatch(sim.talk.String())
	if admin == nil {
		t.Fatalf("the publisher does not tell where its admin API is: %q", sim.talk.String())
	}
	data := filepath.Join(tmp, "recorded")
	asked := strings.NewReplacer("tcp://master:5557", endpoint, "http://master:9003", admin[1], "/var/lib/kvjournal", data)
	records := regexp.MustCompile(`^(bin/)?kvjournal record --endpoint `)
	sh := startShell(t, tmp)
	sh.run(t, `PATH=$PWD/bin:$PATH`)
	for _, s := range readmeSteps(text) {
		command := asked.Replace(s.command)
		if records.MatchString(command) {
			recorded = true
			cmd := exec.Command("bash", "-c", "exec "+strings.TrimPrefix(command, "bin/"))
			cmd.Dir, cmd.Env = tmp, append(os.Environ(), "PATH="+filepath.Dir(kvjournalBinary)+":"+os.Getenv("PATH"))
			startCommand(t, cmd).answers(t, data)
			connected(t, data, true)
			continue
		}
		lines, code := sh.run(t, command)
		if code != 0 {
			t.Fatalf("%s:%d: exit %d\n$ %s\n%s", name, s.line, code, command, strings.Join(lines, "\n"))
		}
		if len(s.want) == 0 {
			continue
		}
		shown++
		if at, ok := shownLines(s.want, lines); !ok {
			what := "more lines than it shows"
			if at < len(s.want) {
				what = strconv.Quote(s.want[at])
			}
			t.Errorf("%s:%d: the program no longer prints what is shown; the first line without a match: %s\n$ %s\n%s", name, s.line, what, command, strings.Join(lines, "\n"))
		}
	}
	var left []string
	entries, err := os.ReadDir(tmp)
	for _, e := range entries {
		if e.Name() != "bin" && e.Name() != filepath.Base(data) {
			left = append(left, e.Name())
		}
	}
	if err != nil || len(left) > 0 {
		t.Errorf("left behind by %s: %v, %v", name, left, err)
	}
	return shown, recorded
}

// What compares the README with the program can tell that they differ.
func TestReadmeComparison(t *testing.T) {
	t.Parallel()
	steps := readmeSteps("```\n$ no\n```\n```console\n$ a \\\n  b\none\n…\ntw… words\n$ c\n```\n$ no\n")
	if len(steps) != 2 || steps[0].command != "a \\\n  b" || steps[0].line != 5 || len(steps[0].want) != 3 || steps[1].command != "c" || steps[1].want != nil {
		t.Fatalf("%+v", steps)
	}
	for _, c := range []struct {
		got string
		at  int
		ok  bool
	}{
		{"one\ntwo words", 3, true},
		{"one\nmore\nand more\ntwo.more words", 3, true},
		{"one", 2, false},
		{"", 0, false},
		{"One\ntwo words", 0, false},
		{"one\ntwo words\nmore", 3, false},
		{"one\ntwo words.", 2, false},
	} {
		if at, ok := shownLines(steps[0].want, strings.Split(c.got, "\n")); at != c.at || ok != c.ok {
			t.Errorf("%q: %d, %v; want %d, %v", c.got, at, ok, c.at, c.ok)
		}
	}
}

// The README names the commands there are, the targets there are, and the directories there are.
func TestReadmeNames(t *testing.T) {
	t.Parallel()
	text := readReadme(t)
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() && !strings.Contains(text, "\n| `"+c.Name()+"` |") {
			t.Errorf("the README's list of commands lacks %s", c.Name())
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		if c, _, err := newRoot().Find([]string{m[1]}); err != nil || c.Name() != m[1] {
			t.Errorf("the README lists the command %s, and there is none", m[1])
		}
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\$ )?make ([a-z]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("the README names make %s, and there is no such target", m[1])
		}
	}
	_, tour, ok := strings.Cut(text, "## A tour of the source\n\n```\n")
	tour, _, ok2 := strings.Cut(tour, "\n```")
	if !ok || !ok2 {
		t.Fatal("the README has no tour of the source")
	}
	parent := ""
	for _, line := range strings.Split(tour, "\n") {
		names, _, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
		for _, name := range strings.Fields(names) {
			if !strings.HasPrefix(line, " ") {
				parent = name
			} else {
				name = parent + name
			}
			if info, err := os.Stat(filepath.Join("..", "..", name)); err != nil || !info.IsDir() {
				t.Errorf("the tour of the source names %s: %v", name, err)
			}
		}
	}
}
