package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// serviceUser is the one whose recorder it is in TestRootAsks.
const serviceUser = 12345

func asServiceUser(args ...string) *exec.Cmd {
	cmd := exec.Command(kvjournalBinary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: serviceUser, Gid: serviceUser}}
	return cmd
}

// Root can ask about a service's directory, and work on it: no file of root's stays behind, and the service starts again.
func TestRootAsks(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	base := publicDir(t)
	dir := filepath.Join(base, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, serviceUser, serviceUser); err != nil {
		t.Fatal(err)
	}
	_, endpoint := simulate(t, "--rate", "3000")
	rec := startCommand(t, asServiceUser("record", "--dir", dir, "--endpoint", endpoint, "--min-free", "0"))
	rec.answers(t, dir)
	connected(t, dir, true)
	eventually(t, "something is recorded", func() bool { return stats(t, dir).Events > 1000 })
	rec.kill9(t)
	capture := filepath.Join(base, "few.kvcap")
	runCommand(t, exec.Command(mooncakesimBinary, "--capture", capture, "--events", "2000"), "").answered(t)
	for _, args := range [][]string{{"stats"}, {"gaps"}, {"rebuild"}, {"import", capture}, {"prune", "--keep-bytes", "1MB"}, {"objects", "--count"}} {
		kvjournal(t, append(args, "--dir", dir)...).answered(t)
		ownedBy(t, dir, strings.Join(args, " "))
	}
	secret := filepath.Join(t.TempDir(), "roots.kvcap")
	kvjournal(t, "export", "--dir", dir, "--source", "few", "--out", secret).told(t, 1, "permission denied", "goes on as the owner of "+dir, "12345")
	rec = startCommand(t, asServiceUser("record", "--dir", dir, "--endpoint", endpoint, "--min-free", "0"))
	rec.answers(t, dir)
	rec.stop(t)
}

func ownedBy(t *testing.T, dir, after string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != serviceUser {
			t.Errorf("after %s, %s belongs to user %d", after, path, uid)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestChangesTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user  int
		owner uint32
		want  bool
	}{{0, 998, true}, {0, 0, false}, {0, nobody, false}, {1000, 998, false}, {1000, 0, false}} {
		if got := changesTo(c.user, c.owner); got != c.want {
			t.Errorf("user %d, owner %d: %v", c.user, c.owner, got)
		}
	}
}
