package main

import "github.com/spf13/cobra"

func newActivity() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "How much happened when: events over time, with gaps, restarts and reconnects",
		Long: `Counts events by the publisher's clock, in buckets of time, and marks the buckets in which something was lost: gaps,
restarts, reconnects and damaged messages (what each cause means: kvjournal gaps --help).

` + whenHelp,
		Example: `  kvjournal activity                   # all that was recorded, in about 40 to 60 buckets
  kvjournal activity --from -1h --bucket 1m
  kvjournal activity --tenant t1 --medium cpu --type removed
  kvjournal activity --output json     # a line for each bucket: counts by type, medium and tenant`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.ask("activity", "counting events", activityPlot) },
	}
	a = newAsking(cmd)
	a.where()
	a.span()
	a.text("medium", "medium", "medium (default: all)")
	a.text("type", "type", "stored, removed or cleared, with commas between (default: all)")
	a.text("bucket", "bucket", "width of the buckets, like 10s, 1m or 1h (default: what suits the span)")
	return cmd
}
