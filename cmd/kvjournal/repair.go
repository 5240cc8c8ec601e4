package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query/service"
)

func newRepair() *cobra.Command {
	var dir, to, output string
	var ignoreGate bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Save all that can be read of a damaged directory into a new one",
		Long: `Reads the files of a damaged directory one by one, also where the database does not open any more, and writes all that can be
read into the new directory --to, with an index computed anew. The damaged directory is not changed; keep it until the new one
is verified.

Each record keeps its offset. Where records are lost, the new journal says so: a mark of every source, which gaps lists as
"damaged" with the missing offsets. Nothing that lies before it is confirmed behind it, until events or a reading of the
master confirm it anew.

An interrupted repair leaves nothing under the name of --to. With --output json one line tells what was kept and lost:
{"records","first_offset","last_offset","lost_records","lost_offsets","holes","sources","unreadable","restored"}.`,
		Example: `  kvjournal repair --dir /var/lib/kvjournal --to /var/lib/kvjournal.repaired
  kvjournal verify --dir /var/lib/kvjournal.repaired`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkOutput(output); err != nil {
				return err
			}
			if to == "" {
				return usageError(errors.New("give --to, a new directory"))
			}
			r, err := service.Repair(cmd.Context(), dir, to, service.RepairOptions{
				Options:    service.Options{Log: warnings(), Progress: progressOn(os.Stderr, "computing the index")},
				IgnoreGate: ignoreGate, Salvaging: progressOn(os.Stderr, "reading, bytes"),
			})
			if live := (*service.LiveError)(nil); errors.As(err, &live) {
				return fmt.Errorf("%w; repair reads a directory at rest: stop the recorder first", live)
			}
			if err != nil {
				return err
			}
			out := newPrinter(cmd.OutOrStdout())
			defer func() { err = errors.Join(err, out.Flush()) }()
			if output == "json" {
				return emit(r, out.line)
			}
			repairedTable(out, to, &r)
			return nil
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&to, "to", "", "the new `directory`")
	cmd.Flags().BoolVar(&ignoreGate, "ignore-gate", false, "the gate file is damaged: take the directory for one of this program's format")
	return cmd
}

// shownRanges is how many ranges of lost offsets are shown to a person.
const shownRanges = 10

func repairedTable(out printer, to string, r *journal.Repaired) {
	w := []int{9}
	out.row(w, "kept", fmt.Sprintf("%s records of %d sources, offsets %d to %d", number(r.Records), r.Sources, r.First, r.Last))
	if r.Horizon > 0 {
		out.row(w, "horizon", fmt.Sprintf("offset %d, with all %s rows of its baseline", r.Horizon, number(r.BaselineRows)))
	}
	if r.BaselineLost {
		out.row(w, "damaged", "the baseline of what was pruned: what came before the horizon is lost, but for what is there of it still")
	}
	lost := "nothing"
	if r.Lost > 0 {
		lost = fmt.Sprintf("%s records", number(r.Lost))
	}
	out.row(w, "lost", lost)
	for i, one := range r.Ranges {
		if i == shownRanges {
			out.row(w, "", fmt.Sprintf("… and %d more runs", r.Holes-i))
			break
		}
		out.row(w, "", fmt.Sprintf("offsets %d to %d", one[0], one[1]))
	}
	for _, f := range r.Unreadable {
		out.row(w, "damaged", f)
	}
	for _, s := range r.Restored {
		out.row(w, "made up", fmt.Sprintf("name or standing of source %q, from its records", s))
	}
	out.row(w, "next", "kvjournal verify --dir "+to)
}
