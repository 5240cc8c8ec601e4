package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionWords are what a flag can be, where that is a word of a few; a flag of the same name takes the same in every command.
var completionWords = map[string][]string{
	"output":    {"table", "json"},
	"state":     {"present", "absent", "any"},
	"certainty": {"confirmed", "uncertain"},
	"medium":    {"cpu", "disk"},
	"format":    {"kvcap", "ndjson"},
	"by":        {"tenant", "group", "none"},
	"at":        {"now", "-5m", "offset:", "seq:"},
	"from":      {"-1h", "-5m", "offset:", "seq:"},
	"to":        {"now", "-5m", "offset:", "seq:"},
}

// completions tells the shells what flags and arguments can be. What nothing is known of is completed with nothing, not with files.
func completions(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "import" {
			c.ValidArgsFunction = cobra.FixedCompletions([]string{"kvcap", "zst"}, cobra.ShellCompDirectiveFilterFileExt)
		} else if c.ValidArgsFunction == nil && c.Name() != "manual" {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		c.Flags().VisitAll(func(f *pflag.Flag) { completeFlag(c, f) })
	}
}

func completeFlag(c *cobra.Command, f *pflag.Flag) {
	words, few := completionWords[f.Name]
	directive := cobra.ShellCompDirectiveNoFileComp
	switch written := flagHelp(f)[0]; {
	case strings.HasSuffix(written, " DIR"):
		words, directive = nil, cobra.ShellCompDirectiveFilterDirs
	case strings.HasSuffix(written, " FILE"):
		words, directive = nil, cobra.ShellCompDirectiveDefault
	case few && slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, ":") }):
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	if f.Value.Type() == "bool" {
		return
	}
	if err := c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, directive)); err != nil {
		panic(err) // the flag is the command's own, and each is visited once
	}
}
