package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// curve is a metric over the sizes of a growth.
type curve struct {
	label  string
	metric string
}

var growthCharts = []struct {
	title  string
	curves []curve
}{
	{"append, µs an event", []curve{{"", "append"}}},
	{"index, µs an event", []curve{{"", "index"}}},
	{"lookup now, µs", []curve{{"p50", "now_hit_p50"}, {"p99", "now_hit_p99"}}},
	{"lookup at T, hot, µs", []curve{{"p50", "at_hot_p50"}, {"p99", "at_hot_p99"}}},
	{"lookup at T, any object, µs", []curve{{"p50", "at_uniform_p50"}, {"p99", "at_uniform_p99"}}},
	{"open after a crash, ms", []curve{{"", "open_after_crash"}}},
	{"memory at most, MiB", []curve{{"", "memory_growing"}}},
	{"disk, bytes an event", []curve{{"", "disk"}}},
}

const growthColumns = 4

// drawGrowth draws a chart a metric over the number of events, each from zero.
func drawGrowth(path string, results []Result) error {
	sizes := growthSizes(results)
	if len(sizes) == 0 {
		return nil
	}
	const top, w, h = 46.0, (plotWidth - 2*plotMargin) / growthColumns, 168.0
	rows := (len(growthCharts) + growthColumns - 1) / growthColumns
	s := &svg{width: plotWidth, height: top + float64(rows)*h}
	title := "kvjournal from " + Brief(float64(sizes[0])) + " to " + Brief(float64(sizes[len(sizes)-1])) + " events: a mixed day, a fixed cache"
	s.text(plotMargin, 26, "start", "h", title)
	for i, c := range growthCharts {
		x, y := plotMargin+float64(i%growthColumns)*w, top+float64(i/growthColumns)*h
		s.text(x, y+12, "start", "b", c.title)
		drawChart(s, x+4, y+24, w-30, h-64, results, sizes, c.curves)
	}
	return s.write(path, title)
}

func drawChart(s *svg, x, y, w, h float64, results []Result, sizes []int, curves []curve) {
	most := 0.0
	for _, c := range curves {
		for _, n := range sizes {
			r, _ := find(results, Base, growthWorkload(n), c.metric)
			most = max(most, r.Value)
		}
	}
	if most == 0 {
		return
	}
	across := func(n int) float64 {
		if len(sizes) == 1 {
			return x
		}
		from, to := math.Log10(float64(sizes[0])), math.Log10(float64(sizes[len(sizes)-1]))
		return x + 12 + (w-24)*(math.Log10(float64(n))-from)/(to-from)
	}
	up := func(v float64) float64 { return y + h - v/(most*1.25)*h }
	s.line(x, y+h, x+w, y+h, "rule")
	for _, n := range sizes {
		s.text(across(n), y+h+14, "middle", "soft", Brief(float64(n)))
	}
	for i, c := range curves {
		line, dot := "line", "dot"
		if i > 0 {
			line, dot = "line2", "dot2"
		}
		var points [][2]float64
		for _, n := range sizes {
			r, ok := find(results, Base, growthWorkload(n), c.metric)
			if !ok {
				continue
			}
			p := [2]float64{across(n), up(r.Value)}
			points = append(points, p)
			label := Brief(r.Value)
			if n == sizes[len(sizes)-1] && c.label != "" {
				label = c.label + " " + label
			}
			anchor := "middle"
			if n == sizes[len(sizes)-1] && len(sizes) > 1 {
				anchor = "end"
				p[0] += 12
			}
			s.text(p[0], p[1]-7, anchor, "soft", label)
		}
		if len(points) > 0 {
			s.path(points, line)
		}
		for _, p := range points {
			s.dot(p[0], p[1], dot)
		}
	}
}

// growthWorkload names what was measured at a size.
func growthWorkload(events int) string { return "growth/" + strconv.Itoa(events) }

// growthSizes are the sizes that a growth was measured at, rising.
func growthSizes(results []Result) (sizes []int) {
	for _, r := range results {
		if tail, ok := strings.CutPrefix(r.Workload, "growth/"); ok {
			if n, err := strconv.Atoi(tail); err == nil && !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	slices.Sort(sizes)
	return sizes
}
