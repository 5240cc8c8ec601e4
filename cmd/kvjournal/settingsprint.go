package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printSettings prints a command's settings as a file that --config takes. What has its default is a comment in it, so that the file
// goes on meaning the default.
func printSettings(cmd *cobra.Command) error {
	known, lists := allSettings(cmd.Root())
	_, foreign, err := envLayer(os.Environ(), known, lists)
	if err != nil {
		return usageError(err)
	}
	out := newPrinter(cmd.OutOrStdout())
	fmt.Fprintf(out, "# The settings of `%s`, for --config: flag > environment > file > default.\n", cmd.CommandPath())
	if len(foreign) > 0 {
		fmt.Fprintf(out, "# No settings, and left alone: %s.\n", strings.Join(foreign, ", "))
	}
	for _, name := range settingsOf(cmd) {
		f := cmd.Flags().Lookup(name)
		_, usage := pflag.UnquoteUsage(f)
		for _, line := range paragraph(usage, tableWidth-2) {
			fmt.Fprintf(out, "\n# %s", line)
		}
		text, err := settingLine(f)
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
		if place := f.Annotations[placeAnnotation]; len(place) > 0 {
			fmt.Fprintf(out, "\n%s  # %s\n", text, place[0])
		} else {
			fmt.Fprintf(out, "\n# %s  # default\n", text)
		}
	}
	return out.Flush()
}

// settingLine is a flag's value as a line of a file.
func settingLine(f *pflag.Flag) (string, error) {
	var v any = f.Value.String()
	if s, ok := f.Value.(pflag.SliceValue); ok {
		v = append([]string{}, s.GetSlice()...)
	} else if n, err := strconv.ParseInt(f.Value.String(), 10, 64); err == nil && strings.Contains(f.Value.Type(), "int") {
		v = n
	} else if f.Value.Type() == "bool" {
		v = f.Value.String() == "true"
	}
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(map[string]any{f.Name: v}); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}
