package index

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// freshBase remembers what the rows begin with, for the states of the index. Most databases have no such row, and to find that out takes a look
// into each table of L0, for each first view behind a write: with 32 of them on top of each other that was all but 3 us of what opening it cost
// (BenchmarkFirstView).
//
// It is what the row says: it is changed by those writes alone that lie between begin and end, and what was read before one began, or while
// one was under way, is not taken behind it.
type freshBase struct {
	mu      sync.Mutex
	writers int    // under way
	writes  uint64 // begun
	known   *Base  // nil: not read since
}

func (f *freshBase) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers++
	f.writes++
	f.known = nil
}

func (f *freshBase) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers--
}

// get returns what is known before a snapshot is taken, and what in wants of it. While a write is under way nothing is known.
func (f *freshBase) get() (known *Base, writes uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writers > 0 {
		return nil, 0 // no number of a write that is over
	}
	return f.known, f.writes + 1
}

// in returns the base of a snapshot that was taken behind get.
func (f *freshBase) in(snap pebble.Reader, known *Base, writes uint64) (Base, error) {
	if known != nil && f.still(writes, nil) {
		return *known, nil
	}
	b, err := readBaseline(snap)
	if err == nil {
		f.still(writes, &b)
	}
	return b, err
}

// still reports whether no write began since get gave that number; then it remembers b, if not nil.
func (f *freshBase) still(writes uint64, b *Base) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes+1 != writes {
		return false
	}
	if b != nil {
		f.known = b
	}
	return true
}
