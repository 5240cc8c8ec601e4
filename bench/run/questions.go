package run

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

const (
	hotObjects = 1000
	hotMoments = 64
)

// asker makes up questions: the same for all contenders.
type asker struct {
	rng         *rand.Rand
	first, last int64
}

func newAsker(seed uint64, first, last int64) *asker {
	return &asker{rand.New(rand.NewPCG(seed, 3)), first, last}
}

func (a *asker) moment() int64 { return a.first + a.rng.Int64N(a.last-a.first+1) }

// hits asks for objects that are there.
func (a *asker) hits(n int, live []mooncaketest.Object) []Question {
	out := make([]Question, 0, n)
	for range n {
		o := &live[a.rng.IntN(len(live))]
		out = append(out, Question{Object: contender.Object{Tenant: o.Tenant, Key: o.Key}, Want: contender.MediaOf(o)})
	}
	return out
}

// misses asks for objects that never were.
func (a *asker) misses(n int) []Question {
	out := make([]Question, n)
	var raw [32]byte
	for i := range out {
		for j := range raw {
			raw[j] = byte(a.rng.Uint32())
		}
		out[i].Object = contender.Object{Tenant: event.DefaultTenant, Key: hex.EncodeToString(raw[:]) + "_0_k"}
	}
	return out
}

// hot asks for a few objects at a few moments, again and again.
func (a *asker) hot(n int, live []mooncaketest.Object) []Question {
	few := a.hits(hotObjects, live)
	moments := make([]int64, hotMoments)
	for i := range moments {
		moments[i] = a.moment()
	}
	out := make([]Question, n)
	for i := range out {
		out[i] = few[a.rng.IntN(len(few))]
		out[i].MS = moments[a.rng.IntN(len(moments))]
	}
	return out
}

// uniform asks for the objects of any events at any moments.
func (a *asker) uniform(n int, seen []contender.Object) []Question {
	out := make([]Question, n)
	for i := range out {
		out[i] = Question{Object: seen[a.rng.IntN(len(seen))], MS: a.moment()}
	}
	return out
}

// seen are the objects of some events of a set, evenly over it.
func (a *asker) seen(set *message.Set, n int) []contender.Object {
	all := set.BySeq()
	out := make([]contender.Object, 0, n)
	for len(out) < n {
		if o, ok := a.someObject(all[a.rng.IntN(len(all))]); ok {
			out = append(out, o)
		}
	}
	return out
}

// someObject is the object of one of a message's events; false where that one is a clear.
func (a *asker) someObject(m *message.Message) (contender.Object, bool) {
	var b event.Batch
	b.Scan(m.Frames)
	e := &b.Events[a.rng.IntN(len(b.Events))]
	return contender.Object{Tenant: string(e.Tenant), Key: string(e.Key)}, e.Type != event.Cleared
}
