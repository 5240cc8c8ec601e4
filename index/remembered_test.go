package index

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestBaseBesideWrites: whatever is written meanwhile, what a view says that its rows begin with is what its row says.
func TestBaseBesideWrites(t *testing.T) {
	j := fill(t, t.TempDir(), 64, 64)
	defer j.Close()
	x, err := Open(j, true, testOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	const writes = 300
	var work sync.WaitGroup
	work.Go(func() {
		for n := uint64(1); n <= writes; n++ {
			row, err := json.Marshal(Base{Generation: n, Cuts: map[uint32]uint64{1: n}})
			if err != nil {
				t.Error(err)
				return
			}
			d := deleter{x: x, batch: x.db.NewBatch()}
			if err := d.batch.Set([]byte{keyBaseline}, row, nil); err != nil {
				t.Error(err)
			}
			if err := d.write(); err != nil {
				t.Error(err)
			}
			if err := d.batch.Close(); err != nil {
				t.Error(err)
			}
			if err := x.db.Set([]byte{keyJournal, 0}, nil, pebble.NoSync); err != nil { // beside it
				t.Error(err)
			}
		}
	})
	for range 2 {
		work.Go(func() {
			for last := uint64(0); last < writes && !t.Failed(); {
				if err := x.fresh.drop(); err != nil { // the next view is of a new state
					t.Error(err)
				}
				v, err := x.View()
				if err != nil {
					t.Error(err)
					return
				}
				want, err := readBaseline(v.snap)
				if got := v.Base(); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("the view says %+v, its row %+v, %v", got, want, err)
				}
				if want.Generation < last {
					t.Errorf("generation %d behind %d", want.Generation, last)
				}
				last = want.Generation
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if b, known := x.fresh.found.bases.get(struct{}{}); !known || b.Generation != writes {
		t.Errorf("in the end %+v is known: %v", b, known)
	}
}

// TestRememberedBackends: the first event of a backend is seen by the views behind it, and not by one from before it that asks again.
func TestRememberedBackends(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"))
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(t, x, uint64(len(w.records)))
	expect := func(v *View, want int) {
		t.Helper()
		backends, err := v.Backends(1, []byte("default"))
		if err != nil || len(backends) != want {
			t.Fatalf("%d backends, %v, want %d", len(backends), err, want)
		}
	}
	old := view(t, x)
	defer old.Close()
	expect(old, 1)
	w.script(w.send(event.Fields{Type: event.Stored, ID: 9, Tenant: "default", Backend: "another", Medium: "cpu", Key: "a"}))
	upTo(t, x, uint64(len(w.records)))
	v := view(t, x)
	defer v.Close()
	expect(v, 2)
	expect(old, 1)
	expect(v, 2)
}
