package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// built makes a small index on a filesystem of its own, and closes it.
func (w *world) built(last func(x *Index)) *vfs.MemFS {
	w.t.Helper()
	fs := vfs.NewMem()
	x, err := Open(w.j, true, testOptions(fs))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := x.CatchUp(w.t.Context(), nil); err != nil {
		w.t.Fatal(err)
	}
	if last != nil {
		last(x)
	}
	if err := x.Close(); err != nil {
		w.t.Fatal(err)
	}
	return fs
}

// wantRebuild fails the test unless the index must be rebuilt, for the reason given; then it rebuilds it.
func (w *world) wantRebuild(fs *vfs.MemFS, reason string) {
	w.t.Helper()
	x, err := Open(w.j, true, testOptions(fs))
	if err == nil {
		x.Close()
	}
	if !errors.Is(err, ErrRebuild) || !strings.Contains(err.Error(), reason) {
		w.t.Fatalf("Open: %v, want ErrRebuild because %q", err, reason)
	}
	x, err = Create(w.t.Context(), w.j, testOptions(fs), nil)
	if err != nil {
		w.t.Fatalf("Create: %v", err)
	}
	sameRows(w.t, "rebuilt", dumpRows(w.t, x), dumpRows(w.t, w.indexUpTo(w.j.Durable())))
	if err := x.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (x *Index) set(t *testing.T, key, value []byte) {
	t.Helper()
	if err := x.db.Set(key, value, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func TestOpenMissing(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.add(20)
	fs := vfs.NewMem()
	if _, err := Open(w.j, false, testOptions(fs)); !errors.Is(err, ErrRebuild) {
		t.Fatalf("Open without create: %v", err)
	}
	if names, err := fs.List(testDir); err == nil {
		t.Errorf("Open without create made %q", names)
	}
	if got := KnownTo(testDir, testOptions(fs)).Newest(); got != 0 {
		t.Errorf("KnownTo = %d", got)
	}
	x := w.openIndex(testOptions(fs))
	if x.Applied() != 0 {
		t.Errorf("applied %d", x.Applied())
	}
}

func TestOpenOtherJournal(t *testing.T) {
	w, other := newWorld(t, 1, 1), newWorld(t, 1, 1)
	w.add(20)
	other.add(20)
	w.wantRebuild(other.built(nil), "another journal")
}

func TestOpenOtherFormat(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.add(20)
	id := w.j.ID()
	of := func(version uint32) *vfs.MemFS {
		return w.built(func(x *Index) {
			x.set(t, []byte{keyJournal}, append(binary.BigEndian.AppendUint32(nil, version), id[:]...))
		})
	}
	w.wantRebuild(of(formatVersion-1), "another format")
	fs := of(formatVersion + 1)
	if _, err := Open(w.j, false, testOptions(fs)); !errors.Is(err, datadir.ErrNewer) || errors.Is(err, ErrRebuild) {
		t.Errorf("an index of a newer program: %v", err)
	}
	if err := Newer(testDir, testOptions(fs)); !errors.Is(err, datadir.ErrNewer) {
		t.Errorf("an index of a newer program: %v", err)
	}
	w.wantRebuild(w.built(func(x *Index) { x.set(t, []byte{keyJournal}, []byte("short")) }), "another format")
}

func TestOpenAheadOfJournal(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.add(20)
	for _, ahead := range []uint64{21, 1 << 40, 1<<64 - 1} {
		w.wantRebuild(w.built(func(x *Index) {
			x.set(t, []byte{keyApplied}, binary.BigEndian.AppendUint64(nil, ahead))
		}), "which the journal has not")
	}
	w.wantRebuild(w.built(func(x *Index) { x.set(t, []byte{keyApplied}, []byte("short")) }), "")
	w.wantRebuild(w.built(func(x *Index) { x.set(t, sourceKey(keyState, 1), []byte("no JSON")) }), "")
}

// TestOpenGarbage: files that hold something else, each alone and all together. Where one is not read at open, the index may
// open; it must never say that it is another's, nor end the program.
func TestOpenGarbage(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(200)
	dir := vfs.NewMem().PathJoin(testDir, folder)
	names, err := w.built(nil).List(dir)
	if err != nil {
		t.Fatal(err)
	}
	garbage := []byte("This is no file of Pebble's, though it is long enough to be taken for one at first sight. ........................")
	overwrite := func(fs *vfs.MemFS, name string, content []byte) {
		f, err := fs.Create(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append([]byte(nil), content...)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for _, content := range [][]byte{garbage, nil} {
		for i := range names {
			fs := w.built(nil)
			names, err := fs.List(dir)
			if err != nil || i >= len(names) {
				t.Fatal(names, err)
			}
			slices.Sort(names) // a MemFS lists them in any order: without this, which files are damaged is chance
			overwrite(fs, names[i], content)
			x, err := Open(w.j, true, testOptions(fs))
			if err == nil {
				if err := x.Close(); err != nil {
					t.Logf("closing with a damaged %s: %v", names[i], err)
				}
				continue
			}
			if !errors.Is(err, ErrRebuild) {
				t.Fatalf("%s of %d bytes: %v", names[i], len(content), err)
			}
			refused++
			w.wantRebuild(fs, "")
		}
	}
	if refused < 2 {
		t.Errorf("only %d damaged files of %q were noticed", refused, names)
	}
	fs := w.built(nil)
	all, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		overwrite(fs, name, garbage)
	}
	w.wantRebuild(fs, "")
}

// TestOpenManifestCut: an index whose manifest was cut anywhere is computed anew, or has all rows that it says it has.
func TestOpenManifestCut(t *testing.T) {
	w := newWorld(t, testkit.Seed(t), 1)
	w.add(200)
	whole := w.built(nil)
	x := w.openIndex(testOptions(whole)) // its manifest begins with all tables; the next record has the last sequence number
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := pebblefile.List(whole, whole.PathJoin(testDir, folder))
	if err != nil {
		t.Fatal(err)
	}
	name, _ := pebblefile.MarkerValue(files, "manifest")
	want, anew := dumpRows(t, w.indexUpTo(w.j.Durable())), 0
	f, err := whole.Open(whole.PathJoin(testDir, folder, name))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for cut := len(content) - 1; cut > 0; cut -= 5 {
		fs := vfs.NewMem()
		if ok, err := vfs.Clone(whole, fs, testDir, testDir); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := datadir.WriteFile(fs, fs.PathJoin(testDir, folder), name, content[:cut]); err != nil {
			t.Fatal(err)
		}
		x, err := Open(w.j, true, testOptions(fs))
		if errors.Is(err, ErrRebuild) {
			anew++
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err := errors.Join(x.CatchUp(t.Context(), nil), x.db.Compact(t.Context(), nil, []byte{0xff}, false)); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		sameRows(t, fmt.Sprintf("cut at %d", cut), dumpRows(t, x), want)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if anew == 0 {
		t.Error("no cut was found")
	}
}

// TestOpenFileInItsPlace: a file where the folder should be.
func TestOpenFileInItsPlace(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.add(20)
	fs := vfs.NewMem()
	if err := fs.MkdirAll(testDir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(fs.PathJoin(testDir, folder), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.wantRebuild(fs, "")
}
