package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installed is what make install puts below a new directory, which stands for the root of a machine.
func installed(t *testing.T, environ ...string) (root string, files []string) {
	t.Helper()
	root = t.TempDir()
	runInstall(t, append(environ, "DESTDIR="+root))
	return root, filesBelow(t, root)
}

func runInstall(t *testing.T, environ []string, args ...string) {
	t.Helper()
	cmd := exec.Command("bash", append([]string{filepath.Join("packaging", "install.sh")}, args...)...)
	cmd.Env = append(append(os.Environ(), "BIN="+kvjournalBinary), environ...)
	if r := runCommand(t, cmd, ""); r.code != 0 || r.stdout != "" || r.stderr != "" {
		t.Fatalf("install.sh: exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

func filesBelow(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// make install puts everything where a system looks for it, leaves settings that are there alone, and make uninstall takes it away.
func TestInstall(t *testing.T) {
	t.Parallel()
	root, files := installed(t, "PREFIX=/usr")
	const config = "/etc/kvjournal/kvjournal.toml"
	for path, mode := range map[string]fs.FileMode{
		"/usr/bin/kvjournal": 0o755, "/usr/lib/systemd/system/kvjournal.service": 0o644, "/usr/lib/sysusers.d/kvjournal.conf": 0o644, config: 0o644,
		"/usr/share/man/man1/kvjournal.1": 0o644, "/usr/share/man/man1/kvjournal-record.1": 0o644, "/usr/share/zsh/site-functions/_kvjournal": 0o644,
		"/usr/share/bash-completion/completions/kvjournal": 0o644, "/usr/share/fish/vendor_completions.d/kvjournal.fish": 0o644,
	} {
		if info, err := os.Stat(root + path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	unit := readText(t, root+"/usr/lib/systemd/system/kvjournal.service")
	if !strings.Contains(unit, "\nExecStart=/usr/bin/kvjournal record --config "+config+"\n") || strings.Contains(unit, "@PREFIX@") {
		t.Errorf("the unit:\n%s", unit)
	}
	r := configured(t, nil, "record", "--print-config", "--config", root+config)
	if lines := settingLines(strings.Join(r.answered(t), "\n")); !slices.Contains(lines, `dir = "/var/lib/kvjournal"`) {
		t.Errorf("what is installed is configured to %q", lines)
	}
	const mine = "endpoint = \"tcp://mine:1\"\n"
	if err := os.WriteFile(root+config, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PREFIX=/usr", "DESTDIR=" + root}
	runInstall(t, environ)
	if again := filesBelow(t, root); !slices.Equal(again, files) || readText(t, root+config) != mine {
		t.Errorf("installed again: %q, settings %q", again, readText(t, root+config))
	}
	runInstall(t, environ, "-u")
	if left := filesBelow(t, root); !slices.Equal(left, []string{config}) {
		t.Errorf("left behind: %q", left)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// systemd takes the unit as it is, and finds it well locked up.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("there is no systemd to ask: %v", err)
	}
	tmp := t.TempDir()
	runInstall(t, []string{"PREFIX=" + tmp, "SYSCONFDIR=" + filepath.Join(tmp, "etc")})
	unit := filepath.Join(tmp, "lib", "systemd", "system", "kvjournal.service")
	r := runCommand(t, exec.Command(analyze, "verify", "--man=no", unit), "")
	if r.code != 0 || r.stdout+r.stderr != "" {
		t.Errorf("systemd-analyze verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	const most = "15" // of 100; the network and local sockets, which it needs, are most of it
	r = runCommand(t, exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold="+most, unit), "")
	if strings.Contains(r.stderr, "unrecognized option") {
		t.Skipf("this systemd cannot judge a file: %s", r.stderr)
	}
	if r.code != 0 || !strings.Contains(r.stdout, "Overall exposure level") {
		t.Errorf("systemd-analyze security: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// libzmq aborts the recorder where this is refused ("Operation not permitted (src/thread.cpp:…)").
	text := readText(t, unit)
	if deny, allow := strings.Index(text, "SystemCallFilter=~"), strings.Index(text, "SystemCallFilter=sched_setscheduler\n"); deny < 0 || allow < deny {
		t.Errorf("the unit does not let libzmq start its threads:\n%s", text)
	}
}

// The image is built with the Go that go.mod names, runs as an ordinary user, and its commands are those of the program.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := readText(t, filepath.Join("packaging", "Dockerfile"))
	line := func(instruction string) string {
		m := regexp.MustCompile(`(?m)^`+instruction+` (.*)$`).FindAllStringSubmatch(text, -1)
		if m == nil {
			t.Fatalf("it has no %s", instruction)
		}
		return m[len(m)-1][1]
	}
	goVersion := regexp.MustCompile(`(?m)^go (.*)$`).FindStringSubmatch(readText(t, filepath.Join("..", "..", "go.mod")))
	if goVersion == nil || !strings.Contains(text, "\nFROM golang:"+goVersion[1]+"-") {
		t.Errorf("it is not built with Go %v", goVersion)
	}
	if user := line("USER"); !regexp.MustCompile(`^[1-9][0-9]+:[1-9][0-9]+$`).MatchString(user) {
		t.Errorf("USER %s: not an ordinary one, by number", user)
	}
	var entry, command, health []string
	_, healthText, _ := strings.Cut(line("HEALTHCHECK"), " CMD ")
	for text, to := range map[string]*[]string{line("ENTRYPOINT"): &entry, line("CMD"): &command, healthText: &health} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	for _, args := range [][]string{append(entry, command...), health} {
		if c, rest, err := newRoot().Find(args[1:]); err != nil || args[0] != "kvjournal" || c.Name() != args[1] {
			t.Errorf("%q: %v, %v", args, rest, err)
		}
	}
	known, _ := allSettings(newRoot())
	for _, m := range regexp.MustCompile(`KVJOURNAL_[A-Z_]+`).FindAllString(text, -1) {
		if !slices.ContainsFunc(known, func(name string) bool { return envName(name) == m }) {
			t.Errorf("%s is no setting", m)
		}
	}
}
