package datadir

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

func contentOf(t testing.TB, fs vfs.FS, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, fs, name))
}

// tree is a directory's content, by path.
func tree(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(string)
	walk = func(p string) {
		info, err := fs.Stat(p)
		if err != nil {
			t.Fatalf("%s is listed, but: %v", p, err)
		}
		if !info.IsDir() {
			out[p] = contentOf(t, fs, p)
			return
		}
		out[p+"/"] = ""
		names, err := fs.List(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			walk(path.Join(p, n))
		}
	}
	walk(dir)
	return out
}

func diff(got, want map[string]string) error {
	for p, w := range want {
		if g, ok := got[p]; !ok {
			return fmt.Errorf("%s is missing", p)
		} else if g != w {
			return fmt.Errorf("%s holds %.40q, want %.40q", p, g, w)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			return fmt.Errorf("%s should not be there", p)
		}
	}
	return nil
}

func write(fs vfs.FS, name, content string) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(content)); err != nil {
		return err
	}
	return f.Close()
}

// TestOverlayIsAFilesystem does random operations on an overlay and on a plain copy of its base: both must answer the
// same, and the base must stay as it was.
func TestOverlayIsAFilesystem(t *testing.T) {
	rng := testkit.RandomSource(t)
	for range 150 {
		base, plain := vfs.NewMem(), vfs.NewMem()
		names := []string{"a", "b", "c"}
		var places []string // of files and directories, up to two levels below the root
		for _, x := range names {
			places = append(places, "/"+x)
			for _, y := range names {
				places = append(places, "/"+x+"/"+y)
				for _, z := range names[:2] {
					places = append(places, "/"+x+"/"+y+"/"+z)
				}
			}
		}
		for range rng.IntN(20) {
			p := places[rng.IntN(len(places))]
			isFile := rng.IntN(2) == 0
			for _, fs := range []vfs.FS{base, plain} {
				if isFile {
					if info, err := fs.Stat(p); err == nil && info.IsDir() {
						continue
					}
					_ = fs.MkdirAll(path.Dir(p), 0o700)
					_ = write(fs, p, "base "+p)
				} else {
					_ = fs.MkdirAll(p, 0o700)
				}
			}
		}
		before := tree(t, base, "/")
		over := Overlay(base)
		var log []string
		linked := false
		for step := range 40 {
			p, q := places[rng.IntN(len(places))], places[rng.IntN(len(places))]
			content := fmt.Sprintf("step %d", step)
			isDir := func(p string) bool { info, err := plain.Stat(p); return err == nil && info.IsDir() }
			exists := func(p string) bool { _, err := plain.Stat(p); return err == nil }
			belowFile := func(p string) bool {
				for p = path.Dir(p); p != "/"; p = path.Dir(p) {
					if exists(p) && !isDir(p) {
						return true
					}
				}
				return false
			}
			if belowFile(p) || belowFile(q) {
				continue // which error comes first is nobody's business
			}
			var op string
			var do func(fs vfs.FS) error
			switch rng.IntN(9) {
			case 0:
				if isDir(p) {
					continue // a MemFS lets a file take a directory's place
				}
				op, do = "create "+p, func(fs vfs.FS) error { return write(fs, p, content) }
			case 1:
				op, do = "mkdir "+p, func(fs vfs.FS) error { return fs.MkdirAll(p, 0o700) }
			case 2:
				op, do = "remove "+p, func(fs vfs.FS) error { return fs.Remove(p) }
			case 3:
				op, do = "removeall "+p, func(fs vfs.FS) error { return fs.RemoveAll(p) }
			case 4:
				if p == q || strings.HasPrefix(q, p+"/") || isDir(q) || !exists(path.Dir(q)) || !isDir(path.Dir(q)) || isDir(p) && exists(q) {
					continue // a MemFS loses the file where the target cannot be
				}
				op, do = "rename "+p+" "+q, func(fs vfs.FS) error { return fs.Rename(p, q) }
			case 5:
				if isDir(p) {
					continue // a MemFS links directories
				}
				linked = true
				op, do = "link "+p+" "+q, func(fs vfs.FS) error { return fs.Link(p, q) }
			case 6:
				if p == q || isDir(p) || isDir(q) || !isDir(path.Dir(q)) || linked {
					continue // the overlay's link is a copy, which does not follow what is written to the other
				}
				op, do = "reuse "+p+" "+q, func(fs vfs.FS) error {
					f, err := fs.ReuseForWrite(p, q, vfs.WriteCategoryUnspecified)
					if err != nil {
						return err
					}
					if _, err := f.Write([]byte("0123456789" + content)); err != nil { // at least what was there
						return err
					}
					return f.Close()
				}
			case 7:
				op, do = "opendir "+p, func(fs vfs.FS) error {
					if exists(p) && !isDir(p) {
						return os.ErrInvalid // a MemFS opens files as directories
					}
					f, err := fs.OpenDir(p)
					if err != nil {
						return err
					}
					return f.Close()
				}
			case 8:
				op, do = "list "+p, func(fs vfs.FS) error {
					if exists(p) && !isDir(p) {
						return os.ErrInvalid
					}
					_, err := fs.List(p)
					return err
				}
			}
			log = append(log, op)
			got, want := do(over), do(plain)
			if (got == nil) != (want == nil) || os.IsNotExist(got) != os.IsNotExist(want) {
				t.Fatalf("%s: %v, want %v\n%s", op, got, want, strings.Join(log, "\n"))
			}
			if err := diff(tree(t, over, "/"), tree(t, plain, "/")); err != nil {
				t.Fatalf("behind %s: %v\n%s", op, err, strings.Join(log, "\n"))
			}
		}
		if err := diff(tree(t, base, "/"), before); err != nil {
			t.Fatalf("the base changed: %v\n%s", err, strings.Join(log, "\n"))
		}
	}
}

