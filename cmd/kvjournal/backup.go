package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

func newBackup() *cobra.Command {
	var dir, to, output string
	cmd := &cobra.Command{
		Use:   "backup --to NEWDIR",
		Short: "Write a consistent copy of the directory, while it is recorded into or at rest",
		Long: `Writes a consistent copy of the data directory to a new one, opens it, compares it with the original, and only then
gives it its name: an interrupted backup leaves nothing that looks like one. A running recorder does it itself (it is the
one that needs the right to write there), and loses nothing meanwhile.

All that was acknowledged when the backup began is in it. Every question can be asked of it (--dir NEWDIR); it is not
written to. "kvjournal restore" makes a data directory of it.

On the volume of the directory, tables are shared by hard links. Such a backup is made in a moment and takes little
room, and it protects from mistakes, not from the loss of the disk: for that, name a directory on another volume.`,
		Example: `  kvjournal backup --dir /var/lib/kvjournal --to /mnt/backup/kvjournal-monday
  kvjournal stats --dir /mnt/backup/kvjournal-monday`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if to == "" {
				return usageError(errors.New("name the directory that the backup goes to: --to NEWDIR"))
			}
			to, err := filepath.Abs(to)
			if err != nil {
				return err
			}
			r, err := takeBackup(cmd.Context(), dir, to)
			if err != nil {
				return err
			}
			return showReport(cmd.OutOrStdout(), output, r)
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&to, "to", "", "the new `directory` that the backup goes to")
	return cmd
}

// takeBackup asks the recorder where one runs, and copies the directory itself where none does.
func takeBackup(ctx context.Context, dir, to string) (*backup.Report, error) {
	progress := copyProgress()
	r, err := service.BackupAtRest(ctx, dir, to, backup.Options{Log: warnings(), Progress: progress})
	var live *service.LiveError
	if !errors.As(err, &live) {
		return r, err
	}
	recorder, err := recorderOf(ctx, dir, live)
	if err != nil {
		return nil, err
	}
	return recorder.Backup(ctx, to, progress)
}

// copyProgress shows on a terminal how far each step of a copy is; nil where there is none.
func copyProgress() func(backup.Progress) {
	show := stepsOn(os.Stderr)
	if show == nil {
		return nil
	}
	return func(p backup.Progress) { show(p.Step, p.Done, p.Total) }
}

func showReport(w io.Writer, output string, r *backup.Report) error {
	out := newPrinter(w)
	if output == "json" {
		if err := emit(r, out.line); err != nil {
			return err
		}
		return out.Flush()
	}
	widths := []int{16}
	made := "backup"
	if r.Origin != "" {
		made = "restored"
	}
	out.row(widths, made, r.Dir)
	out.row(widths, "from", r.From)
	out.row(widths, "holds", fmt.Sprintf("%s events in %s messages of %d sources, through offset %s", number(r.Events), number(r.Messages), r.Sources, number(r.DurableOffset)))
	out.row(widths, "size", bytesOf(r.Bytes))
	if r.Linked > 0 {
		out.row(widths, "shared", bytesOf(r.Linked)+" of it with the original: no protection from the loss of the disk")
	}
	out.row(widths, "compared", fmt.Sprintf("a sample of %s records, and the rows of their %s events", number(uint64(r.Compared.Records)), number(uint64(r.Compared.Events))))
	out.row(widths, "journal id", r.JournalID)
	if r.Origin != "" {
		out.row(widths, "begun as", "a copy of "+r.Origin)
	}
	out.row(widths, "took", fmt.Sprintf("%d ms", r.TookMs))
	return out.Flush()
}
