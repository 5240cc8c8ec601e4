package index

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSecondCompaction: where many tables of L0 lie on top of each other a second compaction may run, but not while a receiver is behind.
func TestSecondCompaction(t *testing.T) {
	x := stacked(t, l0Deep+1)
	if n := x.Database().Levels[0].Sublevels; n < l0Deep {
		t.Fatalf("only %d sublevels", n)
	}
	if x.opts.deep.Load() {
		t.Error("deep before it was looked at")
	}
	x.writing.Lock()
	err := x.startFlush()
	x.writing.Unlock()
	if err != nil || !x.opts.deep.Load() {
		t.Errorf("not deep: %v", err)
	}
	x.opts.Pause = func(context.Context) {}
	if x.giveWay(t.Context()); !x.opts.deep.Load() {
		t.Error("a receiver that is not behind ends it")
	}
	x.opts.Pause = func(context.Context) {
		for begun := time.Now(); time.Since(begun) < 2*time.Millisecond; {
		}
	}
	if x.giveWay(t.Context()); x.opts.deep.Load() {
		t.Error("it goes on while a receiver is behind")
	}
}

// TestCompactionSlots: how many compactions may run, by whether the database is open, and how deep its L0 is.
func TestCompactionSlots(t *testing.T) {
	o := Options{FS: vfs.NewMem()}.withDefaults()
	for _, c := range []struct {
		ready, deep  bool
		lower, upper int
	}{{false, false, 0, 1}, {false, true, 0, 1}, {true, false, 1, 2}, {true, true, 2, 2}} {
		var ready atomic.Bool
		ready.Store(c.ready)
		o.deep.Store(c.deep)
		if lower, upper := o.writable(o.FS, &ready).CompactionConcurrencyRange(); lower != c.lower || upper != c.upper {
			t.Errorf("%+v: %d to %d", c, lower, upper)
		}
	}
}
