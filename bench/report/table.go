package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Base is the contender that the others are compared with.
const Base = "kvjournal"

// Table writes what each contender promises, then the results: a table a shape of messages, a line a metric, a column a contender. A
// cell is the median, half the way from the least to the most as a share of it, and how many times better kvjournal is: below 1 it loses.
func Table(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	told := map[string]bool{}
	for _, r := range results {
		if !told[r.Contender] {
			told[r.Contender] = true
			fmt.Fprintf(t, "%s\t%s\n", r.Contender, r.Durability)
		}
	}
	for _, g := range groups(results) {
		fmt.Fprintf(t, "\n%s\t%s\n", g.title, strings.Join(g.columns, "\t"))
		if len(g.durability) > 0 {
			fmt.Fprintf(t, "\t%s\n", strings.Join(g.durability, "\t"))
		}
		for _, row := range g.rows {
			fmt.Fprintf(t, "%s, %s\t%s\n", row.name, row.unit, strings.Join(row.cells, "\t"))
		}
	}
	return t.Flush()
}

// short says in a word what survives: "synced" or "not synced".
func short(durability string) string {
	if strings.HasPrefix(durability, "not synced") {
		return "not synced"
	}
	word, _, _ := strings.Cut(durability, ":")
	return word
}

// cell is a median, its spread, and how it compares.
func cell(r Result, base Result, compared bool) string {
	s := Brief(r.Value)
	if r.Rounds > 1 && r.Value != 0 {
		s += fmt.Sprintf(" ±%.0f%%", (r.Max-r.Min)/2/r.Value*100)
	}
	if compared && r.Contender != Base && r.Unit != "s" { // settling is no contest
		s += " " + Number(Better(base, r)) + "x"
	}
	return s
}

// Better is how many times better a is than b: faster, smaller or sooner.
func Better(a, b Result) float64 {
	if HigherIsBetter(a.Unit) {
		return a.Value / b.Value
	}
	return b.Value / a.Value
}

// HigherIsBetter tells rates from sizes and times.
func HigherIsBetter(unit string) bool { return strings.HasSuffix(unit, "/s") }

// Number writes a value with three significant digits, and thousands apart.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case a >= 1000:
		return thousands(int64(math.Round(v)))
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
