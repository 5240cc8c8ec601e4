package faultfs

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Crashable is a MemFS that may be cloned at any moment: MemFS takes its own lock twice in Link and ReuseForWrite, and can
// deadlock with a clone that waits in between (PEBBLE.md).
type Crashable struct {
	*vfs.MemFS
	mu sync.RWMutex
}

// NewCrashable returns an empty one.
func NewCrashable() *Crashable { return &Crashable{MemFS: vfs.NewCrashableMem()} }

// Link is part of vfs.FS.
func (c *Crashable) Link(old, name string) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.MemFS.Link(old, name)
}

// ReuseForWrite is part of vfs.FS.
func (c *Crashable) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.MemFS.ReuseForWrite(old, name, category)
}

// Clone is what a crash leaves that takes what was not synced, but for so many percent of it.
func (c *Crashable) Clone(rng *rand.Rand, percent int) *vfs.MemFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
}

// Points is fs with a function that is called before each operation that changes something, with its number: 0, 1, 2, … It may be
// called from several goroutines at once, and may clone.
func Points(fs vfs.FS, at func(n int64, op errorfs.Op)) vfs.FS {
	var n atomic.Int64
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			at(n.Add(1)-1, op)
		}
		return nil
	}))
}
