//go:build !race

// Under the race detector Pebble checks its own invariants in every iterator and throws away what it pools: it allocates for every
// object then, and how much of that would be ours cannot be told. So make test runs this file without it.

package index

import "testing"

// TestWalkAllocates: going from object to object allocates nothing.
func TestWalkAllocates(t *testing.T) {
	w := newWalked(t, 2000)
	v := view(t, w.x)
	defer v.Close()
	count := func() (objects int, allocs float64) {
		allocs = testing.AllocsPerRun(3, func() {
			objects = 0
			for _, s := range w.scopes() {
				walk, err := v.Objects(&s, nil)
				if err != nil {
					t.Fatal(err)
				}
				for walk.Next() {
					for objects++; walk.NextRowAt(Behind(uint64(len(w.records) / 2))); {
						walk.SkipMedium()
					}
				}
				w.close(walk)
			}
		})
		return objects, allocs
	}
	// Opening walks allocates, and so do the first few objects until buffers are large enough.
	if n, allocs := count(); allocs > float64(n)/2+100*float64(len(w.scopes())) {
		t.Errorf("%.0f allocations for %d objects", allocs, n)
	}
}
