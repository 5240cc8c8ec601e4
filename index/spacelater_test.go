package index

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// TestSpaceLater: a prune that does not wait for compactions is a prune all the same, and says that space is still to come.
func TestSpaceLater(t *testing.T) {
	fs := vfs.NewMem()
	w := newWorldOn(t, fs, testkit.Seed(t), 2)
	w.add(300)
	o := prunable(fs, 30)
	o.ReclaimPatience = 1 // ns: over before it begins
	x := w.openIndex(o)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	x.anew = func(uint64, uint64, uint64, uint64, uint64) bool { return false }
	some := points(t, x)
	at := some[len(some)/2].Offset
	h, err := x.Prune(t.Context(), at, BaselineOptions{}, nil)
	if !errors.Is(err, ErrSpaceLater) || h.Offset != at {
		t.Fatalf("%+v, %v", h, err)
	}
	sameRows(t, "while space is to come", dumpRows(t, x), w.createdRows(30))
}

func TestPatiently(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if err := patiently(t.Context(), time.Microsecond, waits); !errors.Is(err, ErrSpaceLater) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, patience := range []time.Duration{0, time.Hour} {
		if err := patiently(ended, patience, waits); !errors.Is(err, context.Canceled) {
			t.Error(patience, err)
		}
		if err := patiently(t.Context(), patience, func(context.Context) error { return nil }); err != nil {
			t.Error(patience, err)
		}
	}
}
