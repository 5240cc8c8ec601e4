package datadir

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sys/unix"
)

func TestRemedyFor(t *testing.T) {
	eio, full := error(unix.EIO), &os.PathError{Op: "write", Path: "f", Err: unix.ENOSPC}
	for _, c := range []struct {
		what string
		a    action
		err  error
		want remedy
	}{
		{"it worked", writes, nil, passOn},
		{"reading fails", reads, eio, passOn},
		{"an obsolete file stays", removes, unix.EACCES, passOn},
		{"writing fails", writes, eio, end},
		{"the disk is full", writes, full, await},
		{"the quota is used up", makes, unix.EDQUOT, await},
		{"no descriptor is left", makes, unix.EMFILE, await},
		{"the system has none left", makes, unix.ENFILE, await},
		{"read-only", makes, unix.EROFS, end},
		{"not permitted", makes, unix.EACCES, end},
		{"no room behind the write", syncs, full, end},
		{"syncing fails", syncs, eio, end},
	} {
		if got := remedyFor(c.a, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// told collects what Fatal was told.
type told struct {
	mu   sync.Mutex
	list []string
}

func (f *told) fatal(m string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, m)
}

func (f *told) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.list, "\n")
}

// TestGuardAwaitsRoom: what was asked for while the disk was full is done when there is room, each byte once.
func TestGuardAwaitsRoom(t *testing.T) {
	var full atomic.Bool
	tries := make(chan string, 1000)
	mem := vfs.NewMem()
	base := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && full.Load() {
			tries <- op.Path
			return unix.ENOSPC
		}
		return nil
	}))
	var f told
	g := NewGuard(base, GuardOptions{Database: "journal", Fatal: f.fatal, Until: make(chan struct{}), Every: time.Millisecond})
	old, err := g.Create("old", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	old.Close()
	full.Store(true)
	done := make(chan error, 1)
	go func() {
		file, err := g.ReuseForWrite("old", "new", vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = file.Write([]byte("once"))
		}
		done <- errors.Join(err, file.Close())
	}()
	for range 3 {
		<-tries
	}
	if !g.Waits() {
		t.Error("it is not seen to wait")
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	full.Store(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, mem, "new"); got != "once" || g.Waits() || f.all() != "" {
		t.Errorf("content %q, waits %v, fatal %q", got, g.Waits(), f.all())
	}
}

// halfFile takes the first half of a write, once.
type halfFile struct {
	vfs.File
	taken bool
}

func (h *halfFile) Write(b []byte) (int, error) {
	if h.taken {
		return h.File.Write(b)
	}
	h.taken = true
	n, err := h.File.Write(b[:len(b)/2])
	return n, errors.Join(err, unix.ENOSPC)
}

func TestGuardGoesOnInTheMiddle(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("f", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGuard(mem, GuardOptions{Fatal: func(m string) { t.Error(m) }, Until: make(chan struct{}), Every: time.Millisecond})
	half, _ := g.file(&halfFile{File: f}, "f", nil)
	if n, err := half.Write([]byte("0123456789")); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := contentOf(t, mem, "f"); got != "0123456789" {
		t.Errorf("%q", got)
	}
}

// TestGuardTellsFatal: at once where nothing can be waited for, and when the waiting ends. The message names file and reason.
func TestGuardTellsFatal(t *testing.T) {
	until := make(chan struct{})
	for _, c := range []struct {
		what  string
		err   error
		until <-chan struct{}
	}{{"eio", unix.EIO, until}, {"nobody waits", unix.ENOSPC, nil}, {"the process ends", unix.ENOSPC, until}} {
		var f told
		g := NewGuard(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite {
				return c.err
			}
			return nil
		})), GuardOptions{Database: "index", Fatal: f.fatal, Until: c.until, Every: time.Millisecond})
		file, err := g.Create("000007.sst", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { _, err := file.Write([]byte("x")); done <- err }()
		if c.what == "the process ends" {
			for end := time.Now().Add(20 * time.Second); !g.Waits(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it never waits")
				}
			}
			close(until)
		}
		if err := <-done; !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.what, err)
		}
		if got := f.all(); !strings.Contains(got, "index: writing 000007.sst: "+c.err.Error()) {
			t.Errorf("%s: fatal %q", c.what, got)
		}
	}
}

