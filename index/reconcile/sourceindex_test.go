package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Touched, against what was written: keys close together and far apart, repeated, out of order, not known.
func TestTouched(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	w.live()
	last := map[string]uint64{}
	key := func() string { return fmt.Sprint("k", rng.IntN(400)) }
	for range 300 {
		for range 1 + rng.IntN(4) {
			k := key()
			w.do(stored(k, []string{cpu, disk}[rng.IntN(2)]))
			last[k] = w.feed.Standing().Offset + 1
		}
		w.publish()
	}
	x := w.index()
	scope := reading.Scope{Backend: []byte(backend0), Tenant: []byte(event.DefaultTenant)}
	end := w.feed.Standing().Offset
	for range 300 {
		keys := make([][]byte, rng.IntN(40))
		l := &Listing{}
		for i := range keys {
			keys[i] = []byte(key())
			l.Add(keys[i], 0)
		}
		if rng.IntN(4) > 0 {
			l.Sort()
			keys = keys[:0]
			for i := range l.Len() {
				for range 1 + rng.IntN(2) {
					keys = append(keys, l.Key(i))
				}
			}
		}
		h := end - uint64(rng.IntN(250))
		touched := make([]bool, len(keys))
		if err := x.Touched(context.Background(), scope, keys, h, end, touched); err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if want := last[string(k)] > h; touched[i] != want {
				t.Fatalf("%q, last event at %d, since %d: %v", k, last[string(k)], h, touched[i])
			}
		}
	}
}
