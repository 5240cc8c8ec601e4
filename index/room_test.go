package index

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// roomDisk is a filesystem with so much room. It counts the files that are made in it, and the spools among these.
type roomDisk struct {
	vfs.FS
	free          atomic.Uint64
	made, spooled atomic.Int64
}

// newRoomDisk has room for everything.
func newRoomDisk() *roomDisk {
	d := &roomDisk{FS: vfs.NewMem()}
	d.free.Store(1 << 40)
	return d
}

func (d *roomDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 1 << 40, UsedBytes: 1<<40 - d.free.Load()}, nil
}

func (d *roomDisk) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	d.made.Add(1)
	if filepath.Base(path) == spoolFile {
		d.spooled.Add(1)
	}
	return d.FS.Create(path, c)
}

// leftovers are the names in the data directory beside the index.
func leftovers(t *testing.T, fs vfs.FS) (out []string) {
	t.Helper()
	names, err := fs.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if n != folder {
			out = append(out, n)
		}
	}
	return out
}

func TestExtent(t *testing.T) {
	for _, c := range []struct {
		extent
		spooled, applied uint64
	}{{extent{0, 70}, spareRoom, spareRoom}, {extent{1e6, 70}, 140e6 + spareRoom, 105e6 + spareRoom}, {extent{1e9, 1000}, 2e12 + spareRoom, 15e11 + spareRoom}} {
		if c.extent.spooled() != c.spooled || c.extent.applied() != c.applied {
			t.Errorf("%+v: %d, %d", c, c.extent.spooled(), c.extent.applied())
		}
	}
	e := NoRoomError{Dir: "DIR", Rows: 12, Need: 3_400_000_000, Free: 5_600_000}
	for _, want := range []string{"DIR", "12 events", "3.4 GB", "5.6 MB", "old index is as it was"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q is not in %q", want, e.Error())
		}
	}
}

// TestRebuildWithLittleRoom: with room for a spool one is used, with less the index is computed without, and with too little for that nothing is
// begun; the rows are the same.
func TestRebuildWithLittleRoom(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 2)
	w.add(400)
	e := extentOf(w.j)
	if e.rows == 0 || e.applied() >= e.spooled() {
		t.Fatalf("%+v", e)
	}
	disk := newRoomDisk()
	o := testOptions(disk)
	x, err := Create(t.Context(), w.j, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { x.Close() }()
	want := dumpRows(t, x)
	for _, c := range []struct {
		free    uint64
		spooled int
		fails   bool
	}{{e.spooled(), 1, false}, {e.spooled() - 1, 0, false}, {e.applied(), 0, false}, {e.applied() - 1, 0, true}, {0, 0, true}} {
		if err := x.Flush(); err != nil { // so that nothing else writes
			t.Fatal(err)
		}
		disk.free.Store(c.free)
		disk.made.Store(0)
		disk.spooled.Store(0)
		err := x.Rebuild(t.Context(), nil)
		var room *NoRoomError
		if c.fails != errors.As(err, &room) || !c.fails && err != nil {
			t.Fatalf("%d bytes free: %v", c.free, err)
		}
		if c.fails && (room.Free != c.free || room.Need != e.applied() || room.Rows != e.rows || disk.made.Load() > 0) {
			t.Errorf("%d bytes free: %v; %d files were made", c.free, err, disk.made.Load())
		}
		if disk.spooled.Load() != int64(c.spooled) {
			t.Errorf("%d bytes free: %d spools", c.free, disk.spooled.Load())
		}
		sameRows(t, "rebuilt", dumpRows(t, x), want)
		if left := leftovers(t, disk); len(left) > 0 {
			t.Errorf("%d bytes free: %q is left", c.free, left)
		}
	}
}

// TestSpoolFillsTheDisk: where the room was not enough all the same, the old index stays, and nothing else.
func TestSpoolFillsTheDisk(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(300)
	full := false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, rowsSuffix) {
			return syscall.ENOSPC
		}
		return nil
	}))
	o := testOptions(fs)
	o.runBytes, o.tableBytes = 4<<10, 4<<10
	x, err := Create(t.Context(), w.j, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	want := dumpRows(t, x)
	full = true
	err = x.Rebuild(t.Context(), nil)
	var room *NoRoomError
	if !errors.As(err, &room) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "filled up") {
		t.Errorf("a full disk: %v", err)
	}
	sameRows(t, "kept", dumpRows(t, x), want)
	if left := leftovers(t, fs); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestRenewWithLittleRoom: an index that lacks most of the journal is brought up in its place where there is no room for another, and where
// there is not even that room it stays as it is.
func TestRenewWithLittleRoom(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(150)
	disk := newRoomDisk()
	o := testOptions(disk)
	o.renew = 1
	x := w.openIndex(o)
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	has, before := x.a.points.total, x.Applied()
	for all := has; !mostlyMissing(has, all, o.renew); all = w.j.Durables().Totals.Events {
		w.add(50)
	}
	e := extentOf(w.j)
	missing := extent{w.j.Durables().Totals.Events - has, e.row}
	if missing.applied() >= e.applied() {
		t.Fatalf("%+v, %+v", missing, e)
	}
	disk.free.Store(missing.applied() - 1)
	var room *NoRoomError
	if err := x.Renew(t.Context(), nil); !errors.As(err, &room) || !room.InPlace || room.Rows != missing.rows || x.Applied() != before {
		t.Errorf("%v; applied %d, before %d", err, x.Applied(), before)
	}
	disk.free.Add(1)
	if err := x.Renew(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if x.Applied() != w.j.Durable() || x.Generation() != 0 {
		t.Errorf("applied %d of %d, exchanged %d times", x.Applied(), w.j.Durable(), x.Generation())
	}
}

// TestPruneWithLittleRoom: where there is no room to compute a pruned index anew, what is to go is deleted from it.
func TestPruneWithLittleRoom(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(400)
	disk := newRoomDisk()
	x := w.openIndex(prunable(disk, 40))
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	x.anew = func(_, _, _, _, _ uint64) bool { return true }
	disk.free.Store(0)
	if _, err := x.Prune(t.Context(), w.j.Durable()*2/3, BaselineOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if w.j.Horizon().Offset == 0 || x.Generation() != 0 {
		t.Errorf("pruned to %+v, exchanged %d times", w.j.Horizon(), x.Generation())
	}
	sameRows(t, "trimmed", dumpRows(t, x), w.createdRows(40))
}
