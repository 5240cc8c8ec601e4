package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query/service"
)

func newRebuild() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Compute the index anew from the journal",
		Long: `Computes the index anew from the journal, beside the old one, and then exchanges them; the answers are the same. On a
directory that a recorder writes to, the recorder does it and goes on recording and answering meanwhile. An
interrupted rebuild changes nothing.`,
		Example: `  kvjournal rebuild --dir /var/lib/kvjournal`,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, begun := cmd.Context(), time.Now()
			progress := progressOn(os.Stderr, "rebuilding the index")
			err := service.RebuildAtRest(ctx, dir, service.Options{Log: warnings(), Progress: progress})
			var live *service.LiveError
			if errors.As(err, &live) {
				recorder, rerr := recorderOf(ctx, dir, live)
				if rerr != nil {
					return rerr
				}
				err = recorder.Rebuild(ctx, progress)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "index rebuilt in %s\n", time.Since(begun).Round(time.Millisecond))
			return nil
		},
	}
	dirFlag(cmd, &dir)
	return cmd
}
