package run

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/measure"
	"github.com/kvjournal/kvjournal/bench/message"
)

// journal is a contender's turn as a journal.
func (h *heat) journal() error {
	if err := h.acks(); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	dir, err := h.fresh("append")
	if err != nil {
		return err
	}
	j, err := h.kind.Open(dir)
	if err != nil {
		return err
	}
	if err := h.appendAll(j, "append", j.Sync); err != nil {
		return errors.Join(fmt.Errorf("append: %w", err), j.Close())
	}
	if err := h.afterCrash(dir); err != nil {
		return errors.Join(fmt.Errorf("open after a crash: %w", err), j.Close())
	}
	settled, err := measure.Of(j.Settle)
	h.needed("disk", j)
	if err = errors.Join(err, j.Close()); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if err := h.disk("disk", dir); err != nil {
		return err
	}
	h.add("disk", "settle", "s", settled.Wall.Seconds())
	if j, err = h.kind.Open(dir); err != nil {
		return err
	}
	return errors.Join(h.readAll(j), h.gets(j), j.Close())
}

// appendAll appends the whole set; end is what makes it durable, and whatever else is waited for.
func (h *heat) appendAll(j contender.Journal, workload string, end func() error) error {
	h.o.quiet()
	cost, err := measure.Of(func() error {
		if err := appendGroups(j, h.set.Groups); err != nil {
			return err
		}
		return end()
	})
	if err != nil {
		return err
	}
	h.add(workload, "rate", "events/s", float64(h.set.Events)/cost.Wall.Seconds())
	h.add(workload, "processor", "us/event", cost.CPU.Seconds()*1e6/float64(h.set.Events))
	return nil
}

func appendGroups(j contender.Journal, groups [][]message.Message) error {
	for _, g := range groups {
		if err := j.Append(g); err != nil {
			return err
		}
	}
	return nil
}

// acks waits for each group.
func (h *heat) acks() error {
	dir, err := h.fresh("ack")
	if err != nil {
		return err
	}
	j, err := h.kind.Open(dir)
	if err != nil {
		return err
	}
	h.o.quiet()
	took, err := measure.Each(min(h.o.Acks, len(h.set.Groups)), func(i int) error {
		return errors.Join(j.Append(h.set.Groups[i]), j.Sync())
	})
	if err = errors.Join(err, j.Close()); err != nil {
		return err
	}
	h.add("ack", "p50", "us", measure.Percentile(took, 50))
	h.add("ack", "p99", "us", measure.Percentile(took, 99))
	return nil
}

// afterCrash opens a copy of a directory whose owner has not closed it. All was acknowledged, so all must be there.
func (h *heat) afterCrash(dir string) error {
	to, err := h.fresh("crashed")
	if err != nil {
		return err
	}
	if err := measure.CopyCrashed(dir, to); err != nil {
		return err
	}
	h.o.quiet()
	begun := time.Now()
	j, err := h.kind.Open(to)
	if err != nil {
		return err
	}
	last, err := j.Last()
	h.add("open", "after_crash", "ms", time.Since(begun).Seconds()*1e3)
	if err == nil && last != uint64(h.set.Messages) {
		err = fmt.Errorf("the newest seq is %d of %d", last, h.set.Messages)
	}
	return errors.Join(err, j.Close())
}

func (h *heat) disk(workload, dir string) error {
	n, err := measure.DataBytes(dir)
	if err != nil {
		return err
	}
	h.add(workload, "size", "B/event", float64(n)/float64(h.set.Events))
	return nil
}

// needed adds what a contender needs of its files, where it can tell.
func (h *heat) needed(workload string, j contender.Journal) {
	if s, ok := j.(contender.Sized); ok {
		h.add(workload, "needed", "B/event", float64(s.Needed())/float64(h.set.Events))
	}
}

func (h *heat) readAll(j contender.Journal) error {
	want := h.set.BySeq()
	read := 0
	h.o.quiet()
	cost, err := measure.Of(func() error {
		return j.ReadAll(func(seq uint64, payload []byte) error {
			if !h.kind.KeepsPayload {
				read++
				return nil
			}
			if seq != uint64(read)+1 || seq > uint64(len(want)) || !bytes.Equal(payload, want[seq-1].Payload()) {
				return fmt.Errorf("seq %d came back other than it went in, behind %d messages", seq, read)
			}
			read++
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	all := h.set.Messages
	if !h.kind.KeepsPayload {
		all = h.set.Events
	}
	if read != all {
		return fmt.Errorf("read: %d of %d came back", read, all)
	}
	h.add("read", "rate", "events/s", float64(h.set.Events)/cost.Wall.Seconds())
	return nil
}

func (h *heat) gets(j contender.Journal) error {
	want := h.set.BySeq()
	rng := rand.New(rand.NewPCG(h.o.Seed, 2))
	got := func(int) error {
		m := want[rng.IntN(len(want))]
		return sameAs(m, j)
	}
	h.o.quiet()
	took, err := measure.Each(h.o.Gets, got)
	if errors.Is(err, contender.ErrNotHere) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	h.add("get", "p50", "us", measure.Percentile(took, 50))
	h.add("get", "p99", "us", measure.Percentile(took, 99))
	return nil
}

func sameAs(m *message.Message, j contender.Journal) error {
	b, err := j.Get(m.Seq)
	if err == nil && !bytes.Equal(b, m.Payload()) {
		err = fmt.Errorf("seq %d came back other than it went in", m.Seq)
	}
	return err
}
