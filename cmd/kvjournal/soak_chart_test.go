package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// A chart is drawn as SVG: one panel for each measure, one above the other, over the seconds of the run.

// curve is one line of a panel: y over x.
type curve struct {
	name string
	x, y []float64
}

// panel is a chart of curves that share a scale, which begins at 0.
type panel struct {
	title  string
	curves []curve
}

const (
	panelWidth, panelHeight = 900.0, 180.0
	leftEdge, topEdge       = 70.0, 26.0
	rightEdge, bottomEdge   = 170.0, 24.0
)

var curveColors = []string{"#1b6ca8", "#d1495b", "#2e8b57", "#8a5fbf", "#c77d0a", "#3aa6a6", "#7a7a7a", "#b0305f", "#556b2f", "#0b3954", "#a0522d", "#4169e1"}

// drawPanels draws panels as one SVG.
func drawPanels(title string, panels []panel) []byte {
	var b bytes.Buffer
	height := topEdge + float64(len(panels))*panelHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", panelWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="17" font-size="14">%s</text>`+"\n", escaped(title))
	end := 1.0
	for _, p := range panels {
		for _, c := range p.curves {
			for _, x := range c.x {
				end = max(end, x)
			}
		}
	}
	for i := range panels {
		panels[i].draw(&b, topEdge+float64(i)*panelHeight, end)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// draw draws the panel below y0; the axis ends at end seconds.
func (p *panel) draw(b *bytes.Buffer, y0, end float64) {
	most := 0.0
	for _, c := range p.curves {
		for _, y := range c.y {
			most = max(most, y)
		}
	}
	top := niceAbove(most)
	x := func(v float64) float64 { return leftEdge + v/end*(panelWidth-leftEdge-rightEdge) }
	y := func(v float64) float64 {
		return y0 + panelHeight - bottomEdge - v/top*(panelHeight-bottomEdge-topEdge)
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%.1f" font-weight="bold">%s</text>`+"\n", leftEdge, y0+15, escaped(p.title))
	for i := range 5 {
		v := top * float64(i) / 4
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", leftEdge, y(v), x(end), leftEdge-6, y(v)+4, shortNumber(v))
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s s</text>`+"\n", x(end*float64(i)/4), y0+panelHeight-bottomEdge+14, shortNumber(end*float64(i)/4))
	}
	for i, c := range p.curves {
		color := curveColors[i%len(curveColors)]
		var d strings.Builder
		for k := range c.x {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(k, 1)], x(c.x[k]), y(c.y[k]))
		}
		if len(c.x) > 0 {
			fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`+"\n", d.String(), color)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x(end)+8, y0+topEdge+float64(i)*12, color, escaped(c.name))
	}
}

// niceAbove is the least of 1, 2, 2.5 and 5 times a power of ten that is not below v.
func niceAbove(v float64) float64 {
	if v <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 2.5, 5, 10} {
		if f*ten >= v*(1-1e-9) {
			return f * ten
		}
	}
	return 10 * ten
}

func shortNumber(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// charts draws a run.
func (s *soak) charts() []byte {
	of := func(name string, f func(soakSample) float64) curve {
		c := curve{name: name}
		for _, p := range s.samples {
			c.x, c.y = append(c.x, p.Seconds), append(c.y, f(p))
		}
		return c
	}
	panels := []panel{
		{"memory, MiB resident", []curve{of("recorder", func(p soakSample) float64 { return p.RSS }), of("its buffer", func(p soakSample) float64 { return p.Buffer })}},
		{"open files, threads", []curve{of("files", func(p soakSample) float64 { return float64(p.Files) }), of("threads", func(p soakSample) float64 { return float64(p.Threads) })}},
		{"data directory, MiB", []curve{of("all files", func(p soakSample) float64 { return p.Dir })}},
		{"events recorded a second", []curve{of("events/s", func(p soakSample) float64 { return p.Rate })}},
		{"index behind the journal, records", []curve{of("lag", func(p soakSample) float64 { return float64(p.Lag) })}},
	}
	s.ask.mu.Lock()
	defer s.ask.mu.Unlock()
	quick, slow := panel{title: "questions, ms (a command's whole run)"}, panel{title: "backup, prune, lifetimes, reconcile, ms"}
	for _, kind := range slices.Sorted(maps.Keys(s.ask.took)) {
		c := curve{name: kind}
		for _, q := range s.ask.took[kind] {
			c.x, c.y = append(c.x, q.at.Sub(s.begun).Seconds()), append(c.y, float64(q.took.Microseconds())/1000)
		}
		to := &quick
		if slices.Contains([]string{"backup", "prune", "lifetimes", "reconcile", "a backup's stats"}, kind) {
			to = &slow
		}
		to.curves = append(to.curves, thinned(c))
	}
	return drawPanels(fmt.Sprintf("kvjournal soak, %v, %d samples", s.duration, len(s.samples)), append(panels, quick, slow))
}

// curvePoints is how many points of a curve are drawn at most.
const curvePoints = 300

// thinned is a curve of at most curvePoints points, each the highest of its neighbours.
func thinned(c curve) curve {
	step := (len(c.x) + curvePoints - 1) / curvePoints
	if step <= 1 {
		return c
	}
	out := curve{name: c.name}
	for i := 0; i < len(c.x); i += step {
		end := min(i+step, len(c.x))
		out.x, out.y = append(out.x, c.x[i]), append(out.y, slices.Max(c.y[i:end]))
	}
	return out
}

// A chart is well-formed, holds each curve, and stays inside its frame.
func TestDrawPanels(t *testing.T) {
	t.Parallel()
	many := curve{name: "many"}
	for i := range 1000 {
		many.x, many.y = append(many.x, float64(i)), append(many.y, float64(i%10))
	}
	svg := drawPanels("a < b", []panel{{"empty", nil}, {"p & q", []curve{{"one", []float64{0, 50, 100}, []float64{0, 7, 3}}, {name: "none"}, thinned(many)}}})
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Fatalf("%v\n%s", err, svg)
	}
	for _, want := range []string{"a &lt; b", "p &amp; q", ">one<", ">many<", ">10<"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("no %q in it", want)
		}
	}
	if n := bytes.Count(svg, []byte("stroke-width")); n != 2 {
		t.Errorf("%d curves are drawn, want 2", n)
	}
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.1: 2, 2.2: 2.5, 30: 50, 99: 100, 100: 100, 101: 200} {
		if got := niceAbove(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("the scale for %v ends at %v, want %v", v, got, want)
		}
	}
	if slope, mean := line([]float64{1, 2, 3}, []float64{2, 4, 6}); slope != 2 || mean != 4 {
		t.Errorf("slope %v, mean %v", slope, mean)
	}
}
