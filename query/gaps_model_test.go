package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// inDoubt compares what each loss put in doubt with what the oracle says of every object directly before it and at it.
func (r *recorded) inDoubt(from, to uint64) (losses int, objects uint64) {
	q := &GapsQuery{Span: Span{From: When{Kind: AtOffset, Offset: from}, To: When{Kind: AtOffset, Offset: to}}}
	before := map[uint64]bool{} // offsets that a loss listed already came behind
	var want []*InDoubt
	for _, g := range r.oracle.Gaps() {
		d := &InDoubt{}
		first := !before[g.Before]
		before[g.Before] = true
		scopes := map[string]uint64{}
		for _, o := range r.oracle.Objects() {
			present, standing := r.oracle.InDoubt(g.Before, o)
			switch {
			case !present:
				continue
			case standing && first:
				d.Objects++
				scopes[o.Backend+"\x01"+o.Tenant]++
				// It must be the loss that put it in doubt: at its mark nothing from before it stands.
				if r.oracle.Doubt(g.After) < g.Before {
					r.t.Fatalf("seed %d: no mark at loss %+v", r.stream.Seed, g)
				}
			default:
				d.AlreadyInDoubt++
			}
		}
		for s, n := range scopes {
			d.Scopes = append(d.Scopes, ScopeInDoubt{Tenant: Bytes(s), Objects: n})
		}
		d.ScopesTotal = uint64(len(scopes))
		if from <= g.After && g.After <= to {
			want = append(want, d)
		}
	}
	r.must(r.e.Gaps(r.t.Context(), q, nil, func(g *GapOut) error {
		if losses >= len(want) {
			return fmt.Errorf("a loss too many: %+v", g)
		}
		got, w := g.InDoubt, want[losses]
		losses++
		objects += got.Objects
		listed, ordered := map[string]uint64{}, true
		for i, s := range got.Scopes {
			listed[string(s.Backend)+"\x01"+string(s.Tenant)] = s.Objects
			ordered = ordered && (i == 0 || got.Scopes[i-1].Objects >= s.Objects)
		}
		same := len(listed) == len(w.Scopes) && ordered
		for _, s := range w.Scopes {
			same = same && listed[string(s.Tenant)] == s.Objects
		}
		if got.Objects != w.Objects || got.AlreadyInDoubt != w.AlreadyInDoubt || got.ScopesTotal != w.ScopesTotal || !same {
			return fmt.Errorf("loss %+v\n got %+v\nwant %+v", *g, *got, *w)
		}
		return nil
	}))
	if losses != len(want) {
		r.t.Fatalf("seed %d: %d losses, want %d", r.stream.Seed, losses, len(want))
	}
	return losses, objects
}

// TestInDoubtModel holds what losses put in doubt against the oracle, on random streams.
func TestInDoubtModel(t *testing.T) {
	defer loosen()()
	losses, objects := 0, uint64(0)
	for n := range (*modelStreams + 1) / 2 {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 13)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		if n%2 == 1 {
			r.reads = &reads{often: 3 + r.rng.IntN(15), silence: 2 + r.rng.IntN(20)}
		}
		r.record()
		r.tighten()
		end := uint64(len(r.stream.Records))
		l, o := r.inDoubt(1, end)
		losses, objects = losses+l, objects+o
		from := 1 + r.rng.Uint64N(end)
		r.inDoubt(from, from+r.rng.Uint64N(end-from+1))
		r.close()
	}
	t.Logf("%d losses put %d objects in doubt, on %d streams", losses, objects, (*modelStreams+1)/2)
	if *modelStreams >= 20 && (losses == 0 || objects == 0) {
		t.Error("nothing was compared")
	}
}

// A loss names the largest scopes, in order, and counts the others.
func TestManyScopesInDoubt(t *testing.T) {
	d := &doubts{at: []uint64{5, 9}, found: make([]foundInDoubt, 2)}
	rng := rand.New(rand.NewPCG(1, 1))
	var sizes []uint64
	for range 1000 {
		n := 1 + rng.Uint64N(500)
		sizes = append(sizes, n)
		s := &doubtScope{}
		s.Scope = &index.Scope{Tenant: []byte(fmt.Sprint(len(sizes)))}
		for range n {
			s.sure.add(1, 2)
		}
		d.ended(s)
	}
	out := d.out(9)
	slices.Sort(sizes)
	slices.Reverse(sizes)
	for i, s := range out.Scopes {
		if s.Objects != sizes[i] {
			t.Fatalf("scope %d has %d objects, want %d", i, s.Objects, sizes[i])
		}
	}
	if len(out.Scopes) != scopesInDoubt || out.ScopesTotal != 1000 || len(d.out(5).Scopes) != 0 {
		t.Errorf("%d scopes of %d", len(out.Scopes), out.ScopesTotal)
	}
}
