package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/kvjournal/kvjournal/query"
)

// printer writes to stdout, buffered.
type printer struct{ *bufio.Writer }

func newPrinter(w io.Writer) printer { return printer{bufio.NewWriterSize(w, 64<<10)} }

// line writes one JSON value and a newline.
func (p printer) line(b []byte) error {
	if _, err := p.Write(b); err != nil {
		return err
	}
	return p.WriteByte('\n')
}

// row writes the cells of a table, each padded to its width; the last is not, and is cut where the row would be too wide. A lone
// cell stands as it is.
func (p printer) row(widths []int, cells ...string) {
	used := 0
	for i, c := range cells {
		if i > 0 {
			p.WriteString("  ")
			used += 2
		}
		if i > 0 && i == len(cells)-1 {
			c = shorten(c, max(8, tableWidth-used))
		}
		p.WriteString(c)
		wide := columns(c)
		if i < len(cells)-1 && i < len(widths) {
			p.WriteString(strings.Repeat(" ", max(0, widths[i]-wide)))
			wide = max(wide, widths[i])
		}
		used += wide
	}
	p.WriteByte('\n')
}

// printable shows bytes to a person: as text where they are, quoted where they are not.
func printable(b query.Bytes) string {
	s := string(b)
	if q := strconv.Quote(s); !utf8.Valid(b) || q != `"`+s+`"` {
		return q
	}
	return s
}

// harmless replaces in text what may do something to a terminal, or cannot be seen.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// clock shows a time to a person, in UTC.
func clock(t *query.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func bytesOf(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for f >= unit && i < 4 {
		f, i = f/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[i])
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progressOn shows how far long work is, on a terminal only.
func progressOn(w io.Writer, what string) func(done, total uint64) {
	if !isTerminal(w) {
		return nil
	}
	begun := time.Now()
	var shown time.Time
	return func(done, total uint64) {
		now := time.Now()
		if now.Sub(begun) < 300*time.Millisecond || (now.Sub(shown) < 100*time.Millisecond && done < total) {
			return
		}
		shown = now
		percent := 100.0
		if total > 0 {
			percent = 100 * float64(done) / float64(total)
		}
		rate := float64(done) / now.Sub(begun).Seconds()
		fmt.Fprintf(w, "\r\x1b[K%s: %.0f %% (%s of %s, %s/s)", what, percent, number(done), number(total), number(uint64(rate)))
		if done >= total {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// stepsOn shows on a terminal how far each step is; nil where there is none.
func stepsOn(w io.Writer) func(step string, done, total uint64) {
	if !isTerminal(w) {
		return nil
	}
	var now string
	var show func(done, total uint64)
	return func(step string, done, total uint64) {
		if step != now {
			now, show = step, progressOn(w, step)
		}
		show(done, total)
	}
}
