package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestRowOrder sorts rows of keys that are made in many ways, and holds their order against that of their keys.
func TestRowOrder(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var scopes []*scope
		for i := range 1 + rng.IntN(40)*rng.IntN(2) {
			prefix := appendScope(nil, uint32(rng.IntN(3)*1000), fmt.Appendf(nil, "b%d", rng.IntN(1+i/2)), []byte("t"))
			scopes = append(scopes, &scope{prefix: prefix})
		}
		objects := 1 + rng.IntN(5000)
		key := func() []byte {
			switch n := rng.IntN(objects); (seed + uint64(n)%2*seed) % 5 {
			case 0, 1: // a hash, as most
				h := rand.New(rand.NewPCG(uint64(n), 8))
				return fmt.Appendf(nil, "%016x%016x%016x%016x_%d_k", h.Uint64(), h.Uint64(), h.Uint64(), h.Uint64(), n%3)
			case 2: // all begin alike
				return fmt.Appendf(nil, "model/layer/%d", n)
			case 3: // few bits differ, high and low ones
				return []byte{byte(n & 0x81), 0, byte(n >> 8), 0, 0, 0, byte(n), 1}
			default: // short
				return fmt.Appendf(nil, "%x", n)
			}
		}
		var r eventRows
		for i := range rng.IntN(4000) {
			ev := event.Event{Key: key(), Medium: []byte([]string{"cpu", "disk", "gpu"}[rng.IntN(3)])}
			e := Evidence{Position: Position{uint64(1 + i/(1+rng.IntN(3))), uint32(rng.IntN(2))}}
			r.add(scopes[rng.IntN(len(scopes))], &ev, &e)
		}
		want := make([]uint32, len(r.rows))
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortStableFunc(want, func(a, b uint32) int { return bytes.Compare(r.historyKey(a), r.historyKey(b)) })
		for range 2 { // the second time rows are there already
			r.sort()
			for i, o := range r.order {
				if o.row != want[i] {
					t.Fatalf("seed %d, %d rows: place %d has row %d (%q), want %d (%q)", seed, len(want), i, o.row, r.historyKey(o.row), want[i], r.historyKey(want[i]))
				}
			}
			if len(r.order) != len(want) {
				t.Fatalf("seed %d: %d of %d rows are in order", seed, len(r.order), len(want))
			}
		}
	}
}

// BenchmarkRowOrder sorts as many rows as a run of a rebuild has; one operation is one row.
func BenchmarkRowOrder(b *testing.B) {
	const n = 150_000
	rng := rand.New(rand.NewPCG(1, 9))
	sc := &scope{prefix: appendScope(nil, 1, []byte("b"), []byte("t"))}
	var r eventRows
	for i := range n {
		h := rand.New(rand.NewPCG(uint64(rng.IntN(n/2)), 8))
		ev := event.Event{Medium: []byte("cpu"), Key: fmt.Appendf(nil, "%016x%016x%016x%016x_0_k", h.Uint64(), h.Uint64(), h.Uint64(), h.Uint64())}
		r.add(sc, &ev, &Evidence{Position: Position{uint64(1 + i/64), uint32(1 + i%64)}})
	}
	for done := 0; done < b.N; done += n {
		r.sort()
	}
}
