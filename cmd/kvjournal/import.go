package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/service"
)

func newImport() *cobra.Command {
	var dir, source string
	var again bool
	var maxEvents int
	cmd := &cobra.Command{
		Use:   "import CAPTURE…",
		Short: "Take .kvcap and .kvcap.zst captures into a source",
		Long: `Takes captures into a source, in the order given, as if they had been received: the answers and gaps are those of the
recorded stream. The whole file is checked first; a damaged one changes nothing. An import that is interrupted keeps
what it has, and goes on there when it is started again. The same capture into the same source twice is
refused, unless --again is given.`,
		Example: `  kvjournal import --dir DIR --source night night.kvcap.zst
  kvjournal import --dir DIR monday.kvcap.zst tuesday.kvcap.zst     # a source for each`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			if err := checkMaxEvents(maxEvents); err != nil {
				return usageError(err)
			}
			for _, path := range args {
				if _, err := os.Stat(path); err != nil {
					return fmt.Errorf("capture: %w", err)
				}
			}
			d, err := service.OpenForWriting(ctx, dir, "kvjournal import", service.Options{Log: warnings(), Progress: progressOn(os.Stderr, "indexing")})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			for _, path := range args {
				name := source
				if name == "" {
					name = sourceName(path)
				}
				progress := progressOn(os.Stderr, "importing "+filepath.Base(path))
				done, err := d.Import(ctx, name, path, recorder.ImportOptions{Again: again, MaxEvents: maxEvents, Progress: func(n, total int) {
					if progress != nil {
						progress(uint64(n), uint64(total))
					}
				}})
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s records into source %q, offsets %d to %d\n", path, number(uint64(done.Records)), name, done.First, done.Last)
			}
			return d.Finish(ctx)
		},
	}
	dirFlag(cmd, &dir)
	cmd.Flags().StringVar(&source, "source", "", "source to import into (default: the file's name)")
	maxEventsFlag(cmd, &maxEvents)
	cmd.Flags().BoolVar(&again, "again", false, "import a capture that the source has already once more")
	return cmd
}

// sourceName is a capture's file name without its endings.
func sourceName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".zst"), ".kvcap")
}
