package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/query"
)

// historyLines asks for a history in JSON.
func historyLines(t *testing.T, args ...string) []query.HistoryLine {
	t.Helper()
	lines := kvjournal(t, append([]string{"history", "--output", "json"}, args...)...).answered(t)
	out := make([]query.HistoryLine, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &out[i]); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	return out
}

// historyInShort is a history in a few letters a line.
func historyInShort(lines []query.HistoryLine) string {
	var s []string
	for i := range lines {
		l := &lines[i]
		s = append(s, strings.Join(strings.Fields(l.Kind+" "+l.Medium+" "+after(l)), " "))
	}
	return strings.Join(s, "; ")
}

func TestHistoryCommand(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	// Offset 3 has two events of k: what is behind the first was never announced alone.
	const all = "stored cpu +cpu -?disk; stored disk +?cpu +?disk; removed cpu -cpu +disk; mark -?cpu +?disk; stored cpu +cpu +?disk"
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, all},
		{[]string{"--limit", "2"}, "mark -?cpu +?disk; stored cpu +cpu +?disk"},
		{[]string{"--limit", "0"}, all},
		{[]string{"--from", "offset:3", "--limit", "1"}, "stored disk +?cpu +?disk"},
		{[]string{"--from", "seq:1/4"}, "mark -?cpu +?disk; stored cpu +cpu +?disk"},
		{[]string{"--to", "seq:1/1"}, "stored cpu +cpu -?disk"},
		{[]string{"--from", timeOf(2).Format("2006-01-02T15:04:05Z07:00"), "--to", "offset:3"}, "stored disk +?cpu +?disk; removed cpu -cpu +disk"},
		{[]string{"--tenant", "nobody"}, ""},
	} {
		if got := historyInShort(historyLines(t, append([]string{"--dir", dir, "k"}, c.args...)...)); got != c.want {
			t.Errorf("%q\ngot  %s\nwant %s", c.args, got, c.want)
		}
	}
	lines := kvjournal(t, "history", "--dir", dir, "--output", "json", "--raw", "--base64", base64.StdEncoding.EncodeToString([]byte(binaryKey))).answered(t)
	if len(lines) != 2 || !strings.Contains(lines[0], `"event":{`) || !strings.Contains(lines[0], `"object_key_base64":"/wBrZXn+"`) || strings.Contains(lines[0], `"object_key":`) || strings.Contains(lines[1], `"event"`) {
		t.Errorf("the original event of a key of any bytes, and a mark without one: %q", lines)
	}
	for _, args := range [][]string{{}, {"k", "l"}, {"k", "--from", "soon"}, {"k", "--source", "nobody"}, {"!", "--base64"}, {""}, {"k", "--limit", "-1"}} {
		if r := kvjournal(t, append([]string{"history", "--dir", dir}, args...)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestHistoryTable(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	has := func(r result, parts ...string) {
		t.Helper()
		text := strings.Join(r.answered(t), "\n")
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("no %q in\n%s", p, text)
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(line) > tableWidth {
				t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
	}
	has(kvjournal(t, "history", "--dir", dir, "k"),
		"source small, backend b0, tenant default", "removed cpu", "-cpu +disk", "MARK publisher_queue", "Missing: seq ", "lost events: 1.", "within_batch", "shadow")
	has(kvjournal(t, "history", "--dir", dir, "--limit", "1", "--raw", "k"), "--to offset:4", "event event_type: \"stored\"", "batch events: 1")
	has(kvjournal(t, "history", "--dir", dir, "--limit", "1", "--from", "offset:1", "k"), "--from offset:3")
	has(kvjournal(t, "history", "--dir", dir, "--from", "offset:4", "--to", "offset:4", "--limit", "1", "shadow"), "MARK")
	has(kvjournal(t, "history", "--dir", dir, "--to", "offset:1", "both"), "Nothing touched it in this span.", "Its first event is at offset 2")
	has(kvjournal(t, "history", "--dir", dir, "nothing like it"), "No event that was recorded ever named this object.", "--base64")
	has(kvjournal(t, "history", "--dir", dir, "--tenant", "other", "k"), "--source small --backend b0 --tenant default")
}

func TestWhyCommand(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	lines := kvjournal(t, "why", "--dir", dir, "--output", "json", "--at", "offset:4", "k").answered(t)
	oneCompactValue(t, lines)
	var w struct {
		At     string          `json:"at"`
		AsOf   query.AsOf      `json:"as_of"`
		Answer *query.Answer   `json:"answer"`
		Story  []query.WhyLine `json:"story"`
		Wrong  []string        `json:"would_be_wrong_if"`
		Next   []query.WhyNext `json:"next"`
		Key    string          `json:"object_key"`
	}
	if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &w) != nil || w.At != "offset:4" || w.AsOf.Offset != 4 || w.Answer == nil || len(w.Story) < 3 || len(w.Wrong) != 2 || w.Key != "k" {
		t.Fatalf("%q", lines)
	}
	if lookup := lookup(t, dir, "offset:4", []object{{"default", "k"}})[0]; lookup.Certainty != w.Answer.Certainty || lookup.Present != w.Answer.Present {
		t.Errorf("lookup says %+v, why %+v", lookup, w.Answer)
	}
	// What it says to run next runs, as it is printed in a table too.
	text := strings.Join(kvjournal(t, "why", "--dir", dir, "--at", "offset:4", "k").answered(t), "\n")
	ran := 0
	for _, n := range w.Next {
		if n.Command == "" {
			continue
		}
		command := inDir(n.Command, dir)
		if !strings.Contains(text, command) {
			t.Errorf("no %q in\n%s", command, text)
		}
		if r := kvjournal(t, strings.Fields(command)[1:]...); r.code != 0 || r.stdout == "" {
			t.Errorf("%s: %+v", command, r)
		}
		ran++
	}
	if ran < 3 {
		t.Errorf("only %d commands: %+v", ran, w.Next)
	}
	for _, args := range [][]string{{}, {"k", "--at", "soon"}, {"k", "--at", "offset:99"}, {"k", "--source", "nobody"}, {"--base64", "!"}} {
		if r := kvjournal(t, append([]string{"why", "--dir", dir}, args...)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestHostileText: nothing that a stream or a question holds reaches the terminal as it is.
func TestHostileText(t *testing.T) {
	var b bytes.Buffer
	out := newPrinter(&b)
	history, _ := historyTable(out)
	why, _ := whyTable(out, "a dir")
	for _, line := range []string{
		`{"kind":"object","source":"s","backend_id":"\u001b[2J","tenant_id_base64":"/w==","object_key":"a\nb"}`,
		`{"kind":"stored","offset":1,"event_index":1,"medium":"\u001b[31m\n","present":true,"certainty":"confirmed","media":{"\u001b[31m\n":{"state":"present","certainty":"confirmed"}},"event":{"\u001b[1m":"\u001b[1m"},"batch":{"events":1}}`,
	} {
		if err := history([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := why([]byte(`{"source":"s","backend_id":"\u001b[2J","tenant_id":"t","object_key":"a\nb","answer":{"media":{}},"story":[{"text":"\u001b[31m: stored"}],"would_be_wrong_if":["\u001b"],"next":[{"text":"x","command":"kvjournal stats"}]}`)); err != nil {
		t.Fatal(err)
	}
	out.Flush()
	if strings.Contains(b.String(), "\x1b") || strings.Contains(b.String(), "\xff") || !strings.Contains(b.String(), "kvjournal stats --dir 'a dir'") {
		t.Errorf("%q", b.String())
	}
}
