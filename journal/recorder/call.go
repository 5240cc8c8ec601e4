package recorder

import (
	"context"
	"errors"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/subscribe"
)

// ErrStopped: the recorder ended before it could do what was asked.
var ErrStopped = errors.New("the recorder has stopped")

// Do has the writer call f between two records, with the source's feed and the group that is being filled, and returns when
// what f added is durable. Only so may anyone else but the sockets add to the journal while a recorder runs.
func (r *Recorder) Do(ctx context.Context, source uint32, f func(*Feed, *journal.Group) error) error {
	i := r.indexOf(source)
	if i < 0 {
		return errors.New("this source is not being recorded")
	}
	type outcome struct {
		last uint64 // what must be durable
		err  error
	}
	if r.Paused() != nil {
		return ErrPaused
	}
	done := make(chan outcome, 1)
	s := r.now.Load()
	s.buf.Push(subscribe.Item{Call: func() {
		err := f(r.feeds[i], r.group)
		last := r.group.Last()
		r.after = append(r.after, func(failed error) { done <- outcome{last, errors.Join(err, failed)} })
	}})
	select {
	case o := <-done:
		if o.err != nil || o.last <= r.j.Durable() {
			return o.err
		}
		_, err := r.j.WaitDurable(ctx, o.last-1)
		return err
	case <-s.done:
		return s.why
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Recorder) indexOf(source uint32) int {
	for i, id := range r.ids {
		if id == source {
			return i
		}
	}
	return -1
}

// committed tells those whose calls are in the group what became of it.
func (r *Recorder) committed(err error) {
	for _, f := range r.after {
		f(err)
	}
	r.after = r.after[:0]
}
