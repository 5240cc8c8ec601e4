package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		if like, near := nearest(unknown.GetSpecifiedName(), names); near {
			err = fmt.Errorf("%w; the nearest is --%s", err, like)
		}
	}
	return usageError(err)
}

// nearest is the one of names that takes the fewest changes of a letter to make of name, the first of several; near tells that it
// was most likely meant.
func nearest(name string, names []string) (like string, near bool) {
	best := -1
	for _, n := range names {
		if d := editDistance(name, n); best < 0 || d < best {
			best, like = d, n
		}
	}
	return like, best >= 0 && best <= min(2, (len(name)+1)/4)
}

// editDistance is how many letters must be put in, taken out or replaced, or neighbours exchanged, to make b of a.
func editDistance(a, b string) int {
	row, above := make([]int, len(b)+1), make([]int, len(b)+1) // above: the row before the last
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		row, above = next, row
	}
	return row[len(b)]
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
	if like, near := nearest(args[0], names); near {
		err = fmt.Errorf("%w; the nearest is %s", err, like)
	}
	return usageError(err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
