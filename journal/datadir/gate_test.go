package datadir

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const testDir = "/a/b/data"

func TestPrepareThenCheck(t *testing.T) {
	fs := vfs.NewMem()
	if err := Check(fs, testDir); !errors.Is(err, ErrMissing) {
		t.Errorf("missing: %v", err)
	}
	for range 2 {
		if err := Prepare(fs, testDir); err != nil {
			t.Fatal(err)
		}
		if err := Check(fs, testDir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckTellsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, gate string
		want       error
		says       string
	}{
		{"version 1", "kvjournal data directory, format 1\n", nil, ""},
		{"newer", "kvjournal data directory, format 3\n", ErrNewer, "format 3"},
		{"much newer", "kvjournal data directory, format 1234\n", ErrNewer, "format 1234"},
		{"negative", "kvjournal data directory, format -1\n", ErrForeign, "-1"},
		{"no number", "kvjournal data directory, format \n", ErrForeign, "KVJOURNAL"},
		{"other text", "\x00\x01", ErrForeign, "KVJOURNAL"},
		{"empty", "", ErrForeign, "KVJOURNAL"},
	} {
		fs := vfs.NewMem()
		if err := fs.MkdirAll(testDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(fs, testDir, gateFile, []byte(c.gate)); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"Check": Check(fs, testDir), "Prepare": Prepare(fs, testDir)} {
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v, want %v that says %q", c.name, what, err, c.want, c.says)
			}
		}
	}
}

// TestPrepareAtEachFailure makes the i-th file operation fail, for every i: the error is passed on, is none of those
// by cause, and the next attempt succeeds. A directory that is not ours is never written to meanwhile.
func TestPrepareAtEachFailure(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		for i := int32(0); ; i++ {
			mem := vfs.NewMem()
			if foreign {
				if err := mem.MkdirAll(testDir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := WriteFile(mem, testDir, gateFile, []byte("kvjournal data directory, format 9\n")); err != nil {
					t.Fatal(err)
				}
			}
			at := errorfs.OnIndex(i)
			err := Prepare(errorfs.Wrap(mem, errorfs.ErrInjected.If(at)), testDir)
			failed := at.Index.Load() < 0
			if !foreign && failed && err == nil && i > 200 {
				t.Fatal("never ends")
			}
			if foreign {
				if err == nil {
					t.Fatalf("operation %d fails: a newer directory is accepted", i)
				}
				if failed && !strings.Contains(err.Error(), "injected error") && !errors.Is(err, ErrNewer) {
					t.Errorf("operation %d fails: %v", i, err)
				}
				if err := Check(mem, testDir); !errors.Is(err, ErrNewer) {
					t.Fatalf("operation %d fails: the directory of a newer program became %v", i, err)
				}
			} else {
				if err != nil && (errors.Is(err, ErrForeign) || errors.Is(err, ErrNewer) || errors.Is(err, ErrMissing)) {
					t.Errorf("operation %d fails: %v", i, err)
				}
				if err := Prepare(mem, testDir); err != nil {
					t.Errorf("operation %d failed; the next attempt: %v", i, err)
				}
			}
			if !failed {
				break
			}
		}
	}
}

// TestPrepareSurvivesACrash: what Prepare made is there after a crash that takes all that was not synced.
func TestPrepareSurvivesACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	if err := Prepare(fs, testDir); err != nil {
		t.Fatal(err)
	}
	if err := Check(fs.CrashClone(vfs.CrashCloneCfg{}), testDir); err != nil {
		t.Error(err)
	}
	// A crash in the midst of it leaves something that the next Prepare takes.
	left := vfs.NewMem()
	if err := left.MkdirAll(testDir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := left.Create(left.PathJoin(testDir, gateFile+tmpSuffix), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := Check(left, testDir); !errors.Is(err, ErrMissing) {
		t.Errorf("a directory that was being made: %v", err)
	}
	if err := Prepare(left, testDir); err != nil {
		t.Error(err)
	}
}

// TestCheckOfAFile: a path that is no directory is not called missing.
func TestCheckOfAFile(t *testing.T) {
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(vfs.Default, path); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
}

// TestWriteFileIsOldOrNew at every moment of a crash.
func TestWriteFileIsOldOrNew(t *testing.T) {
	for i := int32(0); ; i++ {
		mem := vfs.NewCrashableMem()
		if err := Prepare(mem, testDir); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(mem, testDir, "f", []byte("old")); err != nil {
			t.Fatal(err)
		}
		at := errorfs.OnIndex(i)
		err := WriteFile(errorfs.Wrap(mem, errorfs.ErrInjected.If(at)), testDir, "f", []byte("the new content"))
		failed := at.Index.Load() < 0
		if failed && err == nil {
			t.Errorf("operation %d fails unnoticed", i)
		}
		for _, fs := range []vfs.FS{mem, mem.CrashClone(vfs.CrashCloneCfg{})} {
			got := contentOf(t, fs, fs.PathJoin(testDir, "f"))
			if got != "old" && got != "the new content" || err == nil && got != "the new content" {
				t.Errorf("operation %d fails: %q, error %v", i, got, err)
			}
		}
		if !failed {
			return
		}
	}
}
