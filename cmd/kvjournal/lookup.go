package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// lookupChunk is how many questions are asked at once.
const lookupChunk = 4096

type lookupFlags struct {
	dir, output, at         string
	source, backend, tenant string
	keyBase64               bool
	stdin                   bool
}

func newLookup() *cobra.Command {
	var f lookupFlags
	cmd := &cobra.Command{
		Use:   "lookup [KEY…]",
		Short: "Where an object is, or was at a past moment, and how sure that is",
		Long: `Where objects are, or were at a past moment.

The answer speaks of the stream: what the publisher had announced by the moment; a change still in its queue comes later.
"confirmed" is never wrong about that. "uncertain" gives the last known state, and what casts doubt on it.

Without --at: as of the newest indexed batch or mark. --at takes Unix milliseconds, RFC 3339, a time ago (-5m),
offset:N, seq:EPOCH/N, or now (strict: confirmed only if the master's counters prove it).

--stdin reads one JSON object a line: object_key, and optionally tenant_id (default "default"), backend_id, source; each
of the first three also as …_base64. There is one answer a line, in the same order.`,
		Example: `  kvjournal lookup --dir /var/lib/kvjournal 7b3e52f4…_0_k
  kvjournal lookup --dir /var/lib/kvjournal --tenant tenant-1 --at 2026-11-29T12:03:00Z KEY
  printf '{"object_key":"k1"}\n{"object_key":"k2"}\n' |
      kvjournal lookup --dir DIR --stdin --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(f.output); err != nil {
				return err
			}
			if f.stdin == (len(args) > 0) {
				return usageError(fmt.Errorf("give one or more keys, or --stdin"))
			}
			return runLookup(cmd, args, &f)
		},
	}
	dirFlag(cmd, &f.dir)
	outputFlag(cmd, &f.output)
	cmd.Flags().StringVar(&f.at, "at", "", "the moment (default: as of the newest indexed batch)")
	cmd.Flags().StringVar(&f.source, "source", "", "source (default: whichever fits)")
	cmd.Flags().StringVar(&f.backend, "backend", "", "backend_id (default: whichever fits)")
	cmd.Flags().StringVar(&f.tenant, "tenant", "default", "tenant_id")
	cmd.Flags().BoolVar(&f.keyBase64, "base64", false, "KEY is in base64")
	cmd.Flags().BoolVar(&f.stdin, "stdin", false, "read questions from stdin, one JSON object a line")
	return cmd
}

func runLookup(cmd *cobra.Command, args []string, f *lookupFlags) error {
	ctx := cmd.Context()
	t, err := openTarget(ctx, f.dir)
	if err != nil {
		return err
	}
	defer t.Close()
	out := newPrinter(cmd.OutOrStdout())
	defer out.Flush()
	adviseOnMoments(cmd)
	show := out.line
	if f.output == "table" {
		show = answerTable(out)
	}
	unknown := false // no event ever named the last object
	if table := show; f.output == "table" && len(args) == 1 {
		show = func(line []byte) error {
			var a query.Answer
			if err := json.Unmarshal(line, &a); err != nil {
				return err
			}
			unknown = unheard(&a)
			return table(line)
		}
	}
	ask := func(questions []query.Question) error {
		for i := range questions {
			if questions[i].Source == "" {
				questions[i].Source = f.source
			}
			if questions[i].Backend == nil && cmd.Flags().Changed("backend") {
				questions[i].Backend = query.Bytes(f.backend)
			}
			if questions[i].Tenant == nil {
				questions[i].Tenant = query.Bytes(f.tenant)
			}
		}
		if err := t.lookup(ctx, questions, f.at, show); err != nil {
			return err
		}
		return out.Flush()
	}
	if f.stdin {
		return eachQuestion(ctx, cmd.InOrStdin(), ask)
	}
	questions := make([]query.Question, len(args))
	for i, a := range args {
		questions[i].Key = query.Bytes(a)
		if f.keyBase64 {
			if err := json.Unmarshal(fmt.Appendf(nil, "{%q:%q}", "object_key_base64", a), &questions[i]); err != nil {
				return usageError(fmt.Errorf("key %q: %w", a, err))
			}
		}
	}
	if err := ask(questions); err != nil || !unknown {
		return err
	}
	return t.elsewhere(cmd, out, &questions[0])
}

func eachQuestion(ctx context.Context, in io.Reader, ask func([]query.Question) error) error {
	return httpapi.EachChunk(in, lookupChunk, func(q []query.Question) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return ask(q)
	})
}

// answerTable shows answers to a person: a line per medium.
func answerTable(out printer) func([]byte) error {
	widths := []int{30, 6, 8, 10}
	first := true
	return func(line []byte) error {
		var a query.Answer
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		if first {
			out.row(widths, "OBJECT", "MEDIUM", "STATE", "CERTAINTY", "WHY")
			first = false
		}
		names := make([]string, 0, len(a.Media))
		for name := range a.Media {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			m := a.Media[name]
			object := ""
			if i == 0 {
				object = shorten(printable(a.Key), widths[0])
			}
			medium := printable(query.Bytes(name))
			if columns(medium) > widths[1] {
				out.row(widths, object, shorten(medium, tableWidth-widths[0]-2))
				object, medium = "", ""
			}
			for i, why := range reason(&m) {
				cells := []string{object, medium, m.State, m.Certainty}
				if i > 0 {
					cells = []string{"", "", "", ""}
				}
				out.row(widths, append(cells, shorten(why, tableWidth-62))...)
			}
		}
		if hint := cutKeyHint(a.Key); hint != "" && unheard(&a) {
			item(out, "", hint)
		}
		where, when := asOf(&a)
		if columns(where)+columns(when)+4 <= tableWidth {
			out.row(nil, "  "+where+"; "+when)
			return nil
		}
		out.row(nil, "  "+where+";")
		out.row(nil, "  "+when)
		return nil
	}
}

// reason tells in a few words what an answer rests on, and on another line what casts doubt on it.
func reason(m *query.MediumOut) (lines []string) {
	if e := m.Evidence; e != nil {
		s := fmt.Sprintf("%s seq %d/%d", e.Cause, e.Epoch, e.Seq)
		if e.Time != nil {
			s += " at " + e.Time.UTC().Format("15:04:05.000")
		}
		lines = append(lines, s)
	}
	if d := m.Doubt; d != nil {
		s := "doubt: " + d.Cause
		if d.Offset != 0 {
			s += fmt.Sprintf(" at offset %d", d.Offset)
		}
		lines = append(lines, s)
	}
	if len(lines) == 0 {
		lines = []string{""}
	}
	return lines
}

// asOf tells which scope and which moment an answer is about.
func asOf(a *query.Answer) (where, when string) {
	if a.Source != "" {
		where = "source " + shorten(printable(query.Bytes(a.Source)), 24) + ", "
	}
	if a.Backend != nil {
		where += "backend " + shorten(printable(a.Backend), 24) + ", "
	}
	where += "tenant " + shorten(printable(a.Tenant), 24)
	if a.AsOf.Offset == 0 {
		return where, "nothing recorded by then"
	}
	when = fmt.Sprintf("as of offset %d", a.AsOf.Offset)
	if a.AsOf.Time != nil {
		when += ", " + clock(a.AsOf.Time)
	}
	if a.AsOf.Live {
		when += ", live"
	}
	return where, when
}
