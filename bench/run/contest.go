package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/bench/report"
)

// contest is one run of all rounds.
type contest struct {
	o       Options
	samples report.Samples
	answers map[string]uint64 // what the first contender answered, by workload; the others must agree
}

// heat is one contender's turn at one set in one round.
type heat struct {
	*contest
	kind contender.Kind
	set  *message.Set
	dir  string // of its own, empty
}

// Contest runs all rounds. It stops between two turns when ctx ends, and returns what was measured by then beside ctx's error.
func Contest(ctx context.Context, o Options) ([]report.Result, error) {
	c := &contest{o: o, answers: map[string]uint64{}}
	sets, err := o.sets()
	if err != nil {
		return nil, err
	}
	for round := range o.Rounds {
		for _, set := range sets {
			for _, kind := range inTurn(contender.All(), round) {
				if !o.wants(o.Contenders, kind.Name) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return c.samples.Results(), err
				}
				o.say("round %d of %d: %s, shape %s", round+1, o.Rounds, kind.Name, set.Shape)
				if err := c.turn(kind, set); err != nil {
					return c.samples.Results(), fmt.Errorf("%s, shape %s: %w", kind.Name, set.Shape, err)
				}
			}
		}
	}
	return c.samples.Results(), nil
}

// inTurn lets every round begin with another contender, so that what one leaves behind (dirty pages, a busy disk) hits all alike.
func inTurn[T any](all []T, round int) []T {
	k := round % len(all)
	return append(append([]T(nil), all[k:]...), all[:k]...)
}

func (c *contest) turn(kind contender.Kind, set *message.Set) error {
	for _, w := range []struct {
		name string
		has  bool
		run  func(*heat) error
	}{
		{Workloads[0], true, (*heat).journal},
		{Workloads[1], kind.OpenPlaces != nil, (*heat).places},
	} {
		if !w.has || !c.o.wants(c.o.Workloads, w.name) {
			continue
		}
		dir, err := os.MkdirTemp(c.o.Dir, "kvjournal-bench-")
		if err != nil {
			return err
		}
		err = w.run(&heat{contest: c, kind: kind, set: set, dir: dir})
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fresh makes a directory within the heat's.
func (h *heat) fresh(name string) (string, error) {
	dir := filepath.Join(h.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// quiet lets nothing of what was done before run into what is measured next: memory is collected, dirty pages are written.
func (o *Options) quiet() {
	if o.Unquiet {
		return
	}
	debug.FreeOSMemory()
	unix.Sync()
}

func (h *heat) add(workload, metric, unit string, value float64) {
	h.samples.Add(h.kind.Name, h.kind.Durability, workload+"/"+h.set.Shape, metric, unit, value)
}

// agree compares what was answered with what another contender answered to the same.
func (h *heat) agree(workload string, sum uint64) error {
	name := workload + "/" + h.set.Shape
	other, known := h.answers[name]
	if !known {
		h.answers[name] = sum
		return nil
	}
	if other != sum {
		return fmt.Errorf("%s: its answers are not those of another contender, or of the round before", name)
	}
	return nil
}
