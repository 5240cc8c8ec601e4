package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wide are the runes that take two columns of a terminal: East Asian wide and fullwidth ones, and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x23e9, Hi: 0x23ec, Stride: 1},
		{Lo: 0x2614, Hi: 0x2615, Stride: 1}, {Lo: 0x2648, Hi: 0x2653, Stride: 1}, {Lo: 0x26a1, Hi: 0x26a1, Stride: 1},
		{Lo: 0x2705, Hi: 0x2705, Stride: 1}, {Lo: 0x274c, Hi: 0x274c, Stride: 1}, {Lo: 0x2753, Hi: 0x2757, Stride: 1},
		{Lo: 0x2b1b, Hi: 0x2b55, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe10, Hi: 0xfe19, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x16fe0, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f000, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// runeColumns is how many columns of a terminal a rune takes.
func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// columns is how many columns of a terminal text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// shorten cuts text to width columns, in the middle.
func shorten(s string, width int) string {
	if len(s) <= width || columns(s) <= width {
		return s
	}
	// A key may be long: only its ends are looked at.
	head, n := 0, (width-1)/2
	for i, r := range s {
		if n -= runeColumns(r); n < 0 {
			break
		}
		head = i + utf8.RuneLen(r)
	}
	tail, n := len(s), width-1-(width-1)/2
	for tail > head {
		r, size := utf8.DecodeLastRuneInString(s[:tail])
		if n -= runeColumns(r); n < 0 {
			break
		}
		tail -= size
	}
	return s[:head] + "…" + s[tail:]
}

// paragraph breaks text into lines of at most width columns, between words. A word that is wider is cut in the middle.
func paragraph(text string, width int) []string {
	var lines []string
	line, n := "", 0
	for _, word := range strings.Fields(text) {
		word = shorten(word, width)
		w := columns(word)
		if n > 0 && n+1+w > width {
			lines = append(lines, line)
			line, n = "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+w
	}
	return append(lines, line)
}

// hanging breaks text like paragraph; all lines but the first are indented by so many columns.
func hanging(text string, width, indent int) []string {
	first := text[:len(text)-len(strings.TrimLeft(text, " "))]
	lines := paragraph(text, width-max(indent, len(first)))
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
	}
	return lines
}

// say writes text to a person, in lines that fit.
func (p printer) say(text string) {
	for _, line := range hanging(text, tableWidth, 2) {
		p.row(nil, line)
	}
}

// tableWidth is how many columns all that is for people fits in. Commands to be copied are not broken.
const tableWidth = 100
