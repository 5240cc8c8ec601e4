package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

func newReconcile() *cobra.Command {
	var dir, output, source, snapshot string
	var audit, dryRun bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare with the master now, and resolve what is in doubt",
		Long: `Has the running recorder read its master now: the listing of its keys, and the media of the objects
in doubt. What agrees is confirmed, what does not is corrected; both are written down, so that a
rebuild gives the same answers with the master gone. The master shows the tenant "default" only:
the doubts of other tenants stay, unless a snapshot file covers them.

A recorder does this by itself after every loss, at its start, and as a periodic audit. While one of
these is under way, this one waits for it, 2 minutes at most, and as long for one that holds: a
reading that a loss or a restart overtakes is made again. Then it says what was in the way.`,
		Example: `  kvjournal reconcile --dir /var/lib/kvjournal
  kvjournal reconcile --dir /var/lib/kvjournal --dry-run
  kvjournal reconcile --dir /var/lib/kvjournal --audit`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			values := url.Values{"source": {source}}
			for name, set := range map[string]bool{"audit": audit, "dry_run": dryRun} {
				if set {
					values.Set(name, "true")
				}
			}
			if snapshot != "" {
				path, err := filepath.Abs(snapshot)
				if err != nil {
					return err
				}
				values.Set("snapshot", path)
			}
			return runReconcile(cmd, dir, output, values)
		},
	}
	dirFlag(cmd, &dir)
	outputFlag(cmd, &output)
	cmd.Flags().StringVar(&source, "source", "", "source (default: the one that has a master)")
	cmd.Flags().BoolVar(&audit, "audit", false, "ask for the media of all objects, not only of those in doubt")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing; show what would be written")
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "read this file instead of the master's listing, any tenant; see\nindex/reconcile/doc.go for its lines")
	return cmd
}

func runReconcile(cmd *cobra.Command, dir, output string, values url.Values) error {
	t, err := openTarget(cmd.Context(), dir)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.live == nil {
		return errors.New("no recorder runs on this directory, and only a recorder can tell what is announced meanwhile: start `kvjournal record --master …` first")
	}
	show, done := readingOn(os.Stderr)
	end, err := t.live.Reconcile(cmd.Context(), values, func(l *httpapi.ReconcileLine) error {
		if l.Begun != 0 {
			done()
			fmt.Fprintf(cmd.ErrOrStderr(), "the reading has begun at offset %d: take the snapshot now, its first line being {\"snapshot\":1,\"begun\":%d}\n", l.Begun, l.Begun)
		}
		if l.Progress != nil {
			show(l.Progress)
		}
		return nil
	})
	done()
	if err != nil {
		return err
	}
	out := newPrinter(cmd.OutOrStdout())
	if output == "json" {
		if err := emit(end, out.line); err != nil {
			return err
		}
		return out.Flush()
	}
	reconcileTable(out, end)
	return out.Flush()
}

// reconcileTable shows a person what a reading came to.
func reconcileTable(out printer, l *httpapi.ReconcileLine) {
	r := l.Report
	w := []int{16}
	verb := "written"
	if r.DryRun {
		verb = "found; nothing was written"
	}
	out.row(w, "read", fmt.Sprintf("%s, from offset %d through %d, in %d ms (the master took %d ms)", r.From, r.Begun, r.Through, r.TookMs, r.MasterMs))
	for _, s := range r.Scopes {
		out.row(w, "covered", fmt.Sprintf("backend %s, tenant %s", printable(s.Backend), printable(s.Tenant)))
	}
	out.row(w, "objects", fmt.Sprintf("%s listed, %s asked for, %s agreed", number(uint64(r.Listed)), number(uint64(r.Asked)), number(uint64(r.Agreed))))
	out.row(w, "corrections", fmt.Sprintf("%s %s", number(uint64(r.Corrections)), verb))
	if r.Exceptions > 0 {
		out.row(w, "left in doubt", fmt.Sprintf("%s: the master's word on them is not clear, or cannot be asked for", number(uint64(r.Exceptions))))
	}
	if r.Contradictions > 0 {
		out.row(w, "CONTRADICTIONS", fmt.Sprintf("%s: this master changes objects without an event; presence is not confirmed any more", number(uint64(r.Contradictions))))
	}
	for _, c := range l.Corrections {
		text := "nothing is said of it"
		switch c.State {
		case query.Present:
			text = "present on " + c.Medium
		case query.Absent:
			text = "absent from " + c.Medium
		}
		out.row(w, "", fmt.Sprintf("%s: %s", shorten(printable(c.Key), 50), text))
	}
}
