package index

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestPruneWithoutRoom: where a baseline, or the tables it is loaded from, cannot be written, the prune says so; the old horizon, or the new
// one, stays, and the same prune is done later.
func TestPruneWithoutRoom(t *testing.T) {
	seed := testkit.Seed(t)
	for _, what := range []string{"baseline.new", "index.new.rows"} {
		var full atomic.Bool
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemoveAll && strings.Contains(op.Path, what) {
				return syscall.ENOSPC
			}
			return nil
		}))
		w := newWorldOn(t, fs, seed, 2)
		w.add(300)
		x := w.openIndex(prunable(fs, 30))
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		x.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return true }
		some := points(t, x)
		before, at := dumpRows(t, x), some[len(some)/2].Offset
		full.Store(true)
		if _, err := x.Prune(t.Context(), at, BaselineOptions{}, nil); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v", what, err)
		}
		sameRows(t, what, dumpRows(t, x), before)
		full.Store(false)
		if what == "baseline.new" {
			if h := w.j.Horizon(); h.Generation != 0 {
				t.Fatalf("the horizon is %+v", h)
			}
			if _, err := x.Prune(t.Context(), at, BaselineOptions{}, nil); err != nil {
				t.Fatal(err)
			}
		} else if err := x.Trim(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if h := w.j.Horizon(); h.Offset != at {
			t.Fatalf("the horizon is %+v, want %d", h, at)
		}
		sameRows(t, "behind the second try", dumpRows(t, x), w.createdRows(30))
	}
}
