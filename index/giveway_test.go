package index

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCatchUpGivesWay: who wants to write (a prune, a rebuilt index that is put in place) does not wait until an index that is far behind has
// caught up.
func TestCatchUpGivesWay(t *testing.T) {
	j := fill(t, t.TempDir(), 5*batchEvents, 64)
	x, err := Open(j, true, testOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	flushed := make(chan struct{})
	writes, before := 0, false
	err = x.CatchUp(t.Context(), func(applied uint64) {
		if writes++; writes == 1 {
			go func() {
				if err := x.Flush(); err != nil {
					t.Error(err)
				}
				close(flushed)
			}()
			for x.wanted.Load() == 0 {
				runtime.Gosched()
			}
		}
		select {
		case <-flushed:
			before = before || applied < j.Durable()
		default:
		}
	})
	if err != nil || x.Applied() != j.Durable() || writes < 4 {
		t.Fatalf("applied up to %d of %d in %d writes: %v", x.Applied(), j.Durable(), writes, err)
	}
	<-flushed
	if !before {
		t.Error("who wanted to write waited until the index had caught up")
	}
}
