package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Who may not write to a directory is told so, with the path; nothing is changed.
func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	base := publicDir(t)
	dir, capture := filepath.Join(base, "data"), filepath.Join(base, "few.kvcap")
	runCommand(t, exec.Command(mooncakesimBinary, "--capture", capture, "--events", "2000"), "").answered(t)
	kvjournal(t, "import", "--dir", dir, capture).answered(t)
	for _, path := range []string{dir, filepath.Join(dir, "journal"), filepath.Join(dir, "index")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := gapLines(t, dir)
	for _, args := range [][]string{
		{"record", "--endpoint", "tcp://127.0.0.1:5557", "--dir", dir},
		{"record", "--endpoint", "tcp://127.0.0.1:5557", "--dir", filepath.Join(base, "new", "data")},
		{"import", "--dir", dir, "--source", "again", capture},
		{"rebuild", "--dir", dir},
	} {
		cmd := exec.Command(kvjournalBinary, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		r := runCommand(t, cmd, "")
		if r.code != 1 || !strings.Contains(r.stderr, "permission denied") || !strings.Contains(r.stderr, base) || strings.Contains(r.stderr, "goroutine ") {
			t.Errorf("%v: exit %d, %q", args, r.code, r.stderr)
		}
	}
	if after := gapLines(t, dir); strings.Join(after, "") != strings.Join(before, "") {
		t.Errorf("gaps %s, before %s", after, before)
	}
}
