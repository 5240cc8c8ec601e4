package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// journalFiles are the names and contents of the journal's files, and of the head file.
func journalFiles(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, path := range append(paths, filepath.Join(dir, "head")) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s\n", path, b)
	}
	return out.String()
}

// TestQuestionsLeaveTheJournal: a question that meets a damaged index of a journal whose end is lost computes the index anew, and leaves the journal, and
// what tells of the loss, as they are; `rebuild`, a writer, writes it down.
func TestQuestionsLeaveTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	imported(t, dir)
	j, err := journal.OpenReadOnly(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	head := journal.Claim{Of: j.ID(), Offset: j.Durable() + 10}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := head.Keep(vfs.Default, dir, "head"); err != nil {
		t.Fatal(err)
	}
	before := journalFiles(t, dir)
	healed := 0
	for _, question := range [][]string{
		{"objects", "--at", "offset:9000", "--count"}, {"gaps"}, {"stats"}, {"history", "--limit", "5", "0"}, {"lookup", "0"}, {"log", "--limit", "3"}, {"objects", "--count"},
	} {
		flip(t, dir, "index")
		r := kvjournal(t, append(question, "--dir", dir, "--output", "json")...)
		if strings.Contains(r.stderr, "the index is damaged; it is computed anew") {
			healed++
		}
		if !strings.Contains(r.stderr, "acknowledged records are gone") {
			t.Errorf("%v: exit %d, %s", question, r.code, r.stderr)
		}
		if journalFiles(t, dir) != before {
			t.Fatalf("%v changed the journal", question)
		}
	}
	kvjournal(t, "objects", "--count", "--dir", dir, "--output", "json").answered(t)
	if healed == 0 {
		t.Error("no question met a damage")
	}
	if known := index.KnownTo(dir, index.Options{}); known.To(head.Of) != head.Offset-10 {
		t.Errorf("behind the questions the index knows %v", known)
	}
	if got := kvjournal(t, "log", "--dir", dir, "--type", "tail_lost", "--output", "json").answered(t); strings.Join(got, "") != "" {
		t.Errorf("a question wrote down the loss: %q", got)
	}
	kvjournal(t, "rebuild", "--dir", dir).answered(t)
	if got := kvjournal(t, "log", "--dir", dir, "--type", "tail_lost", "--output", "json").answered(t); len(got) != 1 || !strings.Contains(got[0], "last_missing_offset") {
		t.Errorf("a writer did not: %q", got)
	}
}
