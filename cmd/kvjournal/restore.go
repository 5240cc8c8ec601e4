package main

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

func newRestore() *cobra.Command {
	var from, dir, output string
	cmd := &cobra.Command{
		Use:   "restore --from BACKUP",
		Short: "Make a data directory of a backup",
		Long: `Checks a backup and copies it to a missing or empty directory, which can then be recorded into. The backup stays as it
is. Any other data directory that nobody writes to can stand in its place.

What was recorded after the backup is not in it, so the next recorder begins as after a pause: its first batch is a gap of
the cause recorder_down, and what was known before is in doubt until it is announced anew or read from the master.

The restored journal gets an id of its own: from here on its offsets name other records than the same offsets of the
journal that the backup was taken of.`,
		Example: `  kvjournal restore --from /mnt/backup/kvjournal-monday --dir /var/lib/kvjournal`,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if from == "" {
				return usageError(errors.New("name the backup: --from BACKUP"))
			}
			dir, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			r, err := service.Restore(cmd.Context(), from, dir, backup.Options{Log: warnings(), Progress: copyProgress()})
			var live *service.LiveError
			if errors.As(err, &live) {
				return errors.New(live.Error() + "; take a backup of it first (`kvjournal backup`), and restore that")
			}
			if err != nil {
				return err
			}
			return showReport(cmd.OutOrStdout(), output, r)
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&from, "from", "", "the backup's `directory`")
	return cmd
}
