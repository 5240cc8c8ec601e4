package service_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/service"
)

// childFault makes TestFatalInAChild the child: the fault that its storage has.
const childFault = "KVJOURNAL_TEST_FAULT"

// faults are failures that Pebble itself would answer with a panic, with an end of the process, or by trying again for ever.
var faults = []struct {
	name, database, file string
	kind                 errorfs.OpKind
}{
	{"the log cannot be written", "journal", ".log", errorfs.OpFileWrite},
	{"the log cannot be synced", "journal", ".log", errorfs.OpFileSyncData},
	{"no table can be made", "journal", ".sst", errorfs.OpCreate},
	{"a table cannot be written", "journal", ".sst", errorfs.OpFileWrite},
	{"the manifest cannot be written", "journal", "MANIFEST", errorfs.OpFileWrite},
	{"the manifest cannot be synced", "journal", "MANIFEST", errorfs.OpFileSync},
	{"no table of the index can be made", "index", ".sst", errorfs.OpCreate},
	{"a table of the index cannot be synced", "index", ".sst", errorfs.OpFileSyncData},
	{"the index' manifest cannot be written", "index", "MANIFEST", errorfs.OpFileWrite},
}

// TestFatalInAChild: where nothing more can be written the process ends with exit code 1 and a message that says what happened and what to
// do; then the directory opens, and the work goes on where it was.
func TestFatalInAChild(t *testing.T) {
	if fault := os.Getenv(childFault); fault != "" {
		child(t, fault)
		return
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestFatalInAChild$", "-test.v")
			cmd.Env = append(os.Environ(), childFault+"="+f.name)
			cmd.Dir = base
			out, err := cmd.CombinedOutput()
			said := string(out)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Fatalf("%v\n%s", err, said)
			}
			for _, want := range []string{"kvjournal: the storage failed", f.database + ": ", f.file, "input/output error", "start again"} {
				if !strings.Contains(said, want) {
					t.Errorf("the message does not say %q:\n%s", want, said)
				}
			}
			if strings.Contains(said, "goroutine ") || strings.Contains(said, "FAIL") {
				t.Errorf("it did not end by its message:\n%s", said)
			}
			goesOn(t, base)
		})
	}
}

func child(t *testing.T, name string) {
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		for _, f := range faults {
			if f.name == name && broken.Load() && op.Kind == f.kind && strings.Contains(op.Path, f.database+"/") && strings.Contains(filepath.Base(op.Path), f.file) {
				return &os.PathError{Op: "storage", Path: op.Path, Err: syscall.EIO}
			}
		}
		return nil
	}))
	writeCapture(t, vfs.Default)
	w, err := service.OpenForWriting(t.Context(), dataDir, "test", service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if _, err := w.Import(t.Context(), "s", capturePath, recorder.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Fatal(w.Finish(t.Context()), w.Close())
}

// goesOn imports what is missing, and compares with an import that nothing happened to.
func goesOn(t *testing.T, base string) {
	var all []string
	for _, dir := range []string{filepath.Join(base, dataDir), filepath.Join(base, "other")} {
		w, err := service.OpenForWriting(t.Context(), dir, "test", service.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Import(t.Context(), "s", filepath.Join(base, capturePath), recorder.ImportOptions{}); err != nil && !errors.Is(err, recorder.ErrImported) {
			t.Fatal(err)
		}
		if err := w.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, answers(t, &query.Engine{Journal: w.Journal, Index: w.Index}))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if all[0] != all[1] {
		t.Errorf("answers\n%s\nwant\n%s", all[0], all[1])
	}
}
