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
	return like, best >= 0 && best <= min(2, len(name)/4)
}

// editDistance is how many letters must be put in, taken out or replaced to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
