package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/service"
)

const gib = 1 << 30

// onDisk records a publisher in this process, on a disk whose room the test sets.
func onDisk(t *testing.T, w *wire, minFree uint64) (dir string, disk *faultfs.Disk, s *service.Service, stop func() error) {
	t.Helper()
	dir, disk = dataDir(t), faultfs.NewDisk(vfs.Default, 10*gib)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := service.Record(ctx, service.Config{
		Dir: dir, Sources: []service.SourceConfig{{Name: "default", Endpoints: []string{w.endpoint}}}, FS: disk, MinFree: minFree,
		Recorder: recorder.Options{Room: recorder.Room{Every: 2 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return s.Wait()
	}
	t.Cleanup(func() {
		if !stopped {
			disk.SetFree(10 * gib)
			stop()
		}
	})
	w.subscribed(true)
	eventually(t, "the connection is proven", func() bool { return connections(t, dir) > 0 })
	return dir, disk, s, stop
}

// Below --min-free recording pauses: what is lost is recorder_down, questions are answered, and it goes on by itself.
func TestPausesForRoom(t *testing.T) {
	t.Parallel()
	w := newWire(t, 1000).bind("")
	dir, disk, s, stop := onDisk(t, w, gib)
	w.send(5)
	recordedSeq(t, dir, 5)
	for pause := range uint64(2) {
		disk.SetFree(gib - 1)
		w.subscribed(false)
		eventually(t, "the pause is shown", func() bool {
			st := stats(t, dir)
			return st.Recorder != nil && st.Recorder.Paused != nil && st.Recorder.Paused.FreeBytes == gib-1 && st.Recorder.MinFreeBytes == gib
		})
		w.send(4) // to nobody
		if table := kvjournal(t, "stats", "--dir", dir); !strings.Contains(table.stdout, "PAUSED") {
			t.Errorf("stats\n%s", table.stdout)
		}
		lookupLines(t, dir, "", []object{{"default", "k1"}})
		lookupLines(t, dir, "now", []object{{"default", "k1"}})
		if r := kvjournal(t, "rebuild", "--dir", dir); r.code != 1 || !strings.Contains(r.stderr, "free space first") {
			t.Errorf("rebuild in a pause: exit %d, %q", r.code, r.stderr)
		}
		disk.SetFree(gib + gib/20) // more than the least, but not by a tenth
		eventually(t, "the new room is seen", func() bool {
			p := stats(t, dir).Recorder.Paused
			return p != nil && p.FreeBytes > gib
		})
		disk.SetFree(2 * gib)
		w.subscribed(true)
		eventually(t, "it goes on", func() bool { return stats(t, dir).Recorder.Paused == nil && uint64(connections(t, dir)) == pause+2 })
		w.send(3)
		recordedSeq(t, dir, 5+7*(pause+1))
	}
	if s.Status().Paused != nil {
		t.Error("the status says that it is paused")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	all := gaps(t, dir)
	if n := onlyCauses(t, all, "recorder_down"); n["recorder_down"] != 2 {
		t.Fatalf("gaps %v", n)
	}
	for i := range all {
		if g := &all[i]; g.MissingSeqs == nil || *g.MissingSeqs != 4 || g.LostEvents != nil {
			t.Errorf("%+v", g)
		}
	}
	sameAfterRebuild(t, dir, readJournal(t, dir).objects)
}

// A disk that is full all the same stalls the recorder, as a slow one does, and loses nothing that was received.
func TestFullDiskStalls(t *testing.T) {
	t.Parallel()
	w := newWire(t, 1000).bind("")
	dir, disk, s, stop := onDisk(t, w, 0)
	w.send(5)
	recordedSeq(t, dir, 5)
	disk.SetFree(0)
	w.send(200)
	eventually(t, "a write is refused, and shown", func() bool { return disk.Refused() > 3 && s.Recorder().DiskFull })
	if table := kvjournal(t, "stats", "--dir", dir); !strings.Contains(table.stdout, "DISK FULL") {
		t.Errorf("stats\n%s", table.stdout)
	}
	lookupLines(t, dir, "", []object{{"default", "k1"}})
	disk.SetFree(10 * gib)
	recordedSeq(t, dir, 205)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if all := gaps(t, dir); len(all) > 0 {
		t.Errorf("gaps %+v", all)
	}
	if got := readJournal(t, dir); got.messages != 205 {
		t.Errorf("%d messages", got.messages)
	}
}

// The same on a real filesystem that is really full; and a recorder that is stopped there ends, says why, and leaves a directory that opens.
func TestFullDiskForReal(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("a small filesystem cannot be mounted here: %v; TestFullDiskStalls has the same on a wrapped one", err)
	}
	t.Cleanup(func() { syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir, ballast := filepath.Join(mount, "data"), filepath.Join(mount, "ballast")
	fill := func() {
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for chunk := 1 << 20; chunk >= 4096; {
			if _, err := f.Write(bytes.Repeat([]byte{1}, chunk)); err != nil {
				chunk /= 4
			}
		}
	}
	_, endpoint := simulate(t, "--rate", "20000", "--objects", "1000", "--seed", "3")
	rec := record(t, dir, endpoint, "--min-free", "0")
	eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > 5000 })
	fill()
	full := func() bool { st := stats(t, dir); return st.Recorder != nil && st.Recorder.DiskFull }
	eventually(t, "the disk is full", full)
	acked := stats(t, dir)
	lookupLines(t, dir, "", []object{{"default", "never"}})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return !full() && stats(t, dir).Events > acked.Events+5000 })
	fill()
	eventually(t, "the disk is full again", full)
	acked = stats(t, dir)
	rec.signal(t, syscall.SIGINT)
	code := rec.wait(t)
	if said := rec.talk.String(); code != 1 || !strings.Contains(said, "no space left on device") || !strings.Contains(said, "start again") || strings.Contains(said, "panic") {
		t.Errorf("exit %d:\n%s", code, said)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	rec = record(t, dir, endpoint, "--min-free", "0")
	if st := stats(t, dir); st.DurableOffset < acked.DurableOffset || st.Events < acked.Events {
		t.Errorf("%d events up to %d were acknowledged, %d up to %d are there", acked.Events, acked.DurableOffset, st.Events, st.DurableOffset)
	}
	rec.stop(t)
	sameAfterRebuild(t, dir, readJournal(t, dir).objects)
}

// A disk whose syncs take as long as they like: messages wait in the buffer, questions are answered, and nothing is lost. (What is lost when the
// buffer is full is recorder_slow: e2e_slow_test.go.)
func TestSlowDiskFillsTheBuffer(t *testing.T) {
	t.Parallel()
	w := newWire(t, 1000).bind("")
	dir, disk, s, stop := onDisk(t, w, 0)
	w.send(5)
	recordedSeq(t, dir, 5)
	goOn := disk.Stop()
	t.Cleanup(goOn) // else a test that fails would wait for it
	eventually(t, "messages wait for the disk", func() bool {
		w.send(20) // the first few commits take what is there
		return disk.Stalled() > 0 && s.Recorder().BufferBytes > 50_000
	})
	if st := stats(t, dir); st.Messages != 5 {
		t.Errorf("%d messages are acknowledged that no disk has", st.Messages)
	}
	lookupLines(t, dir, "", []object{{"default", "k1"}})
	goOn()
	recordedSeq(t, dir, w.seq)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if all := gaps(t, dir); len(all) > 0 {
		t.Errorf("gaps %+v", all)
	}
}

// With hardly any descriptors a recorder says so, or records: never less than it acknowledged.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	_, endpoint := simulate(t, "--rate", "5000", "--objects", "500")
	recordedWith := 0
	for _, most := range []string{"8", "16", "24", "64", "255", "256", "300"} {
		dir := dataDir(t)
		rec := start(t, "/bin/sh", "-c", `ulimit -n "$0"; exec "$@"`, most, kvjournalBinary, "record", "--dir", dir, "--endpoint", endpoint)
		var acked uint64
		eventually(t, "it ends, or records", func() bool {
			st, ok := tryStats(t, dir)
			if ok {
				acked = max(acked, st.DurableOffset)
			}
			return !rec.running() || ok && st.Events > 3000
		})
		if rec.running() {
			recordedWith++
			rec.stop(t)
		} else if said := rec.talk.String(); strings.Contains(said, "goroutine ") || !strings.Contains(strings.ToLower(said), "too many open files") {
			t.Errorf("with %s descriptors it ended with exit %d:\n%s", most, rec.cmd.ProcessState.ExitCode(), said)
		}
		if acked > 0 {
			if st := stats(t, dir); st.DurableOffset < acked {
				t.Errorf("with %s descriptors: offset %d was acknowledged, the journal ends at %d", most, acked, st.DurableOffset)
			}
		}
	}
	if recordedWith == 0 {
		t.Error("it records with none of these numbers")
	}
}
