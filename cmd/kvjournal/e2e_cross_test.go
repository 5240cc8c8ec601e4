package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPrunedFromEndToEnd: a pruned directory is verified, backed up, restored, repaired, and heals its index, and what it answers stays.
func TestPrunedFromEndToEnd(t *testing.T) {
	t.Parallel()
	dir, objects := agedDir(t, "aged")
	did := pruneReport(t, dir, "--before", timeOf(2*3600).Format("2006-01-02T15:04:05Z07:00"))
	horizon := "offset:" + strconv.FormatUint(did.Horizon.Offset, 10)
	want := map[string][]string{}
	for _, at := range []string{horizon, ""} {
		want[at] = lookupLines(t, dir, at, objects)
	}
	same := func(what, dir string) {
		t.Helper()
		if r := kvjournal(t, "verify", "--dir", dir); r.code != 0 || !strings.Contains(r.stdout, "sound") {
			t.Errorf("%s: exit %d: %s %s", what, r.code, r.stdout, r.stderr)
		}
		for at, lines := range want {
			sameAnswers(t, what+", at "+at, lines, lookupLines(t, dir, at, objects))
		}
	}
	same("pruned", dir)
	tmp := t.TempDir()
	in := func(name string) string { return filepath.Join(tmp, name) }
	kvjournal(t, "backup", "--dir", dir, "--to", in("backup")).answered(t)
	same("the backup", in("backup"))
	kvjournal(t, "restore", "--from", in("backup"), "--dir", in("restored")).answered(t)
	same("restored", in("restored"))
	// A damaged index is computed from the baseline.
	tables, err := filepath.Glob(filepath.Join(in("restored"), "index", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, path := range tables {
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
	}
	sameAnswers(t, "healed", want[""], lookupLines(t, in("restored"), "", objects))
	same("healed", in("restored"))
	// What was left over counts for nothing.
	for _, name := range []string{"index.new", "baseline.new", "backup.tmp/journal"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "000001.sst"), []byte("rest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	same("with leftovers", dir)
	kvjournal(t, "repair", "--dir", dir, "--to", in("repaired")).answered(t)
	same("repaired", in("repaired"))
}
