package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// profileFlags adds the hidden flags that measure a command: --cpu-profile FILE, for `go tool pprof`, and --resources, which
// says at the end how long it took and what it used.
func profileFlags(root *cobra.Command) {
	var path string
	var resources bool
	begun := time.Now()
	flags := root.PersistentFlags()
	flags.StringVar(&path, "cpu-profile", "", "write a CPU profile of this run to a file")
	flags.BoolVar(&resources, "resources", false, "say at the end how long this run took, and what it used")
	for _, name := range []string{"cpu-profile", "resources"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // the flag was made a few lines above
		}
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if path == "" {
			return nil
		}
		f, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("--cpu-profile: %w", err)
		}
		return pprof.StartCPUProfile(f)
	}
	root.PersistentPostRun = func(*cobra.Command, []string) {
		pprof.StopCPUProfile()
		if resources {
			fmt.Fprintln(os.Stderr, used(time.Since(begun)))
		}
	}
}

// used says what the process took of the machine.
func used(wall time.Duration) string {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err.Error()
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return fmt.Sprintf("took_ms %d cpu_ms %d resident_mib %d", wall.Milliseconds(), cpu.Milliseconds(), u.Maxrss/1024)
}
