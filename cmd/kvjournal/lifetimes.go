package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

func newLifetimes() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "lifetimes",
		Short: "How long objects stay on each medium, how that ends, and after how long they are stored again",
		Long: `How long objects stay on each medium: from the "stored" that made them present to what ended that.

  copy left  removed while another medium still held the object, as memory evicts what is on disk
  removed    removed, and no other medium held it
  upsert     replaced: its "removed" is directly followed by a "stored" of the same object
  cleared    the whole tenant was cleared

A lifetime counts if it ended between --from and --to. "open" had not ended by then.

Times are those of sending, in ms; what waits in the publisher's queue gets older there. A lifetime began with the first
"stored" that was heard, so what was there before the recorder may be older than it seems.

"doubtful" lifetimes have a loss between begin and end, so that an end and a new begin may have been missed; or a clear
ended them, which an object may survive. Percentiles and plots are without them; --doubtful lets them in. Percentiles
are up to 1/16 too large, never too small.

"stored again" says how long after an end (upserts left out) the object was on the medium again: if that is soon and
often, the medium is too small.

` + whenHelp,
		Example: `  kvjournal lifetimes --dir /var/lib/kvjournal --from -1h
  kvjournal lifetimes --dir /var/lib/kvjournal --medium cpu --by group --top 5
  kvjournal lifetimes --dir /var/lib/kvjournal --by none --output json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask("lifetimes", "reading lifetimes", lifetimeTable(cmp.Or(cmd.Flag("by").Value.String(), "tenant")))
		},
	}
	a = newAsking(cmd)
	a.where()
	a.bytes("prefix", "prefix", "only objects whose key begins with this")
	a.text("medium", "medium", "medium (default: all)")
	a.bytes("group", "group_id", "only lifetimes that began with this group_id")
	a.span()
	a.text("by", "by", "what is told apart on each medium: tenant, group or none (default: tenant)")
	a.number("top", "top", 0, "how many tenants or groups of a medium are told apart, the largest first; the rest shares a line (0: 20 groups, all tenants)")
	a.yes("doubtful", "doubtful", "let the durations of doubtful lifetimes count")
	return cmd
}

const (
	// lifetimeBlocks is how many lines a person is shown with all there is of them; more make a table.
	lifetimeBlocks = 4
	// lifetimeRows is how many lines of a medium such a table has.
	lifetimeRows = 20
)

// lifetimeTable shows lifetimes to a person: a few with plots, or many as a table. by is what is told apart.
func lifetimeTable(by string) func(printer) (func([]byte) error, func()) {
	return func(out printer) (show func([]byte) error, end func()) {
		var lines []query.LifetimesOut
		show = func(line []byte) error {
			var l query.LifetimesOut
			err := json.Unmarshal(line, &l)
			lines = append(lines, l) // the question bounds their number
			return err
		}
		end = func() {
			switch {
			case len(lines) == 0:
				out.row(nil, "No lifetime ended there, and none is open.")
			case len(lines) > lifetimeBlocks:
				lifetimeRowsOf(out, by, lines)
			default:
				for i := range lines {
					if i > 0 {
						out.row(nil)
					}
					lifetimeBlock(out, by, &lines[i])
				}
			}
		}
		return show, end
	}
}

// lifetimeRowsOf shows many lines as a table.
func lifetimeRowsOf(out printer, by string, lines []query.LifetimesOut) {
	widths := []int{31, 7, 7, 8, 8, 8, 8}
	out.row(widths, "MEDIUM, "+strings.ToUpper(by), "ENDED", "OPEN", "P50", "P90", "P99", "STORED AGAIN")
	medium, of, left := "", 0, 0
	more := func() {
		if left > 0 {
			out.row(nil, fmt.Sprintf("%s more on %s", number(uint64(left)), medium))
		}
		left = 0
	}
	for i := range lines {
		l := &lines[i]
		if m := mediumOf(l); m != medium {
			more()
			medium, of = m, 0
		}
		if of++; of > lifetimeRows {
			left++
			continue
		}
		p50, p90, p99, again := "-", "-", "-", "-"
		if l.Measured > 0 {
			p50, p90, p99 = span(*l.P50), span(*l.P90), span(*l.P99)
		}
		if n := l.StoredAgain.Count + l.StoredAgain.Never; n > 0 {
			again = fmt.Sprintf("%.3g %%", 100*float64(l.StoredAgain.Count)/float64(n))
			if l.StoredAgain.Measured > 0 {
				again += " (p50 " + span(*l.StoredAgain.P50) + ")"
			}
		}
		out.row(widths, shorten(lifetimeTitle(by, l), widths[0]), roughly(l.Count), roughly(l.Open), p50, p90, p99, again)
	}
	more()
	out.row(nil)
	out.row(nil, "How they ended, and plots: with --by none, or fewer lines (--medium, --tenant, --group, --top).")
}

func mediumOf(l *query.LifetimesOut) string {
	if l.Medium == nil {
		return "all other media"
	}
	return shorten(printable(query.Bytes(*l.Medium)), 20)
}

// lifetimeTitle names a line.
func lifetimeTitle(by string, l *query.LifetimesOut) string {
	medium := mediumOf(l)
	name := func(text *string, base64 *string) string {
		if text != nil {
			return shorten(printable(query.Bytes(*text)), 50)
		}
		return "base64 " + shorten(*base64, 40)
	}
	switch {
	case l.Others > 0:
		return fmt.Sprintf("%s, %s others", medium, number(l.Others))
	case l.TenantBase64 != nil:
		return medium + ", " + name(l.Tenant, l.TenantBase64)
	case l.GroupBase64 != nil:
		return medium + ", " + name(l.Group, l.GroupBase64)
	case by == "group":
		return medium + ", no group"
	}
	return medium
}

func lifetimeBlock(out printer, by string, l *query.LifetimesOut) {
	out.row(nil, lifetimeTitle(by, l))
	ended := fmt.Sprintf("  %s ended", roughly(l.Count))
	if l.Count > 0 {
		b := &l.EndedBy
		ended += fmt.Sprintf(": copy left %s, removed %s, upsert %s, cleared %s", roughly(b.EvictedCopyLeft), roughly(b.Removed), roughly(b.Upsert), roughly(b.Cleared))
		ended += fmt.Sprintf("; doubtful %s", share(l.Doubtful, l.Count))
	}
	out.row(nil, ended)
	open := fmt.Sprintf("  %s open", roughly(l.Open))
	if l.OpenDoubtful > 0 {
		open += fmt.Sprintf(", doubtful %s", share(l.OpenDoubtful, l.Open))
	}
	out.row(nil, open)
	a := &l.StoredAgain
	if l.Measured > 0 {
		out.row(nil, "  stayed        "+percentiles(&l.DurationOut, l.Measured))
	}
	if n := a.Count + a.Never; n > 0 {
		again := fmt.Sprintf("  stored again  %s, never %s", share(a.Count, n), share(a.Never, n))
		out.row(nil, again)
		if a.Measured > 0 {
			out.row(nil, "    after       "+percentiles(&a.DurationOut, a.Measured))
		}
	}
	if l.Measured > 0 {
		bars(out, l.Histogram)
	}
}

func percentiles(d *query.DurationOut, measured uint64) string {
	return fmt.Sprintf("p50 %s  p90 %s  p99 %s  max %s  (%s measured)", span(*d.P50), span(*d.P90), span(*d.P99), span(*d.Max), roughly(measured))
}

// share shows a part of a whole.
func share(n, of uint64) string {
	if n == 0 || n == of {
		return roughly(n)
	}
	return fmt.Sprintf("%s (%.3g %%)", roughly(n), 100*float64(n)/float64(of))
}

// span shows ms in the unit that fits.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case ms < 2*3600_000:
		return fmt.Sprintf("%.3g min", float64(ms)/60_000)
	case ms < 48*3600_000:
		return fmt.Sprintf("%.3g h", float64(ms)/3600_000)
	}
	return fmt.Sprintf("%.4g d", float64(ms)/86_400_000)
}

// barWidth is the length of the longest bar of a plot.
const barWidth = 56

// bars draws a histogram with bars. Its buckets, of a sixteenth of their size each, are put together by powers of two, or of four where
// that makes many lines: those are bounds of buckets too.
func bars(out printer, buckets []query.BucketOut) {
	power := func(le int64) int { return bits.Len64(uint64(le)) } // le lies in [2^(power-1), 2^power)
	first, last := power(buckets[0].LeMs), power(buckets[len(buckets)-1].LeMs)
	step := 1
	if last-first >= 12 {
		step = 2
	}
	base := first / step
	counts := make([]uint64, last/step-base+1)
	most := uint64(0)
	for _, b := range buckets {
		i := power(b.LeMs)/step - base
		counts[i] += b.Count
		most = max(most, counts[i])
	}
	for i, n := range counts {
		bound := int64(1) << min(62, (base+i+1)*step-1)
		bar := strings.Repeat("█", int((n*2*barWidth+most-1)/most)/2)
		if n > 0 && bar == "" {
			bar = "▏"
		}
		out.row(nil, strings.TrimRight(fmt.Sprintf("  %10s  %7s  %s", "< "+span(bound), roughly(n), bar), " "))
	}
}
