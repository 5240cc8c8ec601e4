package pebblefile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// database makes one with rows k0000… of 100 bytes: in a table, and, with logged, in a log only. It returns its files as they are while it is
// open.
func database(t *testing.T, rows int, logged bool) (fs *vfs.MemFS, files []File) {
	t.Helper()
	return databaseWith(t, options(), rows, logged)
}

func databaseWith(t *testing.T, o *pebble.Options, rows int, logged bool) (fs *vfs.MemFS, files []File) {
	t.Helper()
	live := vfs.NewMem()
	o.FS = live
	// The first log of a new database is of an older format.
	db, err := pebble.Open("db", o)
	if err == nil {
		err = db.Close()
	}
	if err == nil {
		db, err = pebble.Open("db", o)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := db.Set(fmt.Appendf(nil, "k%04d", i), fmt.Appendf(nil, "%0100d", i), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if !logged {
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	fs = vfs.NewMem()
	if _, err := vfs.Clone(live, fs, "db", "db"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if files, err = List(fs, "db"); err != nil {
		t.Fatal(err)
	}
	return fs, files
}

func options() *pebble.Options {
	o := &pebble.Options{FormatMajorVersion: pebble.FormatTableFormatV6, Logger: silent{}}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// change rewrites a file.
func change(t *testing.T, fs *vfs.MemFS, path string, f func([]byte) []byte) {
	t.Helper()
	file, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := file.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	file.Close()
	out, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = out.Write(f(b))
	}
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
}

func one(t *testing.T, files []File, k Kind) File {
	t.Helper()
	var found []File
	for _, f := range files {
		if f.Kind == k && f.Size > 1000 {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d files of kind %v: %+v", len(found), k, files)
	}
	return found[0]
}

func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"000012.sst": Table, "000003.log": Log, "MANIFEST-000001": Manifest, "OPTIONS-000004": Options, "marker.manifest.000001.MANIFEST-000001": Marker,
		"000012.dbtmp": Temp, "LOCK": Other, "x.sst": Other, "MANIFEST-": Other, "": Other,
	} {
		if got, _ := KindOf(name); got != want {
			t.Errorf("%q is %v, want %v", name, got, want)
		}
	}
	files := []File{{Name: "marker.manifest.000001.MANIFEST-000001", Kind: Marker}, {Name: "marker.manifest.000010.MANIFEST-000009", Kind: Marker}, {Name: "marker.format-version.000003.021", Kind: Marker}}
	if v, ok := MarkerValue(files, "manifest"); !ok || v != "MANIFEST-000009" {
		t.Errorf("manifest marker %q, %v", v, ok)
	}
	if _, ok := MarkerValue(files, "other"); ok {
		t.Error("a marker that is not there")
	}
}

// TestTable: a damaged block is found, and what lies around it is read.
func TestTable(t *testing.T) {
	const rows = 2000
	fs, files := database(t, rows, false)
	path := "db/" + one(t, files, Table).Name
	read := func(low string) (keys []string, last []byte, damage error) {
		table, err := OpenTable(fs, path, options())
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		last, damage, err = table.Rows(t.Context(), []byte(low), nil, func(r Row) error {
			if want := fmt.Sprintf("%0100s", strings.TrimLeft(string(r.Key[1:]), "0")); string(r.Value) != want || r.Deleted {
				t.Errorf("row %q is %q", r.Key, r.Value)
			}
			keys = append(keys, string(r.Key))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return keys, last, damage
	}
	if keys, _, damage := read(""); len(keys) != rows || damage != nil {
		t.Fatalf("%d rows, %v", len(keys), damage)
	}
	change(t, fs, path, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	table, err := OpenTable(fs, path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Check(); err == nil {
		t.Error("a flipped bit is not found")
	}
	before, last, damage := read("")
	if damage == nil || len(before) == 0 || len(before) == rows || string(last) != before[len(before)-1] {
		t.Fatalf("%d rows before the damage, the last %q, %v", len(before), last, damage)
	}
	if _, _, err := table.Readable([]byte(before[len(before)-1] + "x")); err == nil {
		t.Error("the damaged block can be read")
	}
	if at, ok, err := table.Readable([]byte("k1900")); err != nil || !ok || string(at) != "k1900" {
		t.Errorf("behind the damage: %q, %v, %v", at, ok, err)
	}
	if after, _, damage := read("k1900"); len(after) != 100 || damage != nil {
		t.Errorf("%d rows behind the damage, %v", len(after), damage)
	}
}

// TestSalvageWithoutIndex: the rows of a table can be had without its footer and its index.
func TestSalvageWithoutIndex(t *testing.T) {
	const rows = 2000
	fs, files := database(t, rows, false)
	path := "db/" + one(t, files, Table).Name
	for _, cut := range []int{1, 40, 3000, 20000} {
		copied := vfs.NewMem()
		if _, err := vfs.Clone(fs, copied, "db", "db"); err != nil {
			t.Fatal(err)
		}
		size := 0
		change(t, copied, path, func(b []byte) []byte { size = len(b); return b[:len(b)-cut] })
		if _, err := OpenTable(copied, path, options()); err == nil {
			t.Error("a table without its end opens")
		}
		n := 0
		err := Salvage(t.Context(), copied, path, pebble.DefaultComparer, func(r Row) error {
			if want := fmt.Sprintf("k%04d", n); string(r.Key) != want || !strings.HasSuffix(string(r.Value), fmt.Sprint(n)) {
				t.Fatalf("row %q is %q, want %s", r.Key, r.Value, want)
			}
			n++
			return nil
		})
		least := rows * (size - cut - 8<<10) / size // a block and the index
		if err != nil || n < least || cut <= 40 && n != rows {
			t.Errorf("%d bytes short of %d: %d rows of %d, %v", cut, size, n, rows, err)
		}
	}
}

// TestLog: a log is read to its end; behind damage only where it is proven that what lies there was acknowledged.
func TestLog(t *testing.T) {
	const rows = 1200
	fs, files := database(t, rows, true)
	f := one(t, files, Log)
	path := "db/" + f.Name
	read := func(how func(f func(Batch) error) (Tail, error)) (keys []string, tail Tail) {
		tail, err := how(func(b Batch) error {
			return b.Rows(func(r Row, _ bool) error {
				keys = append(keys, string(r.Key))
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return keys, tail
	}
	plain := func(g func(Batch) error) (Tail, error) { return ReadLog(t.Context(), fs, path, f.Num, g) }
	salvage := func(g func(Batch) error) (Tail, error) { return SalvageLog(t.Context(), fs, path, f.Num, g) }
	whole, tail := read(plain)
	if len(whole) != rows || tail.Err != nil || !tail.Clean {
		t.Fatalf("%d rows, %+v", len(whole), tail)
	}
	change(t, fs, path, func(b []byte) []byte { b[tail.End/2] ^= 1; return b })
	some, damaged := read(plain)
	if damaged.Err == nil || damaged.Clean || len(some) == 0 || len(some) >= rows*2/3 {
		t.Errorf("%d rows before a flipped bit, %+v", len(some), damaged)
	}
	most, damaged := read(salvage)
	if damaged.Err == nil || len(most) <= len(some) || !slices.Contains(most, whole[rows-1]) || len(most) < rows/2 {
		t.Errorf("%d rows saved, %d before the damage, %+v", len(most), len(some), damaged)
	}
	// Near the end nothing proves that more was there.
	change(t, fs, path, func(b []byte) []byte { b[tail.End/2] ^= 1; b[tail.End-20] ^= 1; return b })
	if keys, torn := read(salvage); torn.Err != nil || torn.Clean || len(keys) != rows-1 {
		t.Errorf("%d rows of a torn log, %+v", len(keys), torn)
	}
}

// TestCheckOptions: an OPTIONS file has no checksum, and is compared with what would be written.
func TestCheckOptions(t *testing.T) {
	written := []*pebble.Options{options()}
	o := options()
	o.EnsureDefaults()
	text := o.String()
	if what := compareOptions(text, written); what != "" {
		t.Errorf("as written: %s", what)
	}
	for i := range text {
		b := []byte(text)
		b[i] ^= 1
		if compareOptions(string(b), written) == "" {
			t.Errorf("flipped at %d: not found", i)
		}
		if compareOptions(text[:i], written) == "" {
			t.Errorf("cut at %d: not found", i)
		}
	}
}
