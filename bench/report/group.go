package report

import (
	"slices"
	"strings"
)

// group is a table: of one shape of messages, and of the metrics that the same contenders have; or of a growth.
type group struct {
	title      string
	columns    []string
	durability []string // of each column, in a word; of a growth none
	rows       []row
}

type row struct {
	name, unit string
	cells      []string
}

// groups lays results out as tables, in the order in which they were measured.
func groups(results []Result) (out []group) {
	sizes := growthSizes(results)
	if len(sizes) > 0 {
		out = append(out, growthGroup(results, sizes))
	}
	for _, shape := range shapesOf(results) {
		seen := map[string]bool{}
		for _, r := range results {
			workload, s, _ := strings.Cut(r.Workload, "/")
			name := workload + " " + r.Metric
			if s != shape || workload == "growth" || seen[name] {
				continue
			}
			seen[name] = true
			out = addRow(out, results, shapeNames[shape], r, strings.ReplaceAll(name, "_", " "))
		}
	}
	return out
}

// addRow adds a metric of all contenders to the group that has the same ones, else to a new group.
func addRow(out []group, results []Result, title string, r Result, name string) []group {
	var columns, cells, durability []string
	base, compared := find(results, Base, r.Workload, r.Metric)
	for _, other := range results {
		if other.Workload == r.Workload && other.Metric == r.Metric {
			columns = append(columns, other.Contender)
			durability = append(durability, short(other.Durability))
			cells = append(cells, cell(other, base, compared))
		}
	}
	line := row{name, r.Unit, cells}
	for i := range out {
		g := &out[i]
		if g.title != title {
			continue
		}
		if at, fits := within(columns, g.columns); fits {
			line.cells = make([]string, len(g.columns))
			for k := range line.cells {
				line.cells[k] = "-"
			}
			for k, c := range cells {
				line.cells[at[k]] = c
			}
			g.rows = append(g.rows, line)
			return out
		}
	}
	return append(out, group{title, columns, durability, []row{line}})
}

// within finds each of some columns among others; few of many do not fit, so that a table is not mostly empty.
func within(columns, among []string) (at []int, fit bool) {
	for _, c := range columns {
		k := slices.Index(among, c)
		if k < 0 {
			return nil, false
		}
		at = append(at, k)
	}
	return at, 2*len(columns) >= len(among)
}

// shapesOf are the shapes that were measured.
func shapesOf(results []Result) (out []string) {
	for _, r := range results {
		if _, s, ok := strings.Cut(r.Workload, "/"); ok && shapeNames[s] != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// growthGroup has a column a size.
func growthGroup(results []Result, sizes []int) group {
	g := group{title: "events"}
	for _, n := range sizes {
		g.columns = append(g.columns, thousands(int64(n)))
	}
	for _, r := range results {
		if r.Workload != growthWorkload(sizes[0]) {
			continue
		}
		line := row{name: strings.ReplaceAll(r.Metric, "_", " "), unit: r.Unit}
		for _, n := range sizes {
			text := "-"
			if at, ok := find(results, r.Contender, growthWorkload(n), r.Metric); ok {
				text = Brief(at.Value)
			}
			line.cells = append(line.cells, text)
		}
		g.rows = append(g.rows, line)
	}
	return g
}
