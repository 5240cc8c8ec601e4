package journal

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestSameRecords: a merged block that differs in anything from what it is to replace is not used.
func TestSameRecords(t *testing.T) {
	rng := testkit.RandomSource(t)
	j := mustOpen(t, testOptions(vfs.NewMem()), 0)
	defer mustClose(t, j)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 60, 3)
	for _, c := range []struct {
		name   string
		change func(g *merging, r *run)
		bad    bool
	}{
		{"nothing", func(*merging, *run) {}, false},
		{"a header", func(g *merging, _ *run) { g.src.entries[rng.IntN(len(g.src.entries))].Received++ }, true},
		{"a byte", func(g *merging, _ *run) { g.src.payload[rng.IntN(len(g.src.payload))] ^= 1 << rng.IntN(8) }, true},
		{"a record more", func(g *merging, _ *run) { g.src.entries = append(g.src.entries, g.src.entries[0]) }, true},
		{"a record less", func(g *merging, _ *run) { g.src.entries = g.src.entries[:len(g.src.entries)-1] }, true},
		{"its length", func(g *merging, _ *run) {
			for i := range g.src.entries {
				if e := &g.src.entries[i]; e.length > 0 {
					e.length--
					if !e.plain {
						e.frames = append([]int{}, e.frames...)
						for f := range e.frames {
							if e.frames[f] > 0 {
								e.frames[f]--
								break
							}
						}
					}
					return
				}
			}
		}, true},
		{"its end", func(_ *merging, r *run) { r.last++ }, true},
	} {
		var g merging
		firsts := blockFirsts(t, j)
		r := run{blocks: firsts, last: j.Durable()}
		g.build.reset(firsts[0])
		var b *Block
		var err error
		for _, first := range firsts {
			if b, err = j.blockAt(b, first); err != nil {
				t.Fatal(err)
			}
			var seq [8]byte
			for i := range b.Len() {
				frames, err := b.Frames(i, nil, &seq)
				if err != nil {
					t.Fatal(err)
				}
				g.build.add(b.Header(i), frames)
			}
			g.src.add(b)
		}
		g.build.pack(j.codec)
		c.change(&g, &r)
		if err := g.sameRecords(r, j.codec); (err != nil) != c.bad {
			t.Errorf("%s changed: %v", c.name, err)
		}
	}
}

// TestUnseen: the sealer is called for a quarter of a block, in bytes or in records, and then begins anew.
func TestUnseen(t *testing.T) {
	for _, c := range []struct{ records, raw, commits int }{{1, 1 << 10, 64}, {1, 0, maxBlockRecords / 4}, {1, 1 << 20, 1}, {8, 300, 219}} {
		var u unseen
		for round := range 2 {
			n := 1
			for !u.add(c.records, c.raw, 256<<10) {
				n++
			}
			if n != c.commits {
				t.Errorf("round %d, %+v: called after %d commits", round, c, n)
			}
		}
	}
}
