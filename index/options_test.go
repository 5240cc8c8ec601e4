package index

import (
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestOptionsOfBefore: a directory at rest, whose OPTIONS file an earlier program wrote, is sound; one with other options is told of.
func TestOptionsOfBefore(t *testing.T) {
	for _, c := range []struct {
		l0    int
		dense float64
		sound bool
	}{{l0Begin, -1, true}, {4, 0.1, true}, {5, 0.1, false}, {4, 0.2, false}} {
		fs := vfs.NewMem()
		w := newWorldOn(t, fs, testkit.Seed(t), 1)
		w.add(30)
		o := testOptions(fs).withDefaults()
		x := w.openIndex(o)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		var ready atomic.Bool
		p := o.writable(fs, &ready)
		p.L0CompactionThreshold, p.Experimental.TombstoneDenseCompactionThreshold = c.l0, c.dense
		db, err := datadir.OpenPebble(fs.PathJoin(testDir, folder), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var found []journal.Finding
		if _, err := Check(t.Context(), testDir, nil, "scratch", o, func(f journal.Finding) { found = append(found, f) }, nil); err != nil {
			t.Fatal(err)
		}
		if (len(found) == 0) != c.sound {
			t.Errorf("L0 of %d, deletions of %v: %+v", c.l0, c.dense, found)
		}
	}
}
