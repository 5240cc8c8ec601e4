package service_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/query/service"
)

// full says that its disk has next to no room.
type full struct{ vfs.FS }

func (full) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 4096, TotalBytes: 1 << 30, UsedBytes: 1<<30 - 4096}, nil
}

// On a full disk the index cannot be brought up there; the question is answered from memory, without a try that would end
// the program.
func TestAtRestOnAFullDisk(t *testing.T) {
	mem, want := crashed(t)
	var writes atomic.Int64
	fs := full{errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, "index") {
			writes.Add(1)
			return syscall.ENOSPC
		}
		return nil
	}))}
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if got := answers(t, &a.Engine); got != want {
		t.Errorf("answers\n%s\nthe writer's\n%s", got, want)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if n := writes.Load(); n > 0 {
		t.Errorf("%d writes to a full disk", n)
	}
}
