package faultfs

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Nth makes the operation number N fail, and, with All, every one behind it. It counts all operations, those that only read too.
type Nth struct {
	N   int64
	All bool
	Err syscall.Errno
	// Skip says which operations are not counted; nil: none.
	Skip func(errorfs.Op) bool

	ops    atomic.Int64
	first  atomic.Pointer[errorfs.Op]
	frozen atomic.Bool
}

// MaybeError implements errorfs.Injector.
func (n *Nth) MaybeError(op errorfs.Op) error {
	if n.frozen.Load() {
		select {}
	}
	if n.Skip != nil && n.Skip(op) {
		return nil
	}
	i := n.ops.Add(1) - 1
	if i < n.N || i > n.N && !n.All {
		return nil
	}
	n.first.CompareAndSwap(nil, &op)
	return &os.PathError{Op: "operation", Path: op.Path, Err: n.Err}
}

// String implements errorfs.Injector.
func (n *Nth) String() string {
	how := "once"
	if n.All {
		how = "from then on"
	}
	what := "nothing failed"
	if op := n.first.Load(); op != nil {
		what = fmt.Sprintf("kind %d of %s", op.Kind, op.Path)
	}
	return fmt.Sprintf("operation %d (%s), %v, %s", n.N, what, n.Err, how)
}

// Failed is the path of the operation that failed first.
func (n *Nth) Failed() (path string, failed bool) {
	op := n.first.Load()
	if op == nil {
		return "", false
	}
	return op.Path, true
}

// Ops is how many operations there were so far.
func (n *Nth) Ops() int64 { return n.ops.Load() }

// Freeze makes every operation from now on last for ever: what is left of a process that has ended does nothing more.
func (n *Nth) Freeze() { n.frozen.Store(true) }

// Disk is a filesystem whose room and speed a test sets. The zero free space is a full disk to who asks, and to who writes.
type Disk struct {
	vfs.FS
	free    atomic.Uint64
	refused atomic.Int64

	mu      sync.Mutex
	stopped chan struct{} // not nil: syncs of logs wait until it is closed
	stalled atomic.Int64
}

// NewDisk is fs on a disk with so many bytes free. They do not become fewer by what is written.
func NewDisk(fs vfs.FS, free uint64) *Disk {
	d := &Disk{}
	d.free.Store(free)
	d.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(d.operation))
	return d
}

// SetFree sets the free bytes; with 0 every operation that needs room fails.
func (d *Disk) SetFree(bytes uint64) { d.free.Store(bytes) }

// Refused counts the operations that failed for want of room.
func (d *Disk) Refused() int64 { return d.refused.Load() }

// Stop makes syncs of write-ahead logs wait; the returned function lets them go on.
func (d *Disk) Stop() (goOn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.stopped = c
	return sync.OnceFunc(func() {
		d.mu.Lock()
		d.stopped = nil
		d.mu.Unlock()
		close(c)
	})
}

// Stalled counts the syncs that wait.
func (d *Disk) Stalled() int64 { return d.stalled.Load() }

func (d *Disk) operation(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpLink, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt:
		if d.free.Load() == 0 {
			d.refused.Add(1)
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		d.mu.Lock()
		c := d.stopped
		d.mu.Unlock()
		if c != nil && strings.HasSuffix(op.Path, ".log") {
			d.stalled.Add(1)
			<-c
			d.stalled.Add(-1)
		}
	}
	return nil
}

// GetDiskUsage is part of vfs.FS.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := d.free.Load()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40, UsedBytes: 1<<40 - free}, nil
}

// Unwrap is part of vfs.FS.
func (d *Disk) Unwrap() vfs.FS { return d.FS }