// TestGuardDoesNotAwaitDescriptorsForEver: most are the process's own.
func TestGuardDoesNotAwaitDescriptorsForEver(t *testing.T) {
	var f told
	tries := 0
	g := NewGuard(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		tries++
		return unix.EMFILE
	})), GuardOptions{Fatal: f.fatal, Until: make(chan struct{}), Every: time.Millisecond})
	if _, err := g.Create("f", vfs.WriteCategoryUnspecified); !errors.Is(err, unix.EMFILE) || tries != 1+descriptorTries || !strings.Contains(f.all(), "too many open files") {
		t.Errorf("%v behind %d tries, fatal %q", err, tries, f.all())
	}
}

// TestGuardPassesReadErrors: a question that meets one has an error; nothing ends.
func TestGuardPassesReadErrors(t *testing.T) {
	mem := vfs.NewMem()
	if err := WriteFile(mem, "/", "f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	g := NewGuard(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt || op.Kind == errorfs.OpRemove {
			return unix.EIO
		}
		return nil
	})), GuardOptions{Fatal: func(m string) { t.Error(m) }})
	f, err := g.Open("/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, unix.EIO) {
		t.Errorf("%v", err)
	}
	if _, err := f.Read(make([]byte, 1)); err != nil && err != io.EOF {
		t.Errorf("%v", err)
	}
	if err := g.Remove("/f"); !errors.Is(err, unix.EIO) {
		t.Errorf("%v", err)
	}
}

// TestGuardSyncsBeforeAMarker: a loss of power that keeps a marker keeps what was made before it.
func TestGuardSyncsBeforeAMarker(t *testing.T) {
	mem := vfs.NewCrashableMem()
	g := NewGuard(mem, GuardOptions{Fatal: func(m string) { t.Error(m) }})
	for _, name := range []string{"/MANIFEST-000007", "/marker.manifest.000003.MANIFEST-000007"} {
		f, err := g.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	names, err := mem.CrashClone(vfs.CrashCloneCfg{}).List("/")
	if err != nil || len(names) != 1 || names[0] != "MANIFEST-000007" {
		t.Errorf("left: %q, %v", names, err)
	}
}

// TestBackgroundSaysItNowAndThen: a compaction that fails all the time does not fill the log.
func TestBackgroundSaysItNowAndThen(t *testing.T) {
	var out strings.Builder
	b := NewBackground(slog.New(slog.NewTextHandler(&out, nil)), "index")
	for range 1000 {
		b.Met(unix.EIO)
	}
	if n, last := b.Errors(); n != 1000 || last != unix.EIO {
		t.Errorf("%d, %v", n, last)
	}
	if n := strings.Count(out.String(), "database=index"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// noLinks is a filesystem without hard links.
type noLinks struct {
	vfs.FS
	err error
}

func (n noLinks) Link(string, string) error { return n.err }

// TestGuardWithoutLinks: on a filesystem without hard links files are copied instead, whatever it calls that; another failure ends.
func TestGuardWithoutLinks(t *testing.T) {
	for err, copied := range map[unix.Errno]bool{unix.EPERM: true, unix.EXDEV: true, unix.ENOTSUP: true, unix.EIO: false, unix.EACCES: false} {
		mem, f := vfs.NewMem(), &told{}
		file, cerr := mem.Create("a", vfs.WriteCategoryUnspecified)
		if cerr := errors.Join(cerr, file.Close()); cerr != nil {
			t.Fatal(cerr)
		}
		lerr := vfs.LinkOrCopy(NewGuard(noLinks{mem, err}, GuardOptions{Fatal: f.fatal}), "a", "b")
		if _, serr := mem.Stat("b"); (serr == nil) != copied && f.all() == "" || (lerr == nil && f.all() == "") != copied {
			t.Errorf("%v: %v, %v, fatal: %q", err, lerr, serr, f.all())
		}
	}
}
