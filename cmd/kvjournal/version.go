package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = ""

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "The version of this program, and the format it writes",
		Example: `  kvjournal version`,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version
			if v == "" {
				v = "unversioned"
				if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
					v = info.Main.Version
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kvjournal %s, data format %d, %s %s/%s\n", v, datadir.Format, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
