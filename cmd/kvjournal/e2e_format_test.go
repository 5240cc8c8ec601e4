package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// The fixtures of each format, at the top of the repository: testdata/formatN/data.tar.gz is a data directory that a program of format
// N left, answers.jsonl.gz what that program answered about it. Every later program opens it and answers the same, or more:
// fields may be added. README.md there says how they were made.

// fixtures are all of them, by their folder: one for each format, and for each form of blocks that came later without a format of its own.
var fixtures = []struct {
	name   string
	format int
}{{fixtureOf(datadir.FormatWhole), datadir.FormatWhole}, {fixtureOf(datadir.FormatPruned), datadir.FormatPruned}, {fixtureStarts, datadir.FormatWhole}}

func fixtureOf(format int) string { return fmt.Sprint("format", format) }

// fixtureStarts has blocks of keys that start with their group_id.
const fixtureStarts = "format1-starts"

func fixtureDir(name string) string { return filepath.Join("..", "..", "testdata", name) }

const (
	fixtureData    = "data.tar.gz"
	fixtureAnswers = "answers.jsonl.gz"
)

// fixtureAnswer is a command that was given to a fixture, and the lines it printed.
type fixtureAnswer struct {
	Args  []string `json:"args"` // --dir and --output apart
	Stdin string   `json:"stdin,omitempty"`
	// Past: what is recorded later does not change the answer.
	Past  bool              `json:"past,omitempty"`
	Lines []json.RawMessage `json:"lines,omitempty"`
	// SHA256 of the lines, instead of them: of an answer that never changes by a byte.
	SHA256 string `json:"sha256,omitempty"`
}

