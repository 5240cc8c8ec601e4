package datadir

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A newer program reads a directory of format 1, raises its gate before it writes anything that this program's format has not, and from
// then on this program refuses the directory, whatever crashes: there is no moment at which the new bytes are there and
// the old program opens it.
func TestRaiseBeforeTheFirstNewByte(t *testing.T) {
	const newest = Format + 1
	for _, crash := range []string{"before", "after"} {
		fs := vfs.NewCrashableMem()
		if err := Prepare(fs, testDir); err != nil {
			t.Fatal(err)
		}
		if v, err := version(fs, testDir, newest); v != 1 || err != nil {
			t.Fatalf("the new program reads format %d, %v", v, err)
		}
		if crash == "after" {
			if err := raise(fs, testDir, newest, newest); err != nil {
				t.Fatal(err)
			}
			if err := raise(fs, testDir, 1, newest); err != nil { // it stays
				t.Fatal(err)
			}
			if err := WriteFile(fs, testDir, "new", []byte("what older formats have not")); err != nil {
				t.Fatal(err)
			}
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
		err := Check(fs, testDir) // the old program
		if _, serr := fs.Stat(fs.PathJoin(testDir, "new")); (serr == nil) != errors.Is(err, ErrNewer) || crash == "before" && err != nil {
			t.Errorf("crash %s: the old program says %v; the new bytes: %v", crash, err, serr)
		}
		if crash == "after" {
			if err := Prepare(fs, testDir); !errors.Is(err, ErrNewer) {
				t.Errorf("the old program writes to it: %v", err)
			}
			if v, err := version(fs, testDir, newest); v != newest || err != nil {
				t.Errorf("the new program reads format %d, %v", v, err)
			}
		}
	}
}

// The i-th operation of raising fails: the gate names the old format or the new one, and a success is durable.
func TestRaiseAtEachFailure(t *testing.T) {
	for i := int32(0); ; i++ {
		mem := vfs.NewCrashableMem()
		if err := Prepare(mem, testDir); err != nil {
			t.Fatal(err)
		}
		at := errorfs.OnIndex(i)
		err := raise(errorfs.Wrap(mem, errorfs.ErrInjected.If(at)), testDir, 2, 2)
		v, verr := version(mem.CrashClone(vfs.CrashCloneCfg{}), testDir, 2)
		if verr != nil || v != 1 && v != 2 || err == nil && v != 2 {
			t.Fatalf("operation %d fails: %v; then the gate says %d, %v", i, err, v, verr)
		}
		if at.Index.Load() >= 0 {
			if i < 5 || err != nil {
				t.Errorf("%d operations, %v", i, err)
			}
			return
		}
	}
}

func TestRaiseRefusals(t *testing.T) {
	fs := vfs.NewMem()
	if err := Raise(fs, testDir, Format); !errors.Is(err, ErrMissing) {
		t.Errorf("no directory: %v", err)
	}
	if err := Prepare(fs, testDir); err != nil {
		t.Fatal(err)
	}
	if err := Raise(fs, testDir, Format+1); err == nil {
		t.Error("raised to a format that this program does not know")
	}
	if err := Raise(fs, testDir, Format); err != nil {
		t.Error(err)
	}
	if v, err := Version(fs, testDir); v != Format || err != nil {
		t.Errorf("format %d, %v", v, err)
	}
	if err := WriteFile(fs, testDir, gateFile, gateText(Format+1)); err != nil {
		t.Fatal(err)
	}
	if err := Raise(fs, testDir, Format); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer directory: %v", err)
	}
}
