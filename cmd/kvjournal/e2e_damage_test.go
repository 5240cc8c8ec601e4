package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query/service"
)

// imported makes a directory of a simulated master's life, at rest.
func imported(t *testing.T, dir string) {
	t.Helper()
	night := filepath.Join(t.TempDir(), "night.kvcap.zst")
	start(t, mooncakesimBinary, "--capture", night, "--events", "40000", "--batch", "4", "--objects", "2000", "--seed", "7").wait(t)
	kvjournal(t, "import", "--dir", dir, night).answered(t)
}

// dropOldLogs removes the write-ahead logs that the database does not need any more: repair would find there what a table lost.
func dropOldLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "journal", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(logs)
	for _, path := range logs[:len(logs)-1] {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// flip turns a bit over in the middle of the largest table of a database.
func flip(t *testing.T, dir, database string) (file string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, database, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	var content []byte
	for _, path := range tables {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(content) {
			file, content = path, b
		}
	}
	content[len(content)/2] ^= 4
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return database + "/" + filepath.Base(file)
}

// verified runs verify and returns what it found.
func verified(t *testing.T, dir string, code int) (found []journal.Finding, sum service.Verified) {
	t.Helper()
	r := kvjournal(t, "verify", "--dir", dir, "--output", "json")
	if r.code != code {
		t.Fatalf("verify: exit %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	for i, line := range lines {
		var f journal.Finding
		into := any(&f)
		if i == len(lines)-1 {
			into = &sum
		}
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if i < len(lines)-1 {
			found = append(found, f)
		}
	}
	return found, sum
}

// TestDamagedJournal: verify names file and offset, a question that meets it says what to do, repair saves the rest, and says what is lost.
func TestDamagedJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	imported(t, dir)
	if found, sum := verified(t, dir, 0); !sum.Sound || len(found) > 0 || !sum.Index.Compared || sum.Journal.Records == 0 {
		t.Fatalf("a whole directory: %+v, %+v", sum, found)
	}
	dropOldLogs(t, dir)
	file := flip(t, dir, "journal")
	found, sum := verified(t, dir, 1)
	named, lost := false, false
	for _, f := range found {
		named = named || f.File == file && f.Severity == journal.Damage
		lost = lost || f.Offset > 0 && f.Last >= f.Offset
	}
	if sum.Sound || !named || !lost {
		t.Errorf("%s is damaged: %+v, %+v", file, sum, found)
	}
	if r := kvjournal(t, "log", "--dir", dir, "--output", "json"); r.code != 1 || !strings.Contains(r.stderr, "kvjournal repair") || !strings.Contains(r.stderr, "offset") {
		t.Errorf("log of a damaged journal: exit %d, %s", r.code, r.stderr)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	var repaired journal.Repaired
	if err := json.Unmarshal([]byte(kvjournal(t, "repair", "--dir", dir, "--to", saved, "--output", "json").answered(t)[0]), &repaired); err != nil {
		t.Fatal(err)
	}
	if repaired.Holes != 1 || repaired.Lost == 0 || len(repaired.Unreadable) != 1 || repaired.Unreadable[0] != file {
		t.Errorf("repaired: %+v", repaired)
	}
	if found, sum := verified(t, saved, 0); !sum.Sound || len(found) > 0 || sum.Journal.Records != repaired.Records+1 {
		t.Errorf("the repaired directory: %+v, %+v", sum, found)
	}
	gaps := strings.Join(kvjournal(t, "gaps", "--dir", saved, "--output", "json").answered(t), "\n")
	if !strings.Contains(gaps, `"cause":"damaged"`) {
		t.Errorf("gaps of the repaired directory: %s", gaps)
	}
	if r := kvjournal(t, "repair", "--dir", dir, "--to", saved); r.code != 1 || !strings.Contains(r.stderr, "not empty") {
		t.Errorf("repair onto a directory that is there: exit %d, %s", r.code, r.stderr)
	}
}

// TestDamagedIndex: it is computed anew by itself, at rest and beside a recorder, and the answers are as before.
func TestDamagedIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	imported(t, dir)
	count := func() result {
		r := kvjournal(t, "objects", "--dir", dir, "--source", "night", "--at", "offset:9000", "--count", "--output", "json")
		r.stdout = regexp.MustCompile(`"age_ms":\d+,"live":(true|false)`).ReplaceAllString(r.stdout, "")
		return r
	}
	want := strings.Join(count().answered(t), "\n")
	if want == "" {
		t.Fatal("no objects")
	}
	flip(t, dir, "index")
	if _, sum := verified(t, dir, 1); sum.Sound {
		t.Error("verify of a damaged index finds nothing")
	}
	r := count()
	if got := strings.Join(r.answered(t), "\n"); got != want || !strings.Contains(r.stderr, "computed anew") {
		t.Errorf("objects of a damaged index: %s\nwant %s\n%s", got, want, r.stderr)
	}
	verified(t, dir, 0)

	flip(t, dir, "index")
	p := record(t, dir, "tcp://127.0.0.1:9")
	refused := false
	eventually(t, "the recorder computes its index anew", func() bool {
		r := count()
		refused = refused || r.code == 1 && strings.Contains(r.stderr, "computed anew")
		return r.code == 0 && strings.TrimSpace(r.stdout) == want
	})
	if !refused || !strings.Contains(p.talk.String(), "the index is damaged") {
		t.Errorf("nothing was said of the damage (a question was refused: %v):\n%s", refused, p.talk.String())
	}
	for _, command := range [][]string{{"verify"}, {"repair", "--to", filepath.Join(t.TempDir(), "saved")}} {
		if r := kvjournal(t, append(command, "--dir", dir)...); r.code != 1 || !strings.Contains(r.stderr, "stop the recorder") {
			t.Errorf("%s beside a recorder: exit %d, %s", command[0], r.code, r.stderr)
		}
	}
	p.stop(t)
	verified(t, dir, 0)
}
