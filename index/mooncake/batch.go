package mooncake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// probeKey is asked for alone when a batch was refused: if the master refuses that too, the fault is not a key's. It need not exist.
const probeKey = "kvjournal-probe"

// Answers are what BatchQuery found out.
type Answers struct {
	Of   []Answer      // in the order of the keys
	Took time.Duration // all calls together, each from sending to the last byte
}

// BatchQuery asks where keys of the tenant `default` are readable, and returns the answers in the order of keys. It makes as
// many calls as BatchKeys and BatchBytes require, each with its pause, so they are not one moment.
//
// Keys that cannot be asked are answered Unaskable. A batch that the master refuses, or whose reply lacks a key or has another,
// is halved until the keys that do it are found; these are answered Refused. Any other error means that there are no answers at all. The keys
// must not change meanwhile.
func (c *Client) BatchQuery(ctx context.Context, keys [][]byte) (Answers, error) {
	answers := make([]Answer, len(keys))
	q := &batch{keys: keys, answers: answers}
	var took time.Duration
	timed := func(t Timing, err error) error {
		took += t.Took
		return err
	}
	q.ask = func(part []int) error { return timed(c.askFor(ctx, q, part)) }
	q.probe = func() error { return timed(c.askProbe(ctx)) }
	for next := 0; next < len(keys); {
		next = q.fill(next, c.options.BatchKeys, c.options.BatchBytes)
		if len(q.part) > 0 {
			if err := q.isolate(c.options.IsolationCalls); err != nil {
				return Answers{Took: took}, err
			}
		}
		for _, d := range q.doubles {
			answers[d.at] = answers[d.of]
		}
	}
	return Answers{Of: answers, Took: took}, nil
}

// batch is a BatchQuery under way. Its decisions need no master: ask and probe are the calls.
type batch struct {
	keys    [][]byte
	answers []Answer
	part    []int // indexes of the keys that go into one call, all different
	doubles []double
	alive   bool // the master has answered a call

	ask   func(part []int) error // sets the answers of part, or returns an error
	probe func() error
}

// double is a key that stands in a batch twice: the reply holds it once.
type double struct{ at, of int }

// fill makes the next part of the keys from start on and returns where the one after it begins.
func (q *batch) fill(start, maxKeys, maxBytes int) int {
	q.part, q.doubles = q.part[:0], q.doubles[:0]
	first := make(map[string]int, min(maxKeys, len(q.keys)-start))
	size := 0
	for i := start; i < len(q.keys); i++ {
		key := q.keys[i]
		if why := WhyUnaskable(key); why != "" {
			q.answers[i] = Answer{State: Unaskable, Reason: why}
			continue
		}
		if of, ok := first[string(key)]; ok {
			q.doubles = append(q.doubles, double{i, of})
			continue
		}
		n := escapedLen(key) + 1
		if len(q.part) > 0 && (len(q.part) >= maxKeys || size+n > maxBytes) {
			return i
		}
		first[string(key)] = i
		q.part = append(q.part, i)
		size += n
	}
	return len(q.keys)
}

// isolate gets the answers of part, halving what is refused, with at most extra calls beyond the first.
func (q *batch) isolate(extra int) error {
	todo := [][]int{q.part}
	var last error
	for calls := 0; len(todo) > 0; calls++ {
		part := todo[len(todo)-1]
		if calls > extra {
			for _, part := range todo {
				q.settle(part, Skipped, fmt.Sprintf("not found out within %d more calls after: %v", extra, last))
			}
			return nil
		}
		todo = todo[:len(todo)-1]
		err := q.ask(part)
		if err == nil {
			q.alive = true
			continue
		}
		var odd *BrokenReplyError
		if !errors.As(err, &odd) || !odd.refused {
			return err
		}
		last = err
		if !q.alive {
			if err := q.probe(); err != nil {
				return err
			}
			q.alive = true
		}
		if len(part) == 1 {
			q.settle(part, Refused, err.Error())
			continue
		}
		todo = append(todo, part[len(part)/2:], part[:len(part)/2])
	}
	return nil
}

// settle gives the keys of part one answer.
func (q *batch) settle(part []int, s State, why string) {
	for _, i := range part {
		q.answers[i] = Answer{State: s, Reason: why}
	}
}

// askFor makes one call for part of q's keys.
func (c *Client) askFor(ctx context.Context, q *batch, part []int) (Timing, error) {
	size := len("keys=")
	asked := make(map[string]int, len(part)) // to the index, -1 once it was answered
	for _, i := range part {
		size += escapedLen(q.keys[i]) + 1
		asked[string(q.keys[i])] = i
	}
	query := append(make([]byte, 0, size), "keys="...)
	for n, i := range part {
		if n > 0 {
			query = append(query, ',')
		}
		query = appendEscaped(query, q.keys[i])
	}
	return c.call(ctx, KindBatch, string(query), len(part), func(r *reply) error {
		return readAnswers(r, asked, func(i int, a Answer) {
			a.Reason = c.clean(a.Reason)
			q.answers[i] = a
		})
	})
}

// askProbe makes a call that a healthy master answers.
func (c *Client) askProbe(ctx context.Context) (Timing, error) {
	return c.call(ctx, KindBatch, "keys="+probeKey, 0, func(r *reply) error {
		err := readAnswers(r, map[string]int{probeKey: 0}, func(int, Answer) {})
		var odd *BrokenReplyError
		if errors.As(err, &odd) && odd.refused {
			odd.refused, odd.Next = false, "" // no key's fault: a failure of the master, which backs off
		}
		return err
	})
}

// readAnswers reads a reply and calls f for each asked key. Each must come once, and no other: else the master has understood
// something else than what was asked, and none of it is worth anything.
func readAnswers(r *reply, asked map[string]int, f func(int, Answer)) error {
	came := 0
	var odd *BrokenReplyError // decided at the end: a cut reply, or a standby's, is something else
	body, err := r.whole()
	if err != nil {
		return err
	}
	err = decodeBatch(body, func(key string, e *entry) error {
		i, ok := asked[key]
		switch {
		case odd != nil:
		case !ok:
			odd = broken("it has a key that was not asked for, %.40q", key)
		case i < 0:
			odd = broken("it has the key %.40q twice", key)
		default:
			asked[key] = -1
			came++
			f(i, e.answer())
		}
		return nil
	})
	if err != nil {
		return err
	}
	if odd == nil && came < len(asked) {
		odd = broken("%d of the %d keys did not come back", len(asked)-came, len(asked))
	}
	if odd != nil {
		odd.refused = true
		odd.Next = "one of the keys may be the cause"
		return odd
	}
	return nil
}
