package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The e2e tests drive the real programs as processes, over real TCP. Environment:
//
//	KVJOURNAL_KILLS=20      how often TestKill9UnderLoad kills the recorder (default 5: about 20 s)
//	KVJOURNAL_LIFE=5        the load that it begins with, from 1 on
//	KVJOURNAL_E2E_RACE=1    build the programs with the race detector
var (
	kvjournalBinary   string
	mooncakesimBinary string
)

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kvjournal-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // tests run it as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if os.Getenv("KVJOURNAL_E2E_RACE") != "" {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, ".", "../mooncakesim")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	kvjournalBinary, mooncakesimBinary = filepath.Join(dir, "kvjournal"), filepath.Join(dir, "mooncakesim")
	return m.Run()
}
