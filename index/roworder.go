package index

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
)

// rowOrder is what is moved about when rows are sorted.
type rowOrder struct {
	first uint64
	scope uint32 // its rank among the scopes of the rows
	row   uint32
}

const (
	// fewRows are sorted by comparing them.
	fewRows = 24
	// mostDigits bounds how many bits rows are dealt out by at once: the counters of 16 are 256 KiB.
	mostDigits = 16
)

// rowSorter sorts rows by their scope and first bytes, dealing them out by the highest bits in which they differ, which costs the same
// whatever the order they come in; what is left, few rows or rows that are alike, is compared. Most keys begin with a hash, so that
// one deal leaves two or three in a place. However keys are made, each deal takes four bits or more away, and there are 96.
type rowSorter struct {
	compare func(a, b rowOrder) int // of rows that are alike in scope and first
	dealt   []rowOrder
	counts  []uint32
}

func (s *rowSorter) sort(rows []rowOrder) {
	n := len(rows)
	if n < 2 {
		return
	}
	scope, first := uint32(0), uint64(0) // the bits in which they differ
	if n > fewRows {
		for i := range rows {
			scope |= rows[i].scope ^ rows[0].scope
			first |= rows[i].first ^ rows[0].first
		}
	}
	if scope == 0 && first == 0 {
		slices.SortFunc(rows, s.before)
		return
	}
	// The digits are bits of one number: of the scope while those differ, else of the first bytes.
	byScope, top := scope != 0, bits.Len64(first)
	if byScope {
		top = bits.Len32(scope)
	}
	digits := min(bits.Len(uint(n))-1, mostDigits, top)
	shift, mask := uint(top-digits), uint64(1)<<digits-1
	digit := func(r *rowOrder) uint64 {
		if byScope {
			return uint64(r.scope) >> shift & mask
		}
		return r.first >> shift & mask
	}
	s.deal(rows, 1<<digits, digit)
	for from := 0; from < n; {
		to, d := from+1, digit(&rows[from])
		for to < n && digit(&rows[to]) == d {
			to++
		}
		s.sort(rows[from:to])
		from = to
	}
}

// deal puts rows into the order of their digits; those of the same keep theirs.
func (s *rowSorter) deal(rows []rowOrder, places int, digit func(*rowOrder) uint64) {
	s.counts = slices.Grow(s.counts[:0], places)[:places]
	clear(s.counts)
	for i := range rows {
		s.counts[digit(&rows[i])]++
	}
	at := uint32(0)
	for i, n := range s.counts {
		s.counts[i], at = at, at+n
	}
	s.dealt = slices.Grow(s.dealt[:0], len(rows))[:len(rows)]
	for i := range rows {
		place := &s.counts[digit(&rows[i])]
		s.dealt[*place] = rows[i]
		*place++
	}
	copy(rows, s.dealt)
}

func (s *rowSorter) before(a, b rowOrder) int {
	switch {
	case a.scope != b.scope:
		return cmp.Compare(a.scope, b.scope)
	case a.first != b.first:
		return cmp.Compare(a.first, b.first)
	}
	return s.compare(a, b)
}

// sort fills order. Rows of the same key stay in the order in which they were added.
func (r *eventRows) sort() {
	ranks := r.ranks()
	r.order = r.order[:0]
	for i := range r.rows {
		row := &r.rows[i]
		r.order = append(r.order, rowOrder{row.first, ranks[row.scope], uint32(i)})
	}
	r.sorter.compare = func(a, b rowOrder) int {
		if c := bytes.Compare(r.historyKey(a.row), r.historyKey(b.row)); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	}
	r.sorter.sort(r.order)
}
