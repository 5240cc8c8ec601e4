package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told fails the test unless the command ended with the code, printed nothing on stdout, and said each of the words.
func (r result) told(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code || r.stdout != "" {
		t.Errorf("exit %d, want %d; stdout %.200q, stderr %q", r.code, code, r.stdout, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("stderr does not say %q: %q", w, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "panic") || strings.Count(r.stderr, "\n") > 3 {
		t.Errorf("stderr %q", r.stderr)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, c := range []struct {
		args string
		say  []string // what is wrong, and what to do next
	}{
		{"no-such-command", []string{"no-such-command", "--help"}},
		{"lookup", []string{"--stdin", "--help"}},
		{"lookup k --stdin", []string{"--stdin", "--help"}},
		{"lookup k --no-such-flag", []string{"--no-such-flag", "--help"}},
		{"lookup k --output yaml", []string{"yaml", "table or json"}},
		{"lookup k --base64", []string{"base64"}},
		{"lookup k --source nobody", []string{"nobody", "there is small"}},
		{"lookup k --at yesterday", []string{"yesterday", "RFC 3339", "offset:N", "seq:EPOCH/N", "now"}},
		{"lookup k --at -5parsecs", []string{"-5parsecs", "-5m"}},
		{"lookup k --at 2026-13-01T00:00:00Z", []string{"RFC 3339"}},
		{"lookup k --at offset:0", []string{"offset:N"}},
		{"lookup k --at offset:x", []string{"offset:N"}},
		{"lookup k --at offset:6", []string{"6", "the journal ends at 5"}},
		{"lookup k --at seq:1", []string{"seq:EPOCH/N"}},
		{"lookup k --at seq:0/1", []string{"seq:EPOCH/N"}},
		{"lookup k --at seq:1/3", []string{"never received", "kvjournal gaps"}},
		{"lookup k --at seq:1/99", []string{"never received", "kvjournal gaps"}},
		{"lookup k --at seq:2/1", []string{"never received", "kvjournal gaps"}},
		{"gaps surplus", []string{"surplus", "--help"}},
		{"gaps --source nobody", []string{"nobody", "there is small"}},
		{"gaps --output xml", []string{"table or json"}},
		{"stats surplus", []string{"surplus", "--help"}},
		{"stats --output xml", []string{"table or json"}},
		{"import", []string{"--help"}},
		{"rebuild surplus", []string{"surplus", "--help"}},
		{"record", []string{"--endpoint tcp://HOST:PORT"}},
		{"record surplus", []string{"surplus", "--help"}},
		{"record --master http://127.0.0.1:1", []string{"--endpoint"}},
		{"record --endpoint tcp://127.0.0.1:1 --buffer 0", []string{"--buffer", "1 MiB"}},
		{"record --endpoint tcp://127.0.0.1:1 --object-cache -1", []string{"--object-cache", "from 0"}},
		{"record --endpoint tcp://127.0.0.1:1 --native-memory 10", []string{"--native-memory", "at least 300 MiB"}},
		{"record --endpoint tcp://127.0.0.1:1 --max-message 1000", []string{"--max-message", "256 MiB"}},
		{"record --endpoint tcp://127.0.0.1:1 --duration x", []string{"--duration", "--help"}},
		{"record --endpoint tcp://127.0.0.1:1 --duration -1s", []string{"--duration", "negative"}},
		{"record --source endpoint=tcp://127.0.0.1:1", []string{"name=NAME,endpoint=tcp://HOST:PORT"}},
		{"record --source name=a,port=1", []string{"port", "name=NAME,endpoint=tcp://HOST:PORT"}},
		{"record --source name=a", []string{"a", "endpoint"}},
		{"record --source name=a,endpoint=tcp://127.0.0.1:1 --source name=a,endpoint=tcp://127.0.0.1:2", []string{"two sources", "a"}},
		{"record --endpoint 127.0.0.1:1", []string{"tcp://HOST:PORT"}},
		{"record --endpoint tcp://127.0.0.1", []string{"tcp://127.0.0.1", "port"}},
		{"record --endpoint inproc://x", []string{"inproc"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(c.args)
			if args[0] != "no-such-command" {
				args = append(args, "--dir", dir)
			}
			kvjournal(t, args...).told(t, 2, c.say...)
		})
	}
	t.Run("a line that is no question", func(t *testing.T) {
		for _, line := range []string{"k", `{"object_key":1}`, `{"tenant_id":"default"}`, `{"object_key":""}`, `{"object_key_base64":"!"}`, `[]`} {
			stdin := `{"object_key":"k"}` + "\n" + line + "\n"
			kvjournalStdin(t, stdin, "lookup", "--stdin", "--dir", dir, "--output", "json").told(t, 2, "line 2", "object_key")
		}
	})
	t.Run("an empty key", func(t *testing.T) {
		kvjournal(t, "lookup", "", "--dir", dir).told(t, 2, "empty")
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	missing, empty, foreign, newer := filepath.Join(tmp, "missing"), filepath.Join(tmp, "empty"), filepath.Join(tmp, "foreign"), filepath.Join(tmp, "newer")
	for _, d := range []string{empty, foreign, newer} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(foreign, "letter.txt"), "hello")
	write(filepath.Join(newer, "KVJOURNAL"), "kvjournal data directory, format 99\n")
	noCapture := filepath.Join(tmp, "no.kvcap")
	write(noCapture, "hello, this is no capture")

	asking := [][]string{{"lookup", "k"}, {"gaps"}, {"stats"}, {"rebuild"}, {"prune", "--keep", "1d"}}
	writing := [][]string{{"import", smallCapture(t)}, {"record", "--endpoint", "tcp://127.0.0.1:1"}}
	each := func(commands [][]string, dir string, words ...string) {
		for _, c := range commands {
			t.Run(c[0]+" "+filepath.Base(dir), func(t *testing.T) {
				kvjournal(t, append(c, "--dir", dir)...).told(t, 1, append(words, dir)...)
			})
		}
	}
	each(asking, missing, "no kvjournal data", "--dir")
	each(asking, empty, "no kvjournal data")
	each(append(asking, writing...), foreign, "not a kvjournal data directory", "letter.txt", "give --dir the directory of a recorder", "an empty or a new one")
	each(append(asking, writing...), newer, "newer", "format 99", "use the newer program")
	if _, err := os.Stat(missing); err == nil {
		t.Error("a question made the directory")
	}
	if names, _ := os.ReadDir(foreign); len(names) != 1 {
		t.Errorf("the foreign directory was changed: %v", names)
	}

	dir := filepath.Join(tmp, "data")
	kvjournal(t, "import", "--dir", dir, filepath.Join(tmp, "nothing.kvcap")).told(t, 1, "nothing.kvcap", "no such file")
	kvjournal(t, "import", "--dir", dir, noCapture).told(t, 1, "no.kvcap", "not a kvcap capture")
}

func TestImportTwice(t *testing.T) {
	t.Parallel()
	dir, capture := filepath.Join(t.TempDir(), "data"), smallCapture(t)
	kvjournal(t, "import", "--dir", dir, capture).answered(t)
	before := stats(t, dir)
	kvjournal(t, "import", "--dir", dir, capture).told(t, 1, "imported into this source before", "--again", "--source")
	if st := stats(t, dir); st.DurableOffset != before.DurableOffset || st.Events != before.Events {
		t.Errorf("the refused import changed the journal: offset %d, %d events", st.DurableOffset, st.Events)
	}
	kvjournal(t, "import", "--dir", dir, "--again", capture).answered(t)
	kvjournal(t, "import", "--dir", dir, "--source", "other", capture).answered(t)
	st := stats(t, dir)
	if st.Events != 3*before.Events || len(st.Sources) != 2 {
		t.Errorf("%d events of %d sources after three imports of %d events", st.Events, len(st.Sources), before.Events)
	}
	if st.Journal.WALBytes != 0 && st.Journal.Bytes == 0 || st.Index.Lag != 0 {
		t.Errorf("import did not seal and flush: %+v %+v", st.Journal, st.Index)
	}
	// Several sources have the key: one line, and seq: needs --source.
	r := kvjournal(t, "lookup", "k", "--dir", dir, "--output", "json")
	if lines := r.answered(t); len(lines) != 1 || !json.Valid([]byte(lines[0])) || strings.Contains(lines[0], `"source"`) {
		t.Errorf("stdout %q", r.stdout)
	}
	kvjournal(t, "lookup", "k", "--dir", dir, "--at", "seq:1/1").told(t, 2, "several sources", "--source")
	kvjournal(t, "lookup", "k", "--dir", dir, "--at", "seq:1/1", "--source", "other").answered(t)
}

func TestSecondRecorder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, "tcp://127.0.0.1:1")
	kvjournal(t, "record", "--dir", dir, "--endpoint", "tcp://127.0.0.1:1").told(t, 1, "in use by another process", "kvjournal record", "one writer", "--dir")
	kvjournal(t, "import", "--dir", dir, smallCapture(t)).told(t, 1, "in use by another process", "kvjournal record", "--dir")
	rec.stop(t)
	if rec.out.String() != "" {
		t.Errorf("the recorder talks on stdout: %q", rec.out.String())
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"--help", "help", "lookup --help", "gaps --help", "stats --help", "import --help", "record --help", "rebuild --help", "version", ""} {
		r := kvjournal(t, strings.Fields(c)...)
		if r.answered(t); r.stdout == "" || r.stderr != "" {
			t.Errorf("%q: stdout %q, stderr %q", c, r.stdout, r.stderr)
		}
	}
	if r := kvjournal(t, "version"); !strings.HasPrefix(r.stdout, "kvjournal ") || !strings.Contains(r.stdout, "data format 2") {
		t.Errorf("version: %q", r.stdout)
	}
}
