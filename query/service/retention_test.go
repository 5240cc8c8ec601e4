package service

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/query"
)

func TestDue(t *testing.T) {
	const hour = int64(time.Hour)
	now := 1000 * hour
	for _, c := range []struct {
		name string
		r    Retention
		h    held
		want query.PruneQuestion
		ok   bool
	}{
		{name: "everything is kept", h: held{oldest: 1, bytes: 1 << 50}},
		{name: "young", r: Retention{Keep: 10 * time.Hour}, h: held{oldest: now - 10*hour}},
		{name: "not old enough to be worth it", r: Retention{Keep: 10 * time.Hour}, h: held{oldest: now - 10*hour - hour/2}},
		{name: "old", r: Retention{Keep: 10 * time.Hour}, h: held{oldest: now - 11*hour}, want: query.PruneQuestion{Keep: 10 * time.Hour}, ok: true},
		{name: "no place to prune to", r: Retention{Keep: 10 * time.Hour}},
		{name: "small", r: Retention{KeepBytes: 1000}, h: held{oldest: 1, bytes: 1000}},
		{name: "large", r: Retention{KeepBytes: 1000}, h: held{oldest: 1, bytes: 1001}, want: query.PruneQuestion{KeepBytes: 900}, ok: true},
		{name: "large, and nothing may go", r: Retention{KeepBytes: 1000}, h: held{bytes: 1001}},
		{name: "of what is gone", r: Retention{KeepBytes: 1000}, h: held{bytes: 1001, baseline: 251}, want: query.PruneQuestion{KeepBytes: 900, ForgetRemoved: true}, ok: true},
		{name: "large comes first", r: Retention{KeepBytes: 1000, Keep: time.Hour}, h: held{oldest: 1, bytes: 1001}, want: query.PruneQuestion{KeepBytes: 900}, ok: true},
	} {
		if q, ok := c.r.due(now, c.h); ok != c.ok || q != c.want {
			t.Errorf("%s: %+v %v, want %+v %v", c.name, q, ok, c.want, c.ok)
		}
	}
}

// volume is a filesystem on a volume of 1,000 bytes.
type volume struct{ vfs.FS }

func (v volume) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if _, err := v.Stat(path); err != nil {
		return vfs.DiskUsage{}, err
	}
	return vfs.DiskUsage{TotalBytes: 1000}, nil
}

func TestVolumeShare(t *testing.T) {
	if n, err := VolumeShare(volume{vfs.NewMem()}, "/not/there/yet", 80); n != 800 || err != nil {
		t.Errorf("80 %% of 1000: %d, %v", n, err)
	}
}
