package journal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// logsOf counts the logs of the test's directory, and their bytes.
func logsOf(t *testing.T, fs vfs.FS) (n int, bytes int64) {
	t.Helper()
	files, err := pebblefile.List(fs, fs.PathJoin(testDir, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Kind == pebblefile.Log {
			n, bytes = n+1, bytes+f.Size
		}
	}
	return n, bytes
}

func mustFlush(t *testing.T, j *Journal) {
	t.Helper()
	if err := errors.Join(j.Seal(context.Background()), j.Flush()); err != nil {
		t.Fatal(err)
	}
}

// wantLogs wants a check of the directory to find nothing wrong with its logs. (What else it finds is the tests' own: payloads that are
// no messages, options.)
func wantLogs(t *testing.T, o Options) {
	t.Helper()
	o.ReadOnly = true
	j, _, err := Check(context.Background(), testDir, o, func(f Finding) {
		if strings.HasSuffix(f.File, ".log") {
			t.Errorf("found: %+v", f)
		}
	}, nil)
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCloseLeavesNoLogs: behind a flush Close leaves an empty log; behind anything else it leaves all of them, and what they hold.
func TestCloseLeavesNoLogs(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.MemTableSize = 64 << 10 // several logs
	m, s := &model{}, (*stream)(nil)
	for i, flushed := range []bool{true, false, true, true, false, true} {
		j := mustOpen(t, o, 0)
		if s == nil {
			s = newStream(t, rng, j, 2)
		}
		if i != 3 { // then it is opened and closed
			m.appendMany(t, j, s, 300, 20)
		}
		mustFlush(t, j)
		if !flushed {
			m.appendMany(t, j, s, 1, 1)
		}
		mustClose(t, j)
		n, bytes := logsOf(t, o.FS)
		if flushed && (n != 1 || bytes != 0) {
			t.Errorf("round %d: %d logs of %d bytes at rest", i, n, bytes)
		}
		if !flushed && bytes == 0 {
			t.Errorf("round %d: no log, and not all is in tables", i)
		}
		wantLogs(t, o)
	}
	checkReads(t, mustOpen(t, o, 0), m, s, rng, 30)
}

// TestCrashWhileLogsAreRemoved crashes before each operation of a Close behind a flush: all is there.
func TestCrashWhileLogsAreRemoved(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, percent := range []int{0, 50, 100} {
		mem := faultfs.NewCrashable()
		var mu sync.Mutex
		var clones []*vfs.MemFS
		closing := false
		o := testOptions(faultfs.Points(mem, func(int64, errorfs.Op) {
			mu.Lock()
			defer mu.Unlock()
			if closing {
				clones = append(clones, mem.Clone(rng, percent))
			}
		}))
		o.MemTableSize = 64 << 10
		j := mustOpen(t, o, 0)
		s, m := newStream(t, rng, j, 2), &model{}
		m.appendMany(t, j, s, 300, 20)
		mustFlush(t, j)
		mu.Lock()
		closing = true
		mu.Unlock()
		mustClose(t, j)
		mu.Lock()
		closing = false
		mu.Unlock()
		clones = append(clones, mem.Clone(rng, percent))
		for i, left := range clones {
			if n, _ := logsOf(t, left); n == 0 {
				t.Errorf("crash %d of %d leaves no log", i, len(clones))
			}
			o := testOptions(left)
			wantLogs(t, o)
			afterCrash(t, left, m, m.last(), s, rng)
		}
	}
}
