package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/query"
)

// slowDisk is the disk of a journal whose write-ahead log takes as long to sync as the test wants.
type slowDisk struct {
	shut atomic.Bool
	step chan struct{} // lets one sync go on
	free chan struct{} // closed: lets all go on
}

func (d *slowDisk) MaybeError(op errorfs.Op) error {
	isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	if isSync && strings.HasSuffix(op.Path, ".log") && d.shut.Load() {
		select {
		case <-d.step:
		case <-d.free:
		}
	}
	return nil
}

func (d *slowDisk) String() string { return "a slow disk" }

// The disk stops, the recorder's own buffer is full, and the publisher runs over its mark. The recorder is the real one, in
// this process, because the disk is.
func causeRecorderSlow(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 3).bind("")
	dir := dataDir(t)
	disk := &slowDisk{step: make(chan struct{}), free: make(chan struct{})}
	fs := errorfs.Wrap(vfs.Default, disk)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := datadir.Prepare(fs, dir); err != nil {
		t.Fatal(err)
	}
	lock, err := datadir.Claim(ctx, fs, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(dir, lock, journal.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	source, err := j.EnsureSource("default", []string{w.endpoint}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recorder.New(j, []journal.Source{source}, recorder.Options{
		BufferBytes: 1 << 20, Subscribe: subscribe.Options{ReceiveHWM: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	end := func() error {
		cancel()
		return <-ended
	}
	running := true
	defer func() {
		if running { // the test has failed
			disk.shut.Store(false)
			close(disk.free)
			end()
			j.Close()
		}
	}()

	recorded := func(messages uint64) {
		t.Helper()
		eventually(t, "all is durable", func() bool { return j.Durables().Totals.Messages == messages })
	}
	w.subscribed(true)
	eventually(t, "the connection is proven", func() bool { return !r.Status()[0].WindowOpen })
	w.send(1)
	recorded(1)
	disk.shut.Store(true)
	// The writer goes on for two commits; then nothing leaves the buffer, and one that is full stays full.
	for stay := 0; stay < 10; stay++ {
		w.push(nothing)
		eventually(t, "it is received", func() bool { return r.Status()[0].Messages == w.seq })
		if bytes, _ := r.Buffered(); bytes == 0 {
			stay = -1
		}
	}
	w.salt = fat
	for !r.Status()[0].Stalled {
		w.push(nothing)
	}
	w.drop(12)
	// The disk goes on by steps, so that the buffer stays full until the message that shows the loss is on its way.
	w.push(func() {
		select {
		case disk.step <- struct{}{}:
		default:
		}
	})
	disk.shut.Store(false)
	close(disk.free)
	lost := uint64(0)
	for _, h := range w.dropped {
		lost += h.last - h.first + 1
	}
	for range 2 {
		w.push(nothing)
	}
	recorded(w.seq - lost)
	running = false
	if err := end(); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	return dir, w.between(continuity.RecorderSlow)
}
