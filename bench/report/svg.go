package report

import (
	"bytes"
	"fmt"
	"html"
	"os"
)

// svg is a drawing on a background of its own, light or dark as the reader's page.
type svg struct {
	body          bytes.Buffer
	width, height float64
}

// svgStyle: the colors of both pages. Classes: own (kvjournal), other, weak (what is not synced), ink, soft, rule.
const svgStyle = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
.h{font-size:15px;font-weight:600}.b{font-weight:600}.soft{fill:#59636e;font-size:11px}
.page{fill:#ffffff}.own{fill:#0969da}.other{fill:#8c959f}.weak{fill:#d1d9e0}
.rule{stroke:#d1d9e0;stroke-width:1;fill:none}.whisker{stroke:#1f2328;stroke-width:1;fill:none}
.line{stroke:#0969da;stroke-width:2;fill:none}.line2{stroke:#8c959f;stroke-width:2;fill:none;stroke-dasharray:4 3}
.dot{fill:#0969da}.dot2{fill:#8c959f}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.soft{fill:#9198a1}
.page{fill:#0d1117}.own{fill:#4493f8}.other{fill:#7d8590}.weak{fill:#3d444d}
.rule{stroke:#3d444d}.whisker{stroke:#e6edf3}.line{stroke:#4493f8}.line2{stroke:#7d8590}.dot{fill:#4493f8}.dot2{fill:#7d8590}
}</style>
`

func (s *svg) text(x, y float64, anchor, class, t string) {
	fmt.Fprintf(&s.body, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, anchor, class, html.EscapeString(t))
}

func (s *svg) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&s.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1.5\" class=\"%s\"/>\n", x, y, max(w, 1), h, class)
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&s.body, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

func (s *svg) dot(x, y float64, class string) {
	fmt.Fprintf(&s.body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"%s\"/>\n", x, y, class)
}

func (s *svg) path(points [][2]float64, class string) {
	for i, p := range points {
		letter := "L"
		if i == 0 {
			s.body.WriteString(`<path d="`)
			letter = "M"
		}
		fmt.Fprintf(&s.body, "%s%.1f %.1f", letter, p[0], p[1])
	}
	fmt.Fprintf(&s.body, "\" class=\"%s\"/>\n", class)
}

// write puts the drawing into a file.
func (s *svg) write(path, title string) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>%s</title>\n",
		s.width, s.height, s.width, s.height, html.EscapeString(title))
	out.WriteString(svgStyle)
	fmt.Fprintf(&out, "<rect width=\"%.0f\" height=\"%.0f\" class=\"page\"/>\n", s.width, s.height)
	out.Write(s.body.Bytes())
	out.WriteString("</svg>\n")
	return os.WriteFile(path, out.Bytes(), 0o644)
}