// TestOverlayCarriesADatabase: Pebble writes, flushes and compacts over a directory of the operating system that it
// must not change.
func TestOverlayCarriesADatabase(t *testing.T) {
	dir := path.Join(t.TempDir(), "db")
	options := func(fs vfs.FS) *pebble.Options {
		return &pebble.Options{FS: fs, MemTableSize: 64 << 10, Logger: Logger(nil, "test", func(m string) { panic(m) })}
	}
	fill := func(db *pebble.DB, from, to int, want map[string]string) {
		t.Helper()
		for i := from; i < to; i++ {
			k, v := fmt.Sprintf("key-%05d", i%1500), fmt.Sprintf("%d %s", i, strings.Repeat("v", 100))
			if err := db.Set([]byte(k), []byte(v), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			want[k] = v
		}
	}
	check := func(db *pebble.DB, want map[string]string) {
		t.Helper()
		it, err := db.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		got := map[string]string{}
		for ok := it.First(); ok; ok = it.Next() {
			got[string(it.Key())] = string(it.Value())
		}
		if err := it.Error(); err != nil {
			t.Fatal(err)
		}
		if err := diff(got, want); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{}
	db, err := pebble.Open(dir, options(vfs.Default))
	if err != nil {
		t.Fatal(err)
	}
	fill(db, 0, 1000, want)
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	fill(db, 1000, 1200, want) // these are in the log only
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	onDisk := maps.Clone(want)
	before := tree(t, vfs.Default, dir)

	over := Overlay(vfs.Default)
	for round := range 3 {
		db, err := pebble.Open(dir, options(over))
		if err != nil {
			t.Fatal(err)
		}
		check(db, want)
		fill(db, 1200+round*3000, 4200+round*3000, want)
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := db.Compact(t.Context(), []byte("a"), []byte("z"), false); err != nil {
			t.Fatal(err)
		}
		check(db, want)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := diff(tree(t, vfs.Default, dir), before); err != nil {
			t.Fatal("the base changed: ", err)
		}
	}
	fresh := Overlay(vfs.Default)
	if db, err = pebble.Open(dir, options(fresh)); err != nil {
		t.Fatal(err)
	}
	check(db, onDisk)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOverlayOfAReadOnlyFile: a file of the base is copied before it is changed in place.
func TestOverlayOfAReadOnlyFile(t *testing.T) {
	base := vfs.NewMem()
	if err := write(base, "/f", "from the base"); err != nil {
		t.Fatal(err)
	}
	over := Overlay(base)
	f, err := over.OpenReadWrite("/f", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("FROM"), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := contentOf(t, over, "/f"); got != "FROM the base" {
		t.Errorf("the overlay holds %q", got)
	}
	if got := contentOf(t, base, "/f"); got != "from the base" {
		t.Errorf("the base holds %q", got)
	}
	if names, err := over.List("/"); err != nil || !slices.Equal(names, []string{"f"}) {
		t.Errorf("%q, %v", names, err)
	}
}
