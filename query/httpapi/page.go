package httpapi

import "errors"

// next is the last line of a page that may not be the last.
type next struct {
	Next string `json:"next"`
}

// errPage ends a reading when a page is full.
var errPage = errors.New("the page is full")

// pageMost bounds page: what a page is for is to be held at once.
const pageMost = 100_000

// page reads how many lines a page has, 0: there are no pages. It takes the place of limit.
func (p *params) page(limit *uint64) uint64 {
	n := p.number("page", 0)
	switch {
	case n > pageMost:
		p.bad("page %d: %d lines at most", n, pageMost)
	case n > 0 && *limit > 0:
		p.bad("page and limit: give one of them")
	case n > 0:
		*limit = n
	}
	return n
}
