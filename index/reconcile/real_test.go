package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// All of it for real, over sockets: a simulated master with its admin API, the client, a recorder, an index, and Run. A loss on the wire is
// resolved within 5 s, with traffic, and then without.
func TestReal(t *testing.T) {
	sim, err := mooncaketest.NewSim(mooncaketest.SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	server, err := mooncaketest.NewAdmin(sim, mooncaketest.AdminOptions{}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	fs := vfs.NewMem()
	j, err := journal.Open(worldDir, nil, journal.Options{FS: fs, NoSealer: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x, err := index.Open(j, true, index.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s, err := j.EnsureSource("s", []string{sim.Endpoint()}, []string{server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(j, []journal.Source{s}, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mooncake.New(mooncake.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	open := func() (*index.Index, error) { return x, nil }
	r := New(Options{
		Choose: func(context.Context) (Master, error) { return client, nil },
		Log:    &SourceLog{Recorder: rec, Source: s.ID, Index: open},
		Index:  &SourceIndex{Source: s.ID, Index: open, Judge: judgeFor(j)},
		Ended:  func(r *Report, err error) { t.Logf("%+v, %v", r, err) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for name, run := range map[string]func(context.Context) error{"recorder": rec.Run, "index": x.Follow, "runner": r.Run} {
		work.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}

	do := func(changes ...mooncaketest.Change) {
		if err := sim.Do(changes...); err != nil {
			t.Error(err)
		}
	}
	w := &world{t: t, j: j, x: x, source: s.ID, backend: sim.Publisher().BackendID(), truth: map[name]word{}}
	var names []name
	for i := range 3000 {
		k := fmt.Sprintf("key-%d", i)
		names = append(names, name{event.DefaultTenant, k})
		do(stored(k, []string{cpu, disk}[i%2]))
	}
	traffic := func(stop <-chan struct{}) {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				do(stored(fmt.Sprintf("busy-%d", i%10), cpu))
			}
		}
	}
	all := func(what string) {
		t.Helper()
		var sure int
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
			sure = 0
			for _, media := range w.answers(names) {
				for _, m := range media {
					if m.Sure {
						sure++
					}
				}
			}
			if sure == 2*len(names) {
				t.Logf("%s: all confirmed after %v", what, time.Since(begun))
				return
			}
		}
		t.Fatalf("%s: %d of %d confirmed", what, sure, 2*len(names))
	}
	lose := func(from int) {
		if err := sim.Publisher().WaitIdle(ctx); err != nil {
			t.Fatal(err)
		}
		sim.Publisher().Lose(true)
		for i := from; i < from+300; i++ {
			do(removed(names[i].key, cpu), removed(names[i].key, disk))
		}
		if err := sim.Publisher().WaitIdle(ctx); err != nil {
			t.Fatal(err)
		}
		sim.Publisher().Lose(false)
		for range 3 { // a message each
			do(stored("shows", cpu))
			if err := sim.Publisher().WaitIdle(ctx); err != nil {
				t.Fatal(err)
			}
		}
		// Before the index knows of the loss, all is confirmed as it was.
		sent := sim.Publisher().Stats()
		testkit.Eventually(t, "the loss is indexed", func() bool {
			last, err := j.LastBatch(s.ID, math.MaxUint64)
			if err != nil || last.Seq < sent.PublishedBatches+sent.DroppedEvents {
				return false
			}
			v, err := x.View()
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			return v.Applied() >= last.Offset
		})
	}
	check := func(what string) {
		t.Helper()
		clear(w.truth)
		sim.View(func(s *mooncaketest.Store, _ *mooncaketest.Publisher) {
			for o := range s.Objects() {
				w.truth[name{o.Tenant, o.Key}] = bit(o.CPU, onCPU) | bit(o.Disk, onDisk)
			}
		})
		w.check(what, names)
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() { traffic(stop) })
	all("late join")
	lose(0)
	all("with traffic")
	close(stop)
	busy.Wait()
	check("with traffic")
	lose(1000)
	all("without traffic")
	check("without traffic")
}
