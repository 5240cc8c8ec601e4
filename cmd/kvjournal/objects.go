package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
)

// objectsShown is how many objects a table has where no other number is asked for.
const objectsShown = 100

func newObjects() *cobra.Command {
	var a *asking
	cmd := &cobra.Command{
		Use:   "objects",
		Short: "The objects of a tenant, or of all, at any moment",
		Long: `The objects that were there at a moment, in the order of source, backend, tenant and key: what lookup would answer for
each of them then. Only objects are listed that the publisher had announced something about by that moment.

The answer speaks of the stream: what the publisher had announced by the moment; a change still in its queue comes
later. "confirmed" is never wrong about that. An "uncertain" object is listed with its last known state: it may be gone.

Without --medium, an object is present if it is on any medium. With it, --state and --certainty are about that medium.

--count prints numbers only, and is fast: it reads on all processors.

A table shows the first 100 objects, and how to go on. JSON has all of them, each like a lookup's answer and with its
group_id; memory stays small however many there are. --after goes on behind an object: give its key, or, where several
tenants are listed, its line of JSON.

` + whenHelp,
		Example: `  kvjournal objects --dir /var/lib/kvjournal --tenant tenant-1 --at 2026-11-29T12:03:00Z
  kvjournal objects --dir DIR --at -5m --count
  kvjournal objects --dir DIR --medium cpu --certainty uncertain --output json
  kvjournal objects --dir DIR --tenant default --prefix 7b3e --after 7b3e52f4…_0_k`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			limit, _ := cmd.Flags().GetUint64("limit")
			if counts, _ := cmd.Flags().GetBool("count"); counts {
				if limit > 0 {
					return usageError(errors.New("--count counts all objects: leave out --limit"))
				}
				return a.ask("objects", "counting objects", countTable)
			}
			if a.output == "table" && !cmd.Flags().Changed("limit") {
				limit = objectsShown
			}
			if limit > 0 {
				ask := limit
				if a.output == "table" {
					ask++ // it tells that there are more
				}
				a.fixed.Set("limit", strconv.FormatUint(ask, 10))
			}
			return a.ask("objects", "looking at objects", objectTable(limit))
		},
	}
	a = newAsking(cmd)
	a.where()
	a.text("at", "at", "the moment (default: as of the newest indexed batch)")
	a.text("medium", "medium", "medium that --state and --certainty are about (default: the object as a whole)")
	a.bytes("group", "group_id", "only objects of this group_id")
	a.bytes("prefix", "prefix", "only keys that begin with this")
	a.text("state", "state", `present, absent or any (default "present")`)
	a.text("certainty", "certainty", "confirmed or uncertain (default: both)")
	a.yes("count", "count", "print how many there are, by medium and tenant")
	cmd.Flags().Uint64("limit", 0, "at most this many objects; 0: all (default: 100 in a table, else all)")
	a.bytes("after", "after", "go on behind this object: a key, or a line of JSON")
	return cmd
}

// objectTable shows objects to a person: a line for each, under a heading for each scope.
func objectTable(limit uint64) func(out printer) (show func([]byte) error, end func()) {
	return func(out printer) (show func([]byte) error, end func()) {
		t := &objectsShow{out: out, limit: limit}
		return t.show, t.end
	}
}

type objectsShow struct {
	out   printer
	limit uint64
	n     uint64
	more  bool
	last  query.ObjectOut
}

// objectWidths leave room for the longest cause of a doubt.
var objectWidths = []int{26, 26, 26, 16}

