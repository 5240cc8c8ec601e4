// Command kvjournal is the flight recorder of a Mooncake Store: it records the KV event stream of a master, keeps an index
// of which object was readable on which medium, and answers what was where, and how surely.
//
// Each subcommand is a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// Exit codes of the command-line contract.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	twoAtOnce()
	boundArenas()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once, as where stdout takes nothing any more
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var usage *query.UsageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "%s: %v\nSee `%s --help`.\n", cmd.CommandPath(), err, cmd.CommandPath())
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "%s: interrupted\n", cmd.CommandPath())
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.CommandPath(), err)
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kvjournal",
		Short: "The flight recorder of a Mooncake Store",
		Long: `kvjournal records the KV event stream of a Mooncake Store master into a durable, compressed journal, keeps an
index of which object was readable on which medium, and answers what was where, now or at a past moment. An answer
marked "confirmed" is never wrong about what the publisher had announced by the moment it names.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	profileFlags(root)
	settingsFlags(root)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpFunc(helpOn)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRecord(), newLookup(), newGaps(), newObjects(), newDiff(), newLifetimes(), newStats(), newImport(), newReconcile(), newRebuild(), newPrune(), newVerify(), newRepair(), newBackup(), newRestore(), newVersion(), newLog(), newExport(), newActivity(), newHistory(), newWhy(), newServe(), newManual())
	completions(root)
	return root
}

func usageError(err error) error { return &query.UsageError{Message: err.Error()} }

// usageArgs makes what an argument check says a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(err)
		}
		return nil
	}
}
