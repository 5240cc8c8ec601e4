package report

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
)

// Plots draws what the results hold into a directory: append.svg, disk.svg, read.svg, track.svg, questions.svg of a contest, growth.svg
// of a growth.
func Plots(dir string, results []Result) error {
	for _, p := range []struct {
		file, title, below string
		labels             float64
		panels             []panel
	}{
		{"append.svg", "Durable append, events/s (longer is better)",
			"Median, least and most of all rounds. † not synced: lost when the machine fails. The same groups for all, one transaction or sync a group.",
			72, shapePanels(results, "append", "rate")},
		{"disk.svg", "Bytes on disk for an event, at rest (shorter is better)",
			"After each contender's own settling; space that is only set aside does not count. † not synced.",
			72, shapePanels(results, "disk", "size")},
		{"read.svg", "Everything read back, events/s (longer is better)",
			"From the page cache, every byte compared; jsonl gives back the fields of events only. † not synced.",
			72, shapePanels(results, "read", "rate")},
		{"track.svg", "Append and index, nothing left behind, events/s (longer is better)",
			"kvjournal: journal and index. sqlite (drivers in C and in Go): a table of messages, and one of events in the order that questions about a moment need.",
			72, shapePanels(results, "track", "rate")},
		{"questions.svg", "What a question takes (shorter is better; logarithmic)",
			"A mixed day; in brackets how many times sooner kvjournal answers. Its answers say how sure they are, and why.",
			262, questionPanels(results)},
	} {
		if err := drawPanels(filepath.Join(dir, p.file), p.title, p.below, p.labels, p.panels); err != nil {
			return err
		}
	}
	return drawGrowth(filepath.Join(dir, "growth.svg"), results)
}

var shapeNames = map[string]string{"64": "64 events a message", "1": "1 event a message", "day": "a mixed day"}

// shapePanels are a metric of all contenders, a panel a shape.
func shapePanels(results []Result, workload, metric string) (out []panel) {
	for _, shape := range []string{"64", "1", "day"} {
		if bars := barsOf(results, workload+"/"+shape, metric); len(bars) > 0 {
			out = append(out, panel{title: shapeNames[shape], bars: bars})
		}
	}
	return out
}

// questionPanels are all questions of those that answer them, on one scale.
func questionPanels(results []Result) []panel {
	var p panel
	for _, q := range []struct{ workload, metric, label string }{
		{"now/day", "hit_p50", "where it is"},
		{"now/day", "hit_p99", "the slowest in a hundred"},
		{"now/day", "miss_p50", "something unknown"},
		{"at/day", "hot_p50", "where it was, a hot object"},
		{"at/day", "uniform_p50", "where it was, any object"},
		{"history/day", "object_p50", "its history"},
		{"now/day", "batch_of_1000", "1,000 at once"},
		{"track_open/day", "first_answer", "the first after a crash"},
	} {
		bars := barsOf(results, q.workload, q.metric)
		base, compared := find(results, Base, q.workload, q.metric)
		for _, b := range bars {
			r, _ := find(results, b.label, q.workload, q.metric)
			toUS := 1.0
			if r.Unit == "ms" {
				toUS = 1000
			}
			b.value, b.least, b.most = b.value*toUS, b.least*toUS, b.most*toUS
			b.note = inUnits(b.value)
			if compared && r.Contender != Base {
				b.note += fmt.Sprintf("  (%s x)", Number(Better(base, r)))
			}
			b.label = q.label + ": " + b.label
			if r.Contender != bars[0].label {
				b.label = r.Contender
			}
			p.bars = append(p.bars, b)
		}
	}
	p.log = true
	return []panel{p}
}

// inUnits writes microseconds for people.
func inUnits(us float64) string {
	if us >= 1000 {
		return Number(us/1000) + " ms"
	}
	return Number(us) + " µs"
}

// Brief writes a value in few characters: 1.23 M, 45.6 k, 789.
func Brief(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return trim(v/1e6) + " M"
	case a >= 1e4:
		return trim(v/1e3) + " k"
	default:
		return Number(v)
	}
}

func trim(v float64) string {
	s := Number(v)
	if strings.Contains(s, ".") && len(s) > 4 {
		s = s[:4]
	}
	return s
}
