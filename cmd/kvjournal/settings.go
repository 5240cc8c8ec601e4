package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvjournal/kvjournal/query/near"
)

// A setting is a flag that the environment and a file can give too: every flag of a service (asService), and of all commands --dir
// and --output. It has one name and means one thing everywhere:
//
//	--keep-bytes 100GB      KVJOURNAL_KEEP_BYTES=100GB      keep-bytes = "100GB"
//
// What is given nearer to the command counts: flag > environment > file > default. The pure part, which decides, is here; the file is
// read in settingsfile.go, and what came of it printed in settingsprint.go.

// sharedSettings are those of every command that has the flag.
var sharedSettings = []string{"dir", "output"}

// togetherSettings say what is recorded. They count as one: all of them come from the nearest place that has any, so that the
// endpoint of a command line is never compared with the master of a file.
var togetherSettings = []string{"endpoint", "master", "source"}

// noSettings are flags of a service that are none.
var noSettings = []string{"help", "config", "print-config"}

// serviceAnnotation marks a command all of whose flags are settings.
const serviceAnnotation = "kvjournal service"

// envPrefix begins the names of settings in the environment.
const envPrefix = "KVJOURNAL_"

// envName is a setting's name in the environment.
func envName(setting string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// layer is what one place gives: the values of each setting in it, and what the place is called.
type layer struct {
	values map[string][]string
	called func(setting string) string
}

// given is what a setting is, and the place that says so.
type given struct {
	values []string
	place  string
}

// resolveSettings finds for each of names the nearest of layers that gives it; what none gives is left out.
func resolveSettings(names []string, layers []layer) map[string]given {
	out := map[string]given{}
	for _, name := range names {
		deciders := []string{name}
		if slices.Contains(togetherSettings, name) {
			deciders = togetherSettings
		}
		for _, l := range layers {
			if !slices.ContainsFunc(deciders, func(d string) bool { _, has := l.values[d]; return has }) {
				continue
			}
			if values, has := l.values[name]; has {
				out[name] = given{values, l.called(name)}
			}
			break
		}
	}
	return out
}

// envLayer reads the environment, as NAME=VALUE, for the settings known; lists are those that take several values, with white space
// between. An empty value is none. A name that looks like a setting's and is none is an error; all other names may be anybody's (a
// Kubernetes service named kvjournal alone makes a dozen), and are returned.
func envLayer(environ, known, lists []string) (l layer, foreign []string, err error) {
	l = layer{map[string][]string{}, func(setting string) string { return "environment " + envName(setting) }}
	names := map[string]string{strings.TrimPrefix(envName("config"), envPrefix): ""}
	for _, k := range known {
		names[strings.TrimPrefix(envName(k), envPrefix)] = k
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(name, envPrefix)
		if !ours {
			continue
		}
		setting, ok := names[name]
		switch {
		case !ok:
			if like, is := near.Nearest(name, sortedKeys(names)); is {
				return l, nil, fmt.Errorf("environment %s: there is no such setting; the nearest is %s", envPrefix+name, envPrefix+like)
			}
			foreign = append(foreign, envPrefix+name)
		case setting == "" || value == "":
		case slices.Contains(lists, setting):
			if values := strings.Fields(value); len(values) > 0 {
				l.values[setting] = values
			}
		default:
			l.values[setting] = []string{value}
		}
	}
	slices.Sort(foreign)
	return l, foreign, nil
}

// asService makes all flags of a command settings, and adds --print-config.
func asService(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[serviceAnnotation] = "true"
	shown := cmd.Flags().Bool("print-config", false, "print what is set, and where it comes from, as a file for --config; do nothing else")
	runE := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *shown {
			return printSettings(cmd)
		}
		return runE(cmd, args)
	}
	return cmd
}

// configFlag adds --config.
func configFlag(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "file with settings: flag > environment > file > default (environment:\n"+envName("config")+")")
}

// settingsOf are the names of a command's settings, in order.
func settingsOf(cmd *cobra.Command) (names []string) {
	service := cmd.Annotations[serviceAnnotation] != ""
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(sharedSettings, f.Name) || service && !f.Hidden && !slices.Contains(noSettings, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// allSettings are those of all commands below root, and those of them that take several values.
func allSettings(root *cobra.Command) (names, lists []string) {
	for _, c := range root.Commands() {
		for _, name := range settingsOf(c) {
			names = append(names, name)
			if isList(c.Flags().Lookup(name)) {
				lists = append(lists, name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(lists)
	return slices.Compact(names), slices.Compact(lists)
}

func isList(f *pflag.Flag) bool {
	_, list := f.Value.(pflag.SliceValue)
	return list
}

// placeAnnotation of a flag names the place where its value comes from; a default has none.
const placeAnnotation = "kvjournal place"

// loadSettings gives the settings that are no flags of this run what environment and file say.
func loadSettings(cmd *cobra.Command, environ []string) error {
	if cmd.Flags().Lookup("config") == nil {
		return nil
	}
	known, lists := allSettings(cmd.Root())
	env, _, err := envLayer(environ, known, lists)
	if err != nil {
		return usageError(err)
	}
	file, err := fileLayer(configPath(cmd, environ), known, lists)
	if err != nil {
		return err
	}
	names, flags := settingsOf(cmd), cmd.Flags()
	for name, g := range resolveSettings(names, []layer{flagLayer(cmd, names), env, file}) {
		if !flags.Changed(name) {
			for _, v := range g.values {
				if err := flags.Set(name, v); err != nil {
					return usageError(fmt.Errorf("%s: %w", g.place, err))
				}
			}
		}
		if err := flags.SetAnnotation(name, placeAnnotation, []string{g.place}); err != nil {
			return err
		}
	}
	return nil
}

// flagLayer is what the command line gave.
func flagLayer(cmd *cobra.Command, names []string) layer {
	l := layer{map[string][]string{}, func(setting string) string { return "flag --" + setting }}
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed {
			l.values[name] = []string{f.Value.String()}
		}
	}
	return l
}

// configPath is the file to read; "" for none.
func configPath(cmd *cobra.Command, environ []string) string {
	if f := cmd.Flags().Lookup("config"); f.Changed {
		return f.Value.String()
	}
	for _, pair := range environ {
		if path, ok := strings.CutPrefix(pair, envName("config")+"="); ok {
			return path
		}
	}
	return ""
}

// settingsFlags has environment and file read before a command runs, which then belongs to the owner of its directory.
func settingsFlags(root *cobra.Command) {
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := before(cmd, args); err != nil {
			return err
		}
		if err := loadSettings(cmd, os.Environ()); err != nil || cmd.Flags().Lookup("dir") == nil {
			return err
		}
		dir := cmd.Flags().Lookup("dir").Value.String()
		became, err := becomeOwner(dir)
		if runE := cmd.RunE; became {
			cmd.RunE = func(cmd *cobra.Command, args []string) error { return asOwner(runE(cmd, args), dir, became) }
		}
		return err
	}
}