func (t *objectsShow) show(line []byte) error {
	var o query.ObjectOut
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	if t.limit > 0 && t.n == t.limit {
		t.more = true
		return nil
	}
	if t.n == 0 || o.Source != t.last.Source || string(o.Backend) != string(t.last.Backend) || string(o.Tenant) != string(t.last.Tenant) {
		if t.n > 0 {
			t.out.row(nil)
		}
		where, when := asOf(&o.Answer)
		t.out.row(nil, where)
		t.out.row(nil, "  "+when)
		t.out.row(objectWidths, "OBJECT", "CPU", "DISK", "GROUP")
	}
	t.n++
	t.last = o
	group := "-"
	if o.Group != nil {
		group = shorten(printable(o.Group), objectWidths[3])
	}
	t.out.row(objectWidths, shorten(printable(o.Key), objectWidths[0]), mediumWords(o.Media["cpu"]), mediumWords(o.Media["disk"]), group)
	var others []string
	for name := range o.Media {
		if name != "cpu" && name != "disk" {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		t.out.row(nil, "  on "+shorten(printable(query.Bytes(name)), 60)+": "+mediumWords(o.Media[name]))
	}
	return nil
}

// mediumWords tells state and certainty; uncertain ones are told by a question mark and why.
func mediumWords(m query.MediumOut) string {
	if m.Certainty == query.Confirmed {
		return m.State
	}
	s := m.State + "?"
	if d := m.Doubt; d != nil && d.Cause != query.DoubtNoEvidence {
		s += " " + d.Cause
	}
	if m.Evidence == nil && m.Doubt != nil && m.Doubt.Cause == query.DoubtNoEvidence {
		return "-" // nothing was ever said about it
	}
	return shorten(s, objectWidths[1])
}

func (t *objectsShow) end() {
	switch {
	case t.n == 0:
		t.out.say("No object matches. Absent ones are shown with --state any; see `kvjournal stats` for what is recorded.")
		return
	case t.more:
		t.out.row(nil)
		t.out.say(fmt.Sprintf("There are more than these %s objects. --limit 0 shows all, --count counts them; to go on:", number(t.n)))
		if after := shellQuote(afterName(&t.last.Name)); len(after) <= commandWidth {
			t.out.row(nil, "  --after "+after)
		} else {
			t.out.row(nil, "  --after and the last line of --output json: the key is long")
		}
	default:
		t.out.row(nil, "\n"+number(t.n)+" "+query.Plural(t.n, "object", "objects")+".")
	}
	t.out.row(nil, "?: uncertain; the last known state, and what casts doubt on it. -: never heard of there.")
}

// afterName is what --after takes to go on behind an object: JSON, readable where the name is.
func afterName(n *query.Name) string {
	fields := []any{"source", n.Source}
	for _, f := range []struct {
		name string
		b    query.Bytes
	}{{"backend_id", n.Backend}, {"tenant_id", n.Tenant}, {"object_key", n.Key}} {
		if utf8.Valid(f.b) {
			fields = append(fields, f.name, string(f.b))
		} else {
			fields = append(fields, f.name+"_base64", []byte(f.b))
		}
	}
	out := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			out = append(out, ",:"[i%2])
		}
		var err error
		if out, err = query.AppendJSON(out, f); err != nil {
			return string(n.Key)
		}
	}
	return string(append(out, '}'))
}

// countTable shows counts to a person.
func countTable(out printer) (show func([]byte) error, end func()) {
	show = func(line []byte) error {
		var c query.ObjectCounts
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		for _, s := range c.AsOf {
			out.row(nil, sourceAsOf(&s))
		}
		out.row(nil, fmt.Sprintf("%s %s: %s confirmed, %s uncertain", number(c.Objects), query.Plural(c.Objects, "object", "objects"), number(c.Confirmed), number(c.Uncertain)))
		out.row(nil)
		widths := []int{44, 12, 12, 12, 12}
		out.row(widths, "PRESENT ON", "OBJECTS", "CONFIRMED", "UNCERTAIN")
		for _, m := range c.Media {
			name := printable(query.Bytes(m.Medium))
			if m.Medium == "" {
				name = "(other media)"
			}
			out.row(widths, shorten(name, widths[0]), number(m.Objects), number(m.Confirmed), number(m.Uncertain))
		}
		if len(c.Tenants) == 0 {
			return nil
		}
		out.row(nil)
		out.row(widths, "TENANT (SOURCE, BACKEND)", "OBJECTS", "UNCERTAIN", "ON CPU", "ON DISK")
		row := func(name string, t *query.Tally) {
			out.row(widths, shorten(name, widths[0]), number(t.Objects), number(t.Uncertain), number(t.Media[0].Objects), number(t.Media[1].Objects))
		}
		shown := min(len(c.Tenants), tenantsShown)
		for i := range c.Tenants[:shown] {
			t := &c.Tenants[i]
			if len(t.Media) < 2 {
				return errors.New("the recorder counts no media; is it of another version?")
			}
			row(scopeWords(&t.Name), &t.Tally)
		}
		rest, n := uint64(0), uint64(len(c.Tenants)-shown)
		for i := range c.Tenants[shown:] {
			rest += c.Tenants[shown+i].Objects
		}
		if o := c.OtherTenants; o != nil {
			rest, n = rest+o.Objects, n+o.Tenants
		}
		if n > 0 {
			out.row(nil, fmt.Sprintf("%s more %s with %s %s", number(n), query.Plural(n, "tenant", "tenants"), number(rest), query.Plural(rest, "object", "objects")))
		}
		return nil
	}
	return show, func() {}
}

// tenantsShown is how many tenants a table lists.
const tenantsShown = 20

// scopeWords names a tenant, its source and its backend.
func scopeWords(n *query.Name) string {
	return fmt.Sprintf("%s (%s, %s)", shorten(printable(n.Tenant), 24), shorten(n.Source, 24), shorten(printable(n.Backend), 24))
}

// sourceAsOf tells the moment an answer speaks of in one source.
func sourceAsOf(s *query.SourceAsOf) string {
	source := "source " + shorten(printable(query.Bytes(s.Source)), 30)
	if s.Offset == 0 {
		return source + ": nothing recorded by then"
	}
	out := fmt.Sprintf("%s: as of offset %d", source, s.Offset)
	if s.Time != nil {
		out += ", " + clock(s.Time)
	}
	if s.Live {
		out += ", live"
	}
	return strings.TrimSpace(out)
}
