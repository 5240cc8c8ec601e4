package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/event"
)

// fits fails the test for each line of a table that is wider than 100 columns, or would do something to a terminal. Commands to be
// copied are not broken.
func (r result) fits(t *testing.T, what string) {
	t.Helper()
	for _, line := range r.answered(t) {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
			t.Errorf("%s: not for a terminal: %.300q", what, line)
		}
		copied := strings.TrimLeft(line, " ")
		if strings.HasPrefix(line, "  ") && (strings.HasPrefix(copied, "kvjournal ") || strings.HasPrefix(copied, "--")) && len(line) < 1100 {
			continue
		}
		if n := columns(line); n > 100 {
			t.Errorf("%s: %d columns: %.300s", what, n, line)
		}
	}
}

// tablesFit asks everything there is to ask, of a directory of one source, and of up to so many of its objects.
func tablesFit(t *testing.T, dir string, objects int) {
	t.Helper()
	for _, command := range []string{"stats", "gaps", "gaps --summary", "activity", "log --limit 5000", "objects --state any --limit 0", "objects --state any --limit 7",
		"objects --state any --count", "objects --certainty uncertain --at offset:9", "diff --from offset:1", "diff --from offset:1 --limit 0", "lifetimes",
		"lifetimes --by none --doubtful", "lifetimes --by group --top 100"} {
		kvjournal(t, append(strings.Fields(command), "--dir", dir)...).fits(t, command)
	}
	// Some objects of different kinds: first byte of the key, tenant, certainty.
	seen := map[string]bool{}
	for _, line := range kvjournal(t, "objects", "--dir", dir, "--state", "any", "--output", "json").answered(t) {
		var o struct {
			Backend   []byte `json:"backend_id_base64"`
			Tenant    []byte `json:"tenant_id_base64"`
			Key       []byte `json:"object_key_base64"`
			Certainty string `json:"certainty"`
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kind := string(o.Tenant) + o.Certainty + string(o.Key[:1])
		if seen[kind] || len(seen) == objects || len(o.Key) > 100_000 || strings.ContainsRune(string(o.Backend)+string(o.Tenant), 0) {
			continue
		}
		seen[kind] = true
		for _, command := range []string{"lookup", "why", "history --raw", "why --at now"} {
			args := append(strings.Fields(command), "--dir", dir, "--base64", "--backend="+string(o.Backend), "--tenant="+string(o.Tenant), "--", jsonBase64(t, o.Key))
			kvjournal(t, args...).fits(t, command+" of "+printable(o.Key[:min(40, len(o.Key))]))
		}
	}
	if len(seen) == 0 {
		t.Error("no objects to ask for")
	}
	kvjournal(t, "why", "--dir", dir, "never\nseen").fits(t, "why of a key never seen")
	kvjournal(t, "history", "--dir", dir, "never\nseen").fits(t, "history of a key never seen")
}

func jsonBase64(t *testing.T, b []byte) string {
	t.Helper()
	out, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(out), `"`)
}

// No key, tenant, backend, group or medium makes a table wider than 100 columns, or does something to the terminal.
func TestTablesFitHostileNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("源", 60)+".kvcap")
	c := newCapture(t, path)
	names := []string{"a", strings.Repeat("long/", 1000), strings.Repeat("层", 400), "\xff\xfe\x00 bytes " + strings.Repeat("\x80", 99), "line\nfeed\ttab\x1b[31mred", "'quoted' \"twice\" $(rm) `x`",
		strings.Repeat("🦊", 60), strings.Repeat("e\u0301\u0302", 80), "\u202eright to left", strings.Repeat("\u200b", 300), "-starts-with-a-dash", " "}
	for round := range 3 {
		for i, key := range names {
			other := names[(i+5)%len(names)]
			medium := "cpu"
			if i%3 == 2 && utf8.ValidString(other) {
				medium = other
			}
			f := event.Fields{Type: event.Stored, Tenant: names[(i+round)%len(names)], Backend: names[(i+2)%len(names)], GroupID: &other, Medium: medium, Key: key}
			if round == 1 && i%2 == 0 {
				f.Type = event.Removed
				f.Tenant = names[i%len(names)]
			}
			c.batch(f, stored(key, "disk"))
			if i == 5 {
				c.seq, c.id = c.seq+uint64(round)*1e15, c.id+uint64(round)*1e16
			}
		}
		c.batch(event.Fields{Type: event.Cleared, Tenant: names[round+1], Backend: names[2]})
	}
	c.close()
	dir := filepath.Join(t.TempDir(), "data")
	kvjournal(t, "import", "--dir", dir, path).answered(t)
	tablesFit(t, dir, 25)
}

func TestTablesFitCaptures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"transport-loss", "restart", "hostile", "edge-clear", "queue-drops"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "conformance", "captures", name+".kvcap.zst")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the captures of real publishers are not part of this repository: %v", err)
			}
			dir := filepath.Join(t.TempDir(), "data")
			kvjournal(t, "import", "--dir", dir, path).answered(t)
			tablesFit(t, dir, 3)
		})
	}
}

// Every command has a help that fits, with an example; and what it says of flags is true.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	root := newRoot()
	root.InitDefaultHelpCmd()
	for _, c := range append(root.Commands(), root) {
		c.InitDefaultHelpFlag()
		text := helpText(c)
		for _, line := range strings.Split(text, "\n") {
			if n := columns(line); n > 100 {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if c != root && c.Name() != "help" && (!strings.Contains(text, "\nExamples:\n  ") || !strings.Contains(c.Example, "kvjournal "+c.Name())) {
			t.Errorf("%s --help has no example of it", c.CommandPath())
		}
		if got := kvjournal(t, append(strings.Fields(c.CommandPath())[1:], "--help")...); c.Name() != "help" && got.stdout != text {
			t.Errorf("%s --help: %s", c.CommandPath(), got.stdout)
		}
	}
}
