package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

func newPrune() *cobra.Command {
	var dir, output, keep, keepBytes, before string
	var forget, dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old records, and keep what answers from then on need",
		Long: `Deletes what was recorded before a moment, the horizon, and gives the space back. From the horizon on every answer stays exactly as
it was: a baseline of what was known there takes the records' place. A question about a moment before it gets an error that names it;
gaps lists all losses still. On a directory that a recorder writes to, the recorder does it and goes on recording and answering
meanwhile. The horizon lies at one of the places that the index keeps every 500,000 events or 10 minutes, so up to that much more stays.
An interrupted prune leaves the old horizon or the new one.

Objects that are gone stay known to be gone, each with a row of its own in the baseline, so that their absence stays confirmed; with
many short-lived objects that can be more than the records kept. --forget-removed leaves them out: their absence is uncertain from then
on ("forgotten"), until a clear or a reading of the master confirms it.`,
		Example: `  kvjournal prune --dir /var/lib/kvjournal --keep 30d
  kvjournal prune --dir /var/lib/kvjournal --keep-bytes 100GB
  kvjournal prune --dir /var/lib/kvjournal --before 2026-11-01T00:00:00Z --dry-run`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			values, err := pruneValues(keep, keepBytes, before)
			if err != nil {
				return usageError(err)
			}
			values.Set("forget_removed", strconv.FormatBool(forget))
			values.Set("dry_run", strconv.FormatBool(dryRun))
			report, err := runPrune(cmd, dir, values)
			if err != nil {
				return err
			}
			out := newPrinter(cmd.OutOrStdout())
			if output == "json" {
				err = emit(report, out.line)
			} else {
				pruneTable(out, report)
			}
			return errors.Join(err, out.Flush())
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&keep, "keep", "", "what was received in this time stays: 30d, 12h")
	cmd.Flags().StringVar(&keepBytes, "keep-bytes", "", "journal and index together may be this large: 100GB, 500MiB")
	cmd.Flags().StringVar(&before, "before", "", "the moment before which all goes")
	cmd.Flags().BoolVar(&forget, "forget-removed", false, "forget objects that are gone, too")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done; change nothing")
	return cmd
}

func pruneValues(keep, keepBytes, before string) (url.Values, error) {
	values := url.Values{}
	if keep != "" {
		d, err := parseKeep(keep)
		if err != nil {
			return nil, fmt.Errorf("--keep %q: %w", keep, err)
		}
		values.Set("keep", d.String())
	}
	if keepBytes != "" {
		n, err := parseSome(keepBytes)
		if err != nil {
			return nil, fmt.Errorf("--keep-bytes %q: %w", keepBytes, err)
		}
		values.Set("keep_bytes", strconv.FormatUint(n, 10))
	}
	if before != "" {
		values.Set("before", before)
	}
	if len(values) != 1 {
		return nil, errors.New("give one of --keep, --keep-bytes and --before")
	}
	return values, nil
}

// parseKeep reads a time like 30d or 12h, above 0.
func parseKeep(s string) (time.Duration, error) {
	bad := errors.New("write a time like 30d, 12h or 90m")
	var d time.Duration
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n > 0 && n < 36500) {
			return 0, bad
		}
		d = time.Duration(n * 24 * float64(time.Hour))
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return 0, bad
		}
	}
	if d < time.Millisecond {
		return 0, bad
	}
	return d, nil
}

// runPrune prunes a directory at rest, or has its recorder do it.
func runPrune(cmd *cobra.Command, dir string, values url.Values) (*query.PruneReport, error) {
	ctx := cmd.Context()
	q, err := httpapi.PruneParams(values, time.Now())
	if err != nil {
		return nil, err
	}
	progress := stepsOn(os.Stderr)
	report, err := service.PruneAtRest(ctx, dir, q, service.Options{Log: warnings(), Progress: progressOn(os.Stderr, "bringing the index up")}, progress)
	var live *service.LiveError
	if !errors.As(err, &live) {
		return report, err
	}
	recorder, err := recorderOf(ctx, dir, live)
	if err != nil {
		return nil, err
	}
	return recorder.Prune(ctx, values, progress)
}

// pruneTable shows a person what a prune came to.
func pruneTable(out printer, r *query.PruneReport) {
	w := []int{16}
	switch {
	case !r.Pruned && r.Horizon == nil:
		out.row(nil, "Nothing to prune: what may go is kept, as was asked.")
		return
	case !r.Pruned:
		out.row(nil, "Nothing to prune: the horizon stays at "+horizonText(r.Horizon)+".")
		return
	case r.DryRun:
		out.row(nil, "Nothing was changed. This would be done:")
	}
	out.row(w, "horizon", horizonText(r.Horizon))
	out.row(w, "pruned", number(r.EventsPruned)+" events")
	about := ""
	if r.DryRun {
		about = "about "
	} else {
		out.row(w, "baseline", number(r.BaselineRows)+" rows stand for them")
	}
	out.row(w, "journal", fmt.Sprintf("%s before, %s%s after", bytesOf(r.JournalBytesBefore), about, bytesOf(r.JournalBytesAfter)))
	out.row(w, "index", fmt.Sprintf("%s before, %s%s after", bytesOf(r.IndexBytesBefore), about, bytesOf(r.IndexBytesAfter)))
	if r.SpaceLater {
		out.row(w, "space", "more comes back later: the recorder's compactions are behind")
	}
	if !r.DryRun {
		out.row(w, "took", (time.Duration(r.TookMs) * time.Millisecond).String())
	}
}

// horizonText names the horizon.
func horizonText(h *query.HorizonOut) string {
	text := fmt.Sprintf("offset %d", h.Offset)
	for _, t := range []*query.Time{h.Time, h.Received} {
		if t != nil {
			return text + ", " + t.UTC().Format("2006-01-02 15:04:05.000")
		}
	}
	return text
}

// fromHorizon are the questions that begin at the horizon where no --from is given.
var fromHorizon = map[string]bool{"activity": true, "export": true, "history": true, "lifetimes": true, "log": true}

// noteHorizon says on stderr that an answer that was to begin with the first record begins at the horizon.
func (a *asking) noteHorizon(t *target, name string) error {
	if f := a.cmd.Flags().Lookup("from"); !fromHorizon[name] || f != nil && f.Changed {
		return nil
	}
	return t.question(a.cmd.Context(), "horizon", url.Values{}, "", func(line []byte) error {
		var h query.HorizonOut
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		fmt.Fprintf(a.cmd.ErrOrStderr(), "What came before %s was pruned; this begins there.\n", horizonText(&h))
		return nil
	})
}
