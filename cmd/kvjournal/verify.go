package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query/service"
)

// errDamaged is how verify ends where it found damage; what, it has said.
var errDamaged = errors.New("the directory is damaged")

func newVerify() *cobra.Command {
	var dir, output, scratch string
	var noCompare bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read all of a directory at rest and tell what is damaged",
		Long: `Reads all of a data directory that no recorder writes to, and changes nothing: every file with its checksums, every block and
every message of the journal, the rows beside them, where each source stands, and the index, which is computed anew for a
while under --scratch and compared row by row. That takes as much room there as the index has.

Each finding names the file, the offset where there is one, and what to do. "damage" is what is lost or wrong; a "note" is
no loss: what a crash leaves of a write that was never acknowledged, or a file that is not needed any more.

The exit code is 0 where all is sound, 1 where something is damaged. With --output json each finding is a line
{"file","offset","last_offset","key","what","severity","next"}, and the last line is a summary: {"sound","damaged","notes",…}.`,
		Example: `  kvjournal verify --dir /var/lib/kvjournal
  kvjournal verify --dir /var/lib/kvjournal --output json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkOutput(output); err != nil {
				return err
			}
			out := newPrinter(cmd.OutOrStdout())
			defer func() { err = errors.Join(err, out.Flush()) }()
			show := findingTable(out)
			if output == "json" {
				show = func(f journal.Finding) error { return emit(f, out.line) }
			}
			begun := time.Now()
			var showing error
			v, err := service.Verify(cmd.Context(), dir, service.VerifyOptions{
				Scratch: scratch, NoCompare: noCompare,
				JournalProgress: progressOn(os.Stderr, "verifying the journal, bytes"),
				IndexProgress:   progressOn(os.Stderr, "computing the index anew, offsets"),
				Report: func(f journal.Finding) {
					if err := show(f); showing == nil {
						showing = err
					}
				},
			})
			if live := (*service.LiveError)(nil); errors.As(err, &live) {
				return fmt.Errorf("%w; verify reads a directory at rest: stop the recorder, or verify a backup of it (`kvjournal backup`)", live)
			}
			if err = errors.Join(err, showing); err != nil {
				return err
			}
			if output == "json" {
				err = emit(v, out.line)
			} else {
				verifiedTable(out, &v, time.Since(begun))
			}
			if err == nil && !v.Sound {
				err = errDamaged
			}
			return err
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&scratch, "scratch", "", "new `directory` for the index that is compared with (default: under $TMPDIR)")
	cmd.Flags().BoolVar(&noCompare, "no-compare", false, "do not compute the index anew; its files are still read")
	return cmd
}

// findingTable shows findings to a person.
func findingTable(out printer) func(journal.Finding) error {
	return func(f journal.Finding) error {
		where := f.File
		switch {
		case f.Last > f.Offset:
			where += fmt.Sprintf(" offsets %d to %d", f.Offset, f.Last)
		case f.Offset > 0:
			where += fmt.Sprintf(" offset %d", f.Offset)
		}
		if f.Key != "" {
			where += " row " + shorten(f.Key, 40)
		}
		text := fmt.Sprintf("%s: %s: %s", f.Severity, where, harmless(f.What))
		for i, line := range append(paragraph(text, tableWidth), paragraph("next: "+f.Next, tableWidth-2)...) {
			if i > 0 {
				out.WriteString("  ")
			}
			out.WriteString(line)
			out.WriteByte('\n')
		}
		return nil
	}
}

func verifiedTable(out printer, v *service.Verified, took time.Duration) {
	w := []int{9}
	verdict := "sound"
	if !v.Sound {
		verdict = fmt.Sprintf("DAMAGED: %s findings", number(uint64(v.Damaged)))
	}
	if v.Notes > 0 {
		verdict += fmt.Sprintf(", %d notes", v.Notes)
	}
	j, x := &v.Journal, &v.Index
	out.row(w, "verdict", verdict)
	out.row(w, "journal", fmt.Sprintf("%s records in %s blocks, offsets %d to %d; %d files, %s", number(j.Records), number(j.Blocks), j.First, j.Last, j.Files, bytesOf(uint64(j.Bytes))))
	compared := "not compared"
	if x.Compared {
		compared = number(x.Rows) + " rows, each compared with the journal"
	}
	out.row(w, "index", fmt.Sprintf("%s, up to offset %d; %d files, %s", compared, x.Applied, x.Files, bytesOf(uint64(x.Bytes))))
	rate := float64(j.Bytes+x.Bytes) / max(took.Seconds(), 1e-3)
	out.row(w, "took", fmt.Sprintf("%s, %s/s", took.Round(time.Millisecond), bytesOf(uint64(rate))))
}
