package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvjournal/kvjournal/query/near"
)

// flagError says what is wrong with a flag, and of an unknown one which is the nearest.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 {
		return noCommand(cmd, args) // the flag is of a command that there is not
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if like, is := near.Nearest(unknown.GetSpecifiedName(), names); is {
			err = fmt.Errorf("%w; the nearest is --%s", err, like)
		}
	}
	return usageError(err)
}

// noCommand refuses what is no command, and names the nearest.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	err := fmt.Errorf("unknown command %q", shorten(args[0], tableWidth))
	if like, is := near.Nearest(args[0], names); is {
		err = fmt.Errorf("%w; the nearest is %s", err, like)
	}
	return usageError(err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
