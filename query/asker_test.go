package query

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// TestAsker: whatever an Asker was asked before, and whoever else asks, its answers are, byte by byte, those of an engine that keeps nothing of
// objects, in the order of the questions: at all kinds of moments, with readings of the master, with objects and sources that are left to find.
func TestAsker(t *testing.T) {
	compared := 0
	for n := range min(*modelStreams, 20) {
		seed := *modelSeed + uint64(n)
		rng, r := rand.New(rand.NewPCG(seed, 31)), newRead(t, seed)
		objects := append(r.oracle.Objects(), oracle.Object{Backend: "b0", Tenant: "default", Key: "never"})
		moments := append(r.moments(0, r.oracle.End()), When{}, When{}, When{Kind: Now})
		type asking struct {
			questions []Question
			w         When
			want      []string
		}
		all := make([]asking, 30)
		read := func(answers []*Answer) (out []string) {
			for _, a := range answers {
				a.AsOf.AgeMs = nil
				out = append(out, string(mustJSON(a)))
			}
			return out
		}
		forgetful := r.reopened(index.Options{ObjectCache: -1})
		for i := range all {
			k := &all[i]
			k.w = moments[rng.IntN(len(moments))]
			for range 1 + rng.IntN(2)*rng.IntN(300) {
				q := Question{r.name(objects[rng.IntN(len(objects))])}
				switch rng.IntN(12) {
				case 0:
					q.Backend = nil
				case 1:
					q.Source = ""
				}
				k.questions = append(k.questions, q)
			}
			for j := range k.questions { // each by itself
				one, err := forgetful.Lookup(t.Context(), k.questions[j:j+1], k.w)
				r.must(err)
				k.want = append(k.want, read(one)...)
			}
		}
		e := r.reopened(index.Options{})
		asker := e.Asker()
		for step := range 4 * len(all) {
			k := &all[rng.IntN(len(all))]
			lookup := asker.Lookup
			if rng.IntN(4) == 0 {
				lookup = e.Lookup
			}
			answers, err := lookup(t.Context(), k.questions, k.w)
			r.must(err)
			for i, got := range read(answers) {
				if got != k.want[i] {
					t.Fatalf("seed %d, step %d, %+v, question %d of %d: %+v\ngot  %s\nwant %s", seed, step, k.w, i, len(k.questions), k.questions[i], got, k.want[i])
				}
				compared++
			}
		}
		r.close()
	}
	t.Logf("from seed %d: %d answers", *modelSeed, compared)
	if compared == 0 {
		t.Fatal("nothing was compared")
	}
}

// reopened opens the index again with other options.
func (r *recorded) reopened(o index.Options) *Engine {
	r.must(r.x.Close())
	own := r.indexOptions()
	own.ObjectCache = o.ObjectCache
	var err error
	r.x, err = index.Open(r.j, true, own)
	r.must(err)
	r.e = &Engine{Journal: r.j, Index: r.x}
	return r.e
}

// TestAskerAllocates: a question about an object on cpu and disk that was asked for before allocates nothing.
func TestAskerAllocates(t *testing.T) {
	tested := 0
	for seed := uint64(1); seed <= 20 && tested == 0; seed++ {
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 37)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		r.record()
		asker := r.e.Asker()
		for _, o := range r.oracle.Objects() {
			question := []Question{{r.name(o)}}
			ask := func() *Answer {
				answers, err := asker.Lookup(t.Context(), question, When{})
				if err != nil {
					t.Fatal(err)
				}
				return answers[0]
			}
			if a := ask(); len(a.Media) > 2 || a.Media["cpu"].Evidence == nil && a.Media["disk"].Evidence == nil {
				continue
			}
			tested++
			if n := testing.AllocsPerRun(100, func() { ask() }); n >= 1 && !underRace {
				t.Errorf("seed %d, %v: %v allocations", seed, o, n)
			}
		}
		r.close()
	}
	if tested == 0 {
		t.Fatal("no such object")
	}
}
