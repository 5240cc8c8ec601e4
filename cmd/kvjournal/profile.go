package main

import (
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// profileFlag adds the hidden --cpu-profile FILE to all commands, for `go tool pprof`.
func profileFlag(root *cobra.Command) {
	var path string
	root.PersistentFlags().StringVar(&path, "cpu-profile", "", "write a CPU profile of this run to a file")
	if err := root.PersistentFlags().MarkHidden("cpu-profile"); err != nil {
		panic(err) // the flag was made one line above
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
	root.PersistentPostRun = func(*cobra.Command, []string) { pprof.StopCPUProfile() }
}
