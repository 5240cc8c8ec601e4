package index

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestSettleOfOneJustOpened: an index that is opened with many tables on top of each other, few beside the rest, is compacted although
// nothing more is written.
func TestSettleOfOneJustOpened(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(4000)
	fs := vfs.NewMem()
	x, err := Create(t.Context(), w.j, testOptions(fs), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Settle(t.Context()), x.Close()); err != nil {
		t.Fatal(err)
	}
	o := testOptions(fs)
	o.Passing = true // leaves tables as they are
	if x, err = Open(w.j, false, o); err != nil {
		t.Fatal(err)
	}
	for range settledSublevels + 2 {
		w.add(3)
		if err := x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = Open(w.j, false, testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	m := x.db.Metrics()
	if total := m.Total(); m.Levels[0].Sublevels <= settledSublevels || m.Levels[0].TablesSize*mostlyFresh >= total.TablesSize {
		t.Fatalf("%d levels of L0 with %d of %d bytes: nothing is tested", m.Levels[0].Sublevels, m.Levels[0].TablesSize, total.TablesSize)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := x.Settle(ctx); err != nil {
		t.Errorf("Settle: %v", err)
	}
	if n := x.db.Metrics().Levels[0].Sublevels; n > settledSublevels {
		t.Errorf("%d levels of L0 are left", n)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}
