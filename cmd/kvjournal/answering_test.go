package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A recorder that is stopped is named, and what to do; it answers again when it goes on.
func TestStoppedRecorder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	rec := record(t, dir, "tcp://127.0.0.1:1")
	kvjournal(t, "reconcile", "--dir", dir, "--source", "nobody").told(t, 2, "nobody", "there is default")
	if r := kvjournal(t, "gaps", "--dir", dir); r.code != 0 || !strings.HasPrefix(r.stdout, "Nothing was recorded yet") {
		t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	rec.signal(t, syscall.SIGSTOP)
	for _, command := range []string{"stats", "gaps"} {
		kvjournal(t, command, "--dir", dir).told(t, 1, "kvjournal record, process ", "since ", "does not answer", "kill -CONT", "restart")
	}
	follower := start(t, kvjournalBinary, "log", "--follow", "--dir", dir)
	eventually(t, "the follower waits", func() bool { return strings.Contains(follower.talk.String(), "waiting for it") })
	rec.signal(t, syscall.SIGCONT)
	eventually(t, "the follower goes on", func() bool { return strings.Contains(follower.out.String(), "recorder started") })
	follower.stop(t)
	stats(t, dir)
	rec.stop(t)
}
