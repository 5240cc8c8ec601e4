package datadir

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// uncompacted is a database with as many tables in L0 as a compaction waits for.
func uncompacted(t *testing.T) vfs.FS {
	t.Helper()
	mem := vfs.NewMem()
	db, err := OpenPebble("db", &pebble.Options{FS: mem, DisableAutomaticCompactions: true, Logger: &PebbleLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		err := errors.Join(db.Set([]byte{byte(i)}, nil, nil), db.Set([]byte{255}, nil, nil), db.Flush())
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return mem
}

// early is what an Open does before it could let compactions begin: all but writing down its options.
func early(op errorfs.Op) bool {
	return !strings.Contains(op.Path, "OPTIONS") && !strings.HasSuffix(op.Path, ".dbtmp")
}

// TestFailedOpenCompactsNothing: whatever operation of an Open fails late, no compaction begins and nothing stays behind; where none fails, what
// waited is compacted.
func TestFailedOpenCompactsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	failed := 0
	for i, done := int64(0), false; !done; i++ {
		compacted := make(chan struct{}, 100)
		fault := &faultfs.Nth{N: i, Err: syscall.EIO, Skip: early}
		db, err := OpenPebble("db", &pebble.Options{FS: errorfs.Wrap(uncompacted(t), fault), Logger: &PebbleLogger{}, EventListener: &pebble.EventListener{
			CompactionBegin: func(pebble.CompactionInfo) { compacted <- struct{}{} },
		}})
		if err != nil {
			if failed++; len(compacted) > 0 {
				t.Fatalf("operation %d failed, and a compaction began", i)
			}
			continue
		}
		<-compacted
		_, fails := fault.Failed()
		done = !fails
		if err := db.Close(); err != nil && done {
			t.Fatal(err)
		}
	}
	if failed < 4 {
		t.Errorf("%d operations failed", failed)
	}
	testkit.Eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before }) // Close leaves the last steps of some to themselves
}

// fakeDB allows and wants so many compactions.
type fakeDB struct {
	mu            sync.Mutex
	allowed, wait int
	granted       chan pebble.CompactionGrantHandle
}

func (d *fakeDB) GetAllowedWithoutPermission() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.allowed
}

func (d *fakeDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wait > 0, pebble.WaitingCompaction{}
}

func (d *fakeDB) Schedule(h pebble.CompactionGrantHandle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait--
	d.granted <- h
	return true
}

// TestSchedulerGrants: none before it is open, then as many as are allowed, the next when one ends, more when more are allowed, and none once
// it is closed.
func TestSchedulerGrants(t *testing.T) {
	d := &fakeDB{allowed: 2, wait: 4, granted: make(chan pebble.CompactionGrantHandle, 10)}
	s := newScheduler()
	s.Register(2, d)
	if ok, _ := s.TrySchedule(); ok {
		t.Fatal("granted before it is open")
	}
	s.opened()
	first := <-d.granted
	<-d.granted
	if ok, _ := s.TrySchedule(); ok {
		t.Fatal("three are granted, two are allowed")
	}
	first.Done()
	<-d.granted
	d.mu.Lock()
	d.allowed = 3
	d.mu.Unlock()
	s.UpdateGetAllowedWithoutPermission()
	<-d.granted
	if ok, _ := s.TrySchedule(); ok || len(d.granted) > 0 {
		t.Fatal("four are granted, three are allowed")
	}
	first.Done()
	s.Unregister()
	if ok, _ := s.TrySchedule(); ok {
		t.Fatal("granted though it is closed")
	}
	newScheduler().Unregister() // of an Open that failed
}
