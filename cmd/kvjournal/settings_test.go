package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestResolveSettings(t *testing.T) {
	t.Parallel()
	place := func(name string, values map[string][]string) layer {
		return layer{values, func(setting string) string { return name + " " + setting }}
	}
	one := func(v string) []string { return []string{v} }
	layers := []layer{
		place("flag", map[string][]string{"dir": one("f"), "endpoint": {"tcp://f:1", "tcp://f:2"}}),
		place("environment", map[string][]string{"dir": one("e"), "keep": one("1d"), "master": one("http://e:1")}),
		place("file", map[string][]string{"dir": one("c"), "keep": one("2d"), "buffer": one("9"), "source": one("s")}),
	}
	got := resolveSettings([]string{"buffer", "dir", "endpoint", "keep", "master", "max-events", "source"}, layers)
	want := map[string]given{
		"dir": {one("f"), "flag dir"}, "endpoint": {[]string{"tcp://f:1", "tcp://f:2"}, "flag endpoint"},
		"keep": {one("1d"), "environment keep"}, "buffer": {one("9"), "file buffer"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// Without the flag, master is the nearest of those that say what is recorded, and source is left out.
	got = resolveSettings([]string{"allow-host", "endpoint", "master", "source"}, layers[1:])
	if want := (map[string]given{"master": {one("http://e:1"), "environment master"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestEnvironmentOfSettings(t *testing.T) {
	t.Parallel()
	known, lists := []string{"buffer", "dir", "endpoint", "keep-bytes"}, []string{"endpoint"}
	l, foreign, err := envLayer([]string{
		"HOME=/root", "KVJOURNAL_DIR=/a b=c", "KVJOURNAL_ENDPOINT= tcp://m1:1\ttcp://m2:1\n", "KVJOURNAL_BUFFER=", "KVJOURNAL_CONFIG=x",
		"KVJOURNAL_SERVICE_HOST=10.0.0.1", "KVJOURNAL_PORT_80_TCP=tcp://10.0.0.1:80", "KVJOURNAL_SEED=1", "XKVJOURNAL_DIR=y",
	}, known, lists)
	if err != nil || !reflect.DeepEqual(l.values, map[string][]string{"dir": {"/a b=c"}, "endpoint": {"tcp://m1:1", "tcp://m2:1"}}) {
		t.Errorf("%v, %v", l.values, err)
	}
	if want := []string{"KVJOURNAL_PORT_80_TCP", "KVJOURNAL_SEED", "KVJOURNAL_SERVICE_HOST"}; !slices.Equal(foreign, want) {
		t.Errorf("foreign %q, want %q", foreign, want)
	}
	if got := l.called("keep-bytes"); got != "environment KVJOURNAL_KEEP_BYTES" {
		t.Errorf("%q", got)
	}
	for name, like := range map[string]string{
		"KVJOURNAL_KEEP_BITES": "KVJOURNAL_KEEP_BYTES", "KVJOURNAL_ENDPOINTS": "KVJOURNAL_ENDPOINT", "KVJOURNAL_DIRS": "KVJOURNAL_DIR",
		"KVJOURNAL_KEEP-BYTES": "KVJOURNAL_KEEP_BYTES", "KVJOURNAL_CONFIGS": "KVJOURNAL_CONFIG",
	} {
		if _, _, err := envLayer([]string{name + "=1"}, known, lists); err == nil || !strings.Contains(err.Error(), name) || !strings.HasSuffix(err.Error(), "the nearest is "+like) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseSettings(t *testing.T) {
	t.Parallel()
	known, lists := []string{"again", "buffer", "dir", "endpoint", "keep-bytes"}, []string{"endpoint"}
	got, err := parseSettings("# settings\ndir = '/a # b'  # where\nbuffer = 64\nagain = true\nendpoint = [\"tcp://m1:1\",\n \"tcp://m2:1\"]\n", known, lists)
	if want := (map[string][]string{"dir": {"/a # b"}, "buffer": {"64"}, "again": {"true"}, "endpoint": {"tcp://m1:1", "tcp://m2:1"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parseSettings("endpoint = []", known, lists); err != nil || len(got) > 0 {
		t.Errorf("an empty list: %v, %v", got, err)
	}
	if got, err := parseSettings(`endpoint = "tcp://m1:1"`, known, lists); err != nil || !reflect.DeepEqual(got, map[string][]string{"endpoint": {"tcp://m1:1"}}) {
		t.Errorf("a list of one: %v, %v", got, err)
	}
	for text, say := range map[string]string{
		"keep_bytes = 1":             `no setting "keep_bytes"; the nearest is "keep-bytes"`,
		"nonsense = 1":               "no setting \"nonsense\"; `kvjournal record",
		"[record]\nbuffer = 1":       "no tables",
		"[[source]]\nname = 'a'":     "no tables",
		"dir.a = 1":                  "no tables",
		"buffer = 1\n\ndir = /a":     "line 3",
		"dir = 'a'\ndir = 'b'":       "line 2",
		"dir = ['a']":                "dir: it takes one value",
		"endpoint = [1]":             "endpoint: a list holds texts",
		"buffer = 1.5":               "buffer: 1.5 is no text",
		"keep-bytes = 2026-11-01":    "write it in quotes",
		"endpoint = [[\"tcp://a\"]]": "endpoint: a list holds texts",
	} {
		if got, err := parseSettings(text, known, lists); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, %v; want an error that says %q", text, got, err, say)
		}
	}
}

// runRoot runs a command in this process.
func runRoot(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// A setting means one thing in every command that has it, and its name in the environment is its own.
func TestSettingsAreOne(t *testing.T) {
	t.Parallel()
	root := newRoot()
	known, lists := allSettings(root)
	kinds, env := map[string]string{}, map[string]string{}
	for _, c := range root.Commands() {
		for _, name := range settingsOf(c) {
			f := c.Flags().Lookup(name)
			if kind := f.Value.Type() + " " + f.DefValue; kinds[name] != "" && kinds[name] != kind {
				t.Errorf("--%s is %s in %s, and elsewhere %s", name, kind, c.Name(), kinds[name])
			} else {
				kinds[name] = kind
			}
		}
	}
	for _, name := range known {
		if other := env[envName(name)]; other != "" {
			t.Errorf("%s and %s are the same in the environment", name, other)
		}
		env[envName(name)] = name
	}
	for _, name := range append([]string{"dir", "output", "buffer", "keep-bytes"}, togetherSettings...) {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no setting: %q", name, known)
		}
	}
	if want := []string{"allow-host", "endpoint", "master", "source"}; !slices.Equal(lists, want) {
		t.Errorf("lists %q, want %q", lists, want)
	}
}

// What --print-config prints, given as a file, sets the same, whatever the values are.
func TestPrintConfigComesBack(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	texts := []string{"plain", "with space", `"quoted" 'twice'`, "# no comment", `C:\back\slash`, "ünïcode ✓", "a,b=c", "tab\tand\nnewline", "[x]", "", "true", "12"}
	record, _, err := newRoot().Find([]string{"record"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "settings.toml")
	for range 200 {
		args := []string{"record", "--print-config"}
		for _, name := range settingsOf(record) {
			if rng.IntN(2) == 0 {
				continue
			}
			text := func() string { return texts[rng.IntN(len(texts))] }
			switch kind := record.Flags().Lookup(name).Value.Type(); {
			case kind == "duration":
				text = func() string { return (time.Duration(rng.IntN(1e6)) * time.Millisecond).String() }
			case kind == "bool":
				text = func() string { return fmt.Sprint(rng.IntN(2) == 0) }
			case strings.Contains(kind, "int"):
				text = func() string { return fmt.Sprint(rng.IntN(1e6)) }
			case kind == "stringArray":
				for range rng.IntN(3) {
					args = append(args, "--"+name+"="+text())
				}
			}
			args = append(args, "--"+name+"="+text())
		}
		printed, err := runRoot(t, args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if err := os.WriteFile(path, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := runRoot(t, "record", "--print-config", "--config", path)
		if err != nil {
			t.Fatalf("%v: %q prints what is no file:\n%s", err, args, printed)
		}
		if a, b := settingLines(printed), settingLines(again); !slices.Equal(a, b) {
			t.Fatalf("%q\nprinted %q\ncame back as %q", args, a, b)
		}
		if strings.Contains(again, "# flag") || strings.Count(again, "# file "+path) != len(settingLines(printed)) {
			t.Fatalf("where it came from:\n%s", again)
		}
	}
}

// settingLines are the lines of a file that set something, without where it came from.
func settingLines(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line[:strings.LastIndex(line, "  # ")])
		}
	}
	return lines
}

// configured runs the program with an environment of the test alone.
func configured(t *testing.T, environ map[string]string, args ...string) result {
	t.Helper()
	cmd := exec.Command(kvjournalBinary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range maps.All(environ) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return runCommand(t, cmd, "")
}

// Flag, environment, file and default are what commands go by, in this order.
func TestSettingsCount(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	var dirs []string
	for i, events := range []string{"640", "1280", "1920"} {
		dir, capture := filepath.Join(tmp, fmt.Sprint("d", i)), filepath.Join(tmp, events+".kvcap")
		runCommand(t, exec.Command(mooncakesimBinary, "--capture", capture, "--events", events), "").answered(t)
		kvjournal(t, "import", "--dir", dir, capture).answered(t)
		dirs = append(dirs, dir)
	}
	file := filepath.Join(tmp, "settings.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "dir = %q\noutput = \"json\"\nbuffer = 7\n", dirs[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KVJOURNAL_DIR": dirs[1], "KVJOURNAL_SERVICE_PORT": "80"}
	for _, c := range []struct {
		environ map[string]string
		args    []string
		want    string
	}{
		{env, []string{"--dir", dirs[0], "--config", file}, `{"events":640,`},
		{env, []string{"--config", file}, `{"events":1280,`},
		{map[string]string{"KVJOURNAL_DIR": ""}, []string{"--config", file}, `{"events":1920,`},
		{map[string]string{"KVJOURNAL_CONFIG": file}, nil, `{"events":1920,`},
		{map[string]string{"KVJOURNAL_CONFIG": filepath.Join(tmp, "none.toml")}, []string{"--config", file}, `{"events":1920,`},
		{env, []string{"--output", "json"}, `{"events":1280,`},
	} {
		r := configured(t, c.environ, append([]string{"stats"}, c.args...)...)
		if r.answered(t); !strings.HasPrefix(r.stdout, c.want) {
			t.Errorf("%v %q: %.60q, want %q", c.environ, c.args, r.stdout, c.want)
		}
	}
	r := configured(t, env, "stats", "--config", filepath.Join(tmp, "none.toml"))
	r.told(t, 1, "--config", "none.toml", "no such file")
	configured(t, map[string]string{"KVJOURNAL_DIRS": tmp}, "stats").told(t, 2, "KVJOURNAL_DIRS", "the nearest is KVJOURNAL_DIR\n")
	configured(t, map[string]string{"KVJOURNAL_BUFFER": "x"}, "record").told(t, 2, "environment KVJOURNAL_BUFFER", "--buffer")
	configured(t, nil, "record", "--bufer", "7").told(t, 2, "unknown flag: --bufer; the nearest is --buffer")
	if err := os.WriteFile(file, []byte("bufer = 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	configured(t, nil, "lookup", "--config", file, "k").told(t, 2, file, "bufer", `the nearest is "buffer"`)
}

// A recorder goes by its settings, wherever they stand, and records from one place only.
func TestRecordBySettings(t *testing.T) {
	t.Parallel()
	sim, endpoint := simulate(t, "--rate", "2000")
	_ = sim
	tmp := t.TempDir()
	dir, file := filepath.Join(tmp, "data"), filepath.Join(tmp, "settings.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "dir = %q\nmaster = \"http://127.0.0.1:1\"\n", dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(kvjournalBinary, "record", "--config", file)
	cmd.Env = append(os.Environ(), "KVJOURNAL_ENDPOINT="+endpoint)
	p := startCommand(t, cmd)
	p.answers(t, dir)
	connected(t, dir, true)
	if strings.Contains(p.talk.String(), "reconciling with the master") {
		t.Errorf("the endpoint of the environment is recorded with the master of the file:\n%s", p.talk.String())
	}
	p.stop(t)
}

// The example of a file of settings names settings only, and can be used with all of its lines.
func TestExampleConfig(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("packaging", "kvjournal.toml"))
	if err != nil {
		t.Fatal(err)
	}
	known, lists := allSettings(newRoot())
	if _, err := parseSettings(string(b), known, lists); err != nil {
		t.Error(err)
	}
	var all []string
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(rest, " ") {
			line = rest
		}
		all = append(all, line)
	}
	path := filepath.Join(t.TempDir(), "all.toml")
	if err := os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, err := runRoot(t, "record", "--print-config", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(settingLines(printed)); n < 6 {
		t.Errorf("it sets %d settings:\n%s", n, printed)
	}
}
