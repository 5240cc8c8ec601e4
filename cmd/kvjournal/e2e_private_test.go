package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOnlyTheOwnerMayRead: whatever the umask is, and whoever may enter the directory, all that is written there is its owner's alone: while
// a recorder runs, at rest, after an import, and after a rebuild.
func TestOnlyTheOwnerMayRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	open := func(args ...string) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", `umask 000; exec "$0" "$@"`, kvjournalBinary}, args...)...)
	}
	_, endpoint := simulate(t, "--rate", "2000")
	rec := startCommand(t, open("record", "--dir", dir, "--endpoint", endpoint))
	rec.answers(t, dir)
	eventually(t, "all is recorded", func() bool { st := stats(t, dir); return st.Events > 0 && st.Index.Lag == 0 })
	onlyMine(t, dir, "while it is recorded", "KVJOURNAL", "kvjournal.sock", "live.json", "claim", "access", "journal/", "index/")
	rec.stop(t)
	onlyMine(t, dir, "at rest", "KVJOURNAL", "head")
	if out, err := open("rebuild", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	onlyMine(t, dir, "rebuilt", "index/")
	// Made loose, as by a careless restore: the next writer keeps others out of it again.
	for _, name := range []string{"journal", "index"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	capture := filepath.Join(t.TempDir(), "x.kvcap")
	if out, err := open("export", "--dir", dir, "--out", capture).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := open("import", "--dir", dir, "--source", "x", capture).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	onlyMine(t, dir, "imported", "journal/")
	aged, _ := agedDir(t, "aged")
	tmp := t.TempDir()
	made := func(name string) string { return filepath.Join(tmp, name) }
	if err := os.Mkdir(made("restored"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"prune", "--dir", aged, "--keep-bytes", "1KB"}, {"backup", "--dir", aged, "--to", made("backup")}, {"restore", "--from", made("backup"), "--dir", made("restored")},
		{"repair", "--dir", aged, "--to", made("repaired")}, {"rebuild", "--dir", made("repaired")},
	} {
		if out, err := open(args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	for _, dir := range []string{aged, made("backup"), made("restored"), made("repaired")} {
		onlyMine(t, dir, "behind a prune", "KVJOURNAL", "journal/", "index/")
	}
}

// onlyMine checks the modes of all in dir, and that the names given are there.
func onlyMine(t *testing.T, dir, when string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil // gone meanwhile, or not ours
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && filepath.Ext(path) != ".dbtmp" {
			t.Errorf("%s: %s is %v", when, path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
