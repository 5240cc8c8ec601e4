package query

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/index"
)

// Asker answers questions about placement with the same memory again and again: what it returned is gone when it is asked the next
// time. It is for those who ask much and keep nothing; one goroutine at a time may use it.
type Asker struct {
	e     *Engine
	a     asked
	out   []*Answer
	later []int // questions that are still to be answered, by their places
}

// Asker returns a new one.
func (e *Engine) Asker() *Asker { return &Asker{e: e} }

// Lookup answers each question, in order, all as of the same moment. The answers are the caller's, but for the times in them, which they
// share.
func (e *Engine) Lookup(ctx context.Context, questions []Question, w When) ([]*Answer, error) {
	return e.Asker().Lookup(ctx, questions, w)
}

// sortFrom is how many questions about objects that are not kept in memory are answered in the order of their keys.
const sortFrom = 8

// Lookup is Engine.Lookup, but that the answers, and the questions, which they share names with, are the caller's only until the next call.
func (k *Asker) Lookup(ctx context.Context, questions []Question, w When) (_ []*Answer, err error) {
	a := &k.a
	if err := k.e.askIn(ctx, a, questions, w); err != nil {
		return nil, err
	}
	defer func() {
		err = cmp.Or(err, a.view.Close())
		a.opened = index.View{}
	}()
	k.out, k.later = slices.Grow(k.out[:0], len(questions))[:len(questions)], k.later[:0]
	for i := range questions {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if k.out[i], err = a.kept(&questions[i]); err != nil {
			return nil, err
		}
		if k.out[i] == nil {
			k.later = append(k.later, i)
		}
	}
	if len(k.later) >= sortFrom {
		// In the order of the rows, neighbours are found in the same blocks and tables.
		slices.SortFunc(k.later, func(i, j int) int { return inRowOrder(&questions[i].Name, &questions[j].Name) })
	}
	for n, i := range k.later {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if k.out[i], err = a.answer(&questions[i]); err != nil {
			return nil, err
		}
	}
	return k.out, nil
}

// inRowOrder orders names about as the rows are.
func inRowOrder(p, q *Name) int {
	return cmp.Or(strings.Compare(p.Source, q.Source), bytes.Compare(p.Backend, q.Backend), bytes.Compare(p.Tenant, q.Tenant),
		bytes.Compare(p.Key, q.Key))
}

// room is the memory of one answer.
type room struct {
	answer  Answer
	cpuDisk [2]mediumRoom
}

// mediumRoom is what an answer about one medium points to.
type mediumRoom struct {
	evidence EvidenceOut
	id       uint64
	at       [3]Time // time and received of the evidence, time of the doubt
	doubt    Doubt
}

// media is an empty map for so many media. What the room's answer had before is used again.
func (r *room) media(n int) map[string]MediumOut {
	old := r.answer.Media
	if old == nil {
		return make(map[string]MediumOut, n)
	}
	if len(old) > n || n > 2 { // all have cpu and disk, which are written over
		clear(old)
	}
	return old
}

// medium is the memory for the i-th medium.
func (r *room) medium(i int) *mediumRoom {
	if i < len(r.cpuDisk) {
		return &r.cpuDisk[i]
	}
	return &mediumRoom{}
}

// rooms hands out the memory of answers, and then again.
type rooms struct {
	blocks [][]room
	block  int // where the next is
	at     int
	expect int // how many answers are still expected
}

// roomBlock is how many answers are in one piece at most: whoever keeps one of them keeps all.
const roomBlock = 256

// again makes all rooms free.
func (r *rooms) again(expect int) { r.block, r.at, r.expect = 0, 0, expect }

func (r *rooms) one() *room {
	for r.block < len(r.blocks) && r.at == len(r.blocks[r.block]) {
		r.block, r.at = r.block+1, 0
	}
	if r.block == len(r.blocks) {
		r.blocks = append(r.blocks, make([]room, min(max(r.expect, 1), roomBlock)))
	}
	one := &r.blocks[r.block][r.at]
	r.at++
	r.expect--
	return one
}