func hashOf(lines []string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// openFixture opens a compressed file of a fixture, until the test ends.
func openFixture(t *testing.T, fixture, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(fixtureDir(fixture), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// unpack writes a fixture's data directory, and returns where.
func unpack(t *testing.T, fixture string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	z := openFixture(t, fixture, fixtureData)
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		path := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readAnswers(t *testing.T, fixture string) (out []fixtureAnswer) {
	t.Helper()
	z := openFixture(t, fixture, fixtureAnswers)
	for in := json.NewDecoder(bufio.NewReader(z)); ; {
		var a fixtureAnswer
		err := in.Decode(&a)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
}

// passing are fields that tell of the moment of the question, or of the machine, and not of what was recorded.
var passing = map[string]bool{"age_ms": true, "live": true, "journal": true, "index": true}

// lacks says what of want is not in got, "" where all is; got may have more fields.
func lacks(want, got any, path string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, want an object", path, got)
		}
		for k, v := range w {
			if passing[k] {
				continue
			}
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("%s.%s is missing, want %v", path, k, v)
			}
			if what := lacks(v, g[k], path+"."+k); what != "" {
				return what
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range w {
			if what := lacks(w[i], g[i], fmt.Sprintf("%s[%d]", path, i)); what != "" {
				return what
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

// askFixture gives a fixture's command to a directory.
func askFixture(t *testing.T, dir string, a *fixtureAnswer) []string {
	t.Helper()
	args := slices.Concat(a.Args[:1], []string{"--dir", dir, "--output", "json"}, a.Args[1:])
	return kvjournalStdin(t, a.Stdin, args...).answered(t)
}

// sameAsThen fails the test where the directory does not answer as the program did that made it.
func sameAsThen(t *testing.T, what, dir string, answers []fixtureAnswer) {
	t.Helper()
	lines := 0
	for i := range answers {
		a := &answers[i]
		got := askFixture(t, dir, a)
		if a.SHA256 != "" {
			if hashOf(got) != a.SHA256 {
				t.Errorf("%s: %q: other bytes", what, a.Args)
			}
			continue
		}
		if len(got) != len(a.Lines) {
			t.Errorf("%s: %q: %d lines, want %d", what, a.Args, len(got), len(a.Lines))
			continue
		}
		for k := range got {
			var w, g any
			if err := errors.Join(json.Unmarshal(a.Lines[k], &w), json.Unmarshal([]byte(got[k]), &g)); err != nil {
				t.Fatal(err)
			}
			if what2 := lacks(w, g, ""); what2 != "" {
				t.Errorf("%s: %q: line %d: %s\n%s\n%s", what, a.Args, k+1, what2, got[k], a.Lines[k])
				break
			}
			lines++
		}
	}
	t.Logf("%s: %d lines of %d commands are as they were", what, lines, len(answers))
}

// TestFormats: what each earlier format left is read, answers the same from the index as it lies there and from a rebuilt one, can be
// backed up, restored and written to, and what was answered about the past then still holds.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, fixture := range fixtures {
		t.Run(fixture.name, func(t *testing.T) {
			answers := readAnswers(t, fixture.name)
			if len(answers) < 10 {
				t.Fatalf("only %d answers", len(answers))
			}
			dir := unpack(t, fixture.name)
			sameAsThen(t, "as it lies there", dir, answers)
			if v, err := datadir.Version(vfs.Default, dir); v != fixture.format || err != nil {
				t.Errorf("a reader raised the gate to %d, %v", v, err)
			}
			tmp := t.TempDir()
			kept, back := filepath.Join(tmp, "backup"), filepath.Join(tmp, "restored")
			if r := kvjournal(t, "backup", "--dir", dir, "--to", kept); r.code != 0 {
				t.Fatal(r.stderr)
			}
			if r := kvjournal(t, "rebuild", "--dir", dir); r.code != 0 {
				t.Fatal(r.stderr)
			}
			sameAsThen(t, "rebuilt", dir, answers)
			if r := kvjournal(t, "restore", "--from", kept, "--dir", back); r.code != 0 {
				t.Fatal(r.stderr)
			}
			sameAsThen(t, "restored", back, answers)
			kvjournal(t, "import", "--dir", dir, "--source", "later", smallCapture(t)).answered(t)
			var past []fixtureAnswer
			for _, a := range answers {
				if a.Past {
					past = append(past, a)
				}
			}
			if len(past) < 5 {
				t.Fatalf("only %d answers about the past", len(past))
			}
			sameAsThen(t, "written to", dir, past)
		})
	}
}

// What compares answers can tell that they differ.
func TestFormatComparison(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{`{"a":1,"b":[1,{"c":"x"}],"age_ms":5}`, `{"a":1,"b":[1,{"c":"x","d":2}],"age_ms":6,"new":true}`, true},
		{`{"a":1}`, `{}`, false},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":[1]}`, `{"a":[1,2]}`, false},
		{`{"a":{"b":1}}`, `{"a":{"b":"1"}}`, false},
		{`{"a":{"b":1}}`, `{"a":[]}`, false},
		{`{"a":null}`, `{"a":null}`, true},
	} {
		var w, g any
		if err := errors.Join(json.Unmarshal([]byte(c.want), &w), json.Unmarshal([]byte(c.got), &g)); err != nil {
			t.Fatal(err)
		}
		if what := lacks(w, g, ""); (what == "") != c.same {
			t.Errorf("%s, %s: %q", c.want, c.got, what)
		}
	}
}

// A directory of a newer format, and of one whose index is newer, is refused by every command, with what to do.
func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := unpack(t, fixtureOf(datadir.Format))
	if err := os.WriteFile(filepath.Join(dir, "KVJOURNAL"), fmt.Appendf(nil, "kvjournal data directory, format %d\n", datadir.Format+1), 0o600); err != nil {
		t.Fatal(err)
	}
	before := archive(t, dir)
	for _, args := range [][]string{
		{"stats"}, {"lookup", "k"}, {"gaps"}, {"rebuild"}, {"backup", "--to", filepath.Join(t.TempDir(), "b")}, {"import", smallCapture(t)},
		{"record", "--endpoint", "tcp://127.0.0.1:1"},
	} {
		r := kvjournal(t, append(args, "--dir", dir)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, "newer") || r.stdout != "" {
			t.Errorf("%q: exit %d, %q %q", args, r.code, r.stdout, r.stderr)
		}
	}
	if r := kvjournal(t, "restore", "--from", dir, "--dir", filepath.Join(t.TempDir(), "r")); r.code != exitFailed || !strings.Contains(r.stderr, "newer") {
		t.Errorf("restore: exit %d, %q", r.code, r.stderr)
	}
	if !bytes.Equal(archive(t, dir), before) {
		t.Error("something was changed")
	}
}
