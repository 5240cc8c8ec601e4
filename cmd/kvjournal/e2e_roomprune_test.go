package main

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/service"
)

// TestPrunesInAPause: a recorder that pauses for want of room prunes what is beyond its retention meanwhile, and goes on when that made room.
func TestPrunesInAPause(t *testing.T) {
	t.Parallel()
	dir, objects := agedDir(t, "aged")
	w := newWire(t, 1000).bind("")
	disk := faultfs.NewDisk(vfs.Default, gib/2)
	ctx, cancel := context.WithCancel(t.Context())
	before := stats(t, dir)
	s, err := service.Record(ctx, service.Config{
		Dir: dir, Sources: []service.SourceConfig{{Name: "default", Endpoints: []string{w.endpoint}}}, FS: disk, MinFree: gib,
		Recorder:  recorder.Options{Room: recorder.Room{Every: 2 * time.Millisecond}},
		Retention: service.Retention{KeepBytes: before.Index.Bytes, Every: 5 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	eventually(t, "it pauses", func() bool { st := stats(t, dir); return st.Recorder != nil && st.Recorder.Paused != nil })
	eventually(t, "it prunes", func() bool { return stats(t, dir).Horizon != nil })
	if st := stats(t, dir); st.Recorder.Paused == nil {
		t.Error("it does not pause any more")
	}
	disk.SetFree(2 * gib) // what the prune gave back
	w.subscribed(true)
	eventually(t, "the connection is proven", func() bool { return connections(t, dir) > 0 })
	w.send(5)
	eventually(t, "it records", func() bool { return stats(t, dir).Events >= before.Events+5 })
	lookupLines(t, dir, "", objects)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ended <- nil
	if r := kvjournal(t, "verify", "--dir", dir); r.code != 0 {
		t.Errorf("exit %d: %s %s", r.code, r.stdout, r.stderr)
	}
}
