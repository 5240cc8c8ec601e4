package report

import (
	"math"
	"unicode/utf8"
)

// panel is a list of bars with one scale.
type panel struct {
	title string
	bars  []bar
	// log scales the bars by powers of ten; then zero is a tenth of the least.
	log bool
}

type bar struct {
	label, note        string
	value, least, most float64
	class              string
}

const (
	plotWidth  = 860.0
	plotMargin = 16.0
	barHeight  = 14.0
	barStep    = 20.0
	charWidth  = 7.4
)

// barsOf are the contenders' bars for one metric, in the order of the results.
func barsOf(results []Result, workload, metric string) (bars []bar) {
	for _, r := range results {
		if r.Workload != workload || r.Metric != metric {
			continue
		}
		b := bar{label: r.Contender, value: r.Value, least: r.Min, most: r.Max, class: "other", note: Brief(r.Value)}
		switch {
		case r.Contender == Base:
			b.class = "own"
		case short(r.Durability) == "not synced":
			b.class, b.note = "weak", b.note+" †"
		}
		bars = append(bars, b)
	}
	return bars
}

// drawPanels draws panels side by side, with a title above and a line of explanation below.
func drawPanels(path, title, below string, labelWidth float64, panels []panel) error {
	most := 0
	for _, p := range panels {
		most = max(most, len(p.bars))
	}
	if most == 0 {
		return nil
	}
	const top = 58.0
	s := &svg{width: plotWidth, height: top + float64(most)*barStep + 34}
	s.text(plotMargin, 26, "start", "h", title)
	width := (plotWidth - 2*plotMargin) / float64(len(panels))
	for i := range panels {
		panels[i].draw(s, plotMargin+float64(i)*width, top, width-18, labelWidth)
	}
	s.text(plotMargin, s.height-12, "start", "soft", below)
	return s.write(path, title)
}

func (p *panel) draw(s *svg, x, y, width, labelWidth float64) {
	s.text(x, y-10, "start", "b", p.title)
	scale := p.scale(width - labelWidth - p.noteWidth())
	left := x + labelWidth
	s.line(left, y-2, left, y+float64(len(p.bars))*barStep, "rule")
	for i, b := range p.bars {
		top := y + float64(i)*barStep
		middle := top + barHeight/2
		class := ""
		if b.class == "own" {
			class = "b"
		}
		s.text(left-6, middle+4, "end", class, b.label)
		s.rect(left, top, scale(b.value), barHeight, b.class)
		if b.most > b.least {
			s.line(left+scale(b.least), middle, left+scale(b.most), middle, "whisker")
		}
		s.text(left+max(scale(b.value), scale(b.most))+6, middle+4, "start", class, b.note)
	}
}

// noteWidth is room for the longest note.
func (p *panel) noteWidth() float64 {
	most := 0
	for _, b := range p.bars {
		most = max(most, utf8.RuneCountInString(b.note))
	}
	return 10 + float64(most)*charWidth
}

// scale returns how long a bar of a value is.
func (p *panel) scale(length float64) func(float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, b := range p.bars {
		if b.least > 0 {
			least = min(least, b.least)
		}
		most = max(most, b.most)
	}
	if !p.log {
		return func(v float64) float64 { return v / most * length }
	}
	from := math.Log10(least) - 0.5
	to := math.Log10(most)
	return func(v float64) float64 {
		if v <= 0 {
			return 0
		}
		return max(0, (math.Log10(v)-from)/(to-from)*length)
	}
}
