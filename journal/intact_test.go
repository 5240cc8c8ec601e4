package journal

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// filesOf are the files of the journal's database of a kind, by number.
func filesOf(t *testing.T, fs vfs.FS, k pebblefile.Kind) (paths []string) {
	t.Helper()
	files, err := pebblefile.List(fs, fs.PathJoin(testDir, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Kind == k {
			paths = append(paths, fs.PathJoin(testDir, folder, f.Name))
		}
	}
	return paths
}

func removeFile(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// changeFile rewrites a file.
func changeFile(t *testing.T, fs vfs.FS, path string, f func([]byte) []byte) {
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
	if err := datadir.WriteFile(fs, fs.PathDir(path), fs.PathBase(path), f(b)); err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless opening, for reading and for writing, finds damage and changes nothing.
func refused(t *testing.T, o Options, what string) {
	t.Helper()
	before := listing(t, o.FS)
	for _, open := range []func() (*Journal, error){
		func() (*Journal, error) { return OpenReadOnly(testDir, o) },
		func() (*Journal, error) { return Open(testDir, nil, o) },
	} {
		j, err := open()
		if corrupt := (*CorruptError)(nil); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "kvjournal repair") {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			mustClose(t, j)
		}
	}
	if after := listing(t, o.FS); after != before {
		t.Errorf("%s: an open changed the files:\n%s\nbefore\n%s", what, after, before)
	}
}

func listing(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List(fs.PathJoin(testDir, folder))
	if err != nil {
		return err.Error()
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// copied is a MemFS with a copy of the directory, which is at rest.
func copied(t *testing.T, fs *vfs.MemFS) *vfs.MemFS {
	t.Helper()
	out := vfs.NewMem()
	if ok, err := vfs.Clone(fs, out, testDir, testDir); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return out
}

// copiedOpen is copied of a journal that is open and not written to: of a moment in which no file comes or goes, and no table is there
// that its manifest does not name, as one that a compaction is still writing, or those that it took the place of.
func copiedOpen(t *testing.T, fs *vfs.MemFS, j *Journal) (out *vfs.MemFS) {
	t.Helper()
	atRest(t, fs, j, func() error {
		out = vfs.NewMem()
		ok, err := vfs.Clone(fs, out, testDir, testDir)
		if !ok && err == nil {
			err = datadir.ErrMissing
		}
		return err
	})
	return out
}

// crashedOpen is what a crash leaves in such a moment: what was synced. In any other it may leave a table whose name was synced, by whatever
// synced the directory, before its bytes were.
func crashedOpen(t *testing.T, fs *vfs.MemFS, j *Journal) (out *vfs.MemFS) {
	t.Helper()
	atRest(t, fs, j, func() error { out = fs.CrashClone(vfs.CrashCloneCfg{}); return nil })
	return out
}

// atRest calls copy until no file came or went beside it, and all tables were live.
func atRest(t *testing.T, fs *vfs.MemFS, j *Journal, copy func() error) {
	t.Helper()
	testkit.Eventually(t, "a copy beside which no file comes or goes, of live tables alone", func() bool {
		before := namesOf(t, fs)
		live, err := liveTables(j.db)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range before {
			if kind, num := pebblefile.KindOf(name); kind == pebblefile.Table && !live[num] {
				return false
			}
		}
		err = copy()
		same := slices.Equal(before, namesOf(t, fs))
		if same && err != nil {
			t.Fatal(err)
		}
		return same
	})
}

// namesOf are the names of all files of the database.
func namesOf(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List(fs.PathJoin(testDir, folder))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestFilesGone: where a file is gone without which Pebble would begin anew, or would not know what it had, nothing is opened.
func TestFilesGone(t *testing.T) {
	whole := vfs.NewMem()
	o := testOptions(whole)
	recorded(t, o)
	j := mustOpen(t, o, 0)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	for _, gone := range []string{"marker.manifest", "marker.format-version", "MANIFEST", ".sst"} {
		o.FS = copied(t, whole)
		n := 0
		for _, k := range []pebblefile.Kind{pebblefile.Marker, pebblefile.Manifest, pebblefile.Table} {
			for _, path := range filesOf(t, o.FS, k) {
				if strings.Contains(path, gone) && !(gone == "MANIFEST" && k == pebblefile.Marker) {
					removeFile(t, o.FS, path)
					n++
				}
			}
		}
		if n == 0 {
			t.Fatalf("nothing is named %s", gone)
		}
		refused(t, o, gone+" is gone")
	}
	o.FS = copied(t, whole)
	if err := o.FS.RemoveAll(o.FS.PathJoin(testDir, folder)); err != nil {
		t.Fatal(err)
	}
	if j, err := OpenReadOnly(testDir, o); err == nil || !strings.Contains(err.Error(), "kvjournal repair") {
		t.Errorf("the whole database is gone: %v, %v", j, err)
	}
}

// TestManifestCut: Pebble takes what it cannot read of a manifest for its end, and would remove the tables that it then does not know.
func TestManifestCut(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	for range 3 {
		m.appendMany(t, j, s, 30, 5)
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, j)
	manifestCuts(t, o, m)
	// The manifest of one that was only opened begins with all tables; the next record has the last sequence number.
	o.FS = mem
	mustClose(t, mustOpen(t, o, 0))
	manifestCuts(t, o, m)
}

// manifestCuts cuts the newest manifest everywhere: a journal that is opened holds all, and goes on; one that is not is left as it was.
func manifestCuts(t *testing.T, o Options, m *model) {
	t.Helper()
	whole := o.FS.(*vfs.MemFS)
	manifests := filesOf(t, whole, pebblefile.Manifest)
	manifest := manifests[len(manifests)-1]
	size, stopped := 0, 0
	changeFile(t, whole, manifest, func(b []byte) []byte { size = len(b); return b })
	for cut := size - 1; cut > 0; cut -= 3 {
		o.FS = copied(t, whole)
		changeFile(t, o.FS, manifest, func(b []byte) []byte { return b[:cut] })
		j, err := Open(testDir, nil, o)
		if err == nil {
			checkAll(t, j, m.recs)
			g := j.NewGroup()
			g.Add(&Header{Kind: RecorderStarted, Source: m.recs[0].header.Source}, nil)
			if err := errors.Join(g.Commit(), j.Flush(), j.db.Compact(t.Context(), nil, []byte{0xff}, false)); err != nil {
				t.Errorf("cut at %d: going on: %v", cut, err)
			}
			mustClose(t, j)
			continue
		}
		if corrupt := (*CorruptError)(nil); !errors.As(err, &corrupt) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		stopped++
		if tables := filesOf(t, o.FS, pebblefile.Table); len(tables) != len(filesOf(t, whole, pebblefile.Table)) {
			t.Errorf("cut at %d: %d tables are left", cut, len(tables))
		}
	}
	if stopped == 0 {
		t.Error("no cut was found")
	}
}

// TestAllLogsGone: a journal that never flushed a table and lost its logs is not taken for one to which nothing was ever written.
func TestAllLogsGone(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.HeadEvery = 1
	j := mustOpen(t, o, 0)
	s, m := newStream(t, testkit.RandomSource(t), j, 2), &model{}
	m.appendMany(t, j, s, 30, 5)
	testkit.Eventually(t, "the head file follows", func() bool { return readHead(o.FS, testDir, j.id).offset == j.Durable() })
	o.FS = copiedOpen(t, o.FS.(*vfs.MemFS), j)
	for _, path := range filesOf(t, o.FS, pebblefile.Log) {
		removeFile(t, o.FS, path)
	}
	refused(t, o, "all logs are gone")
	mustClose(t, j)
}

// TestLogGone: a log in the middle is gone with records that no table has. Pebble does not miss it; no reader gets what lies behind.
func TestLogGone(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	s.payload = 3000
	m.appendMany(t, j, s, 400, 20) // more than the first memtable holds, by whatever seed: the copy's newest log is then a new, empty file
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	first := m.last()
	// A copy without what follows, to take the files of the database from: its manifest knows of no later table.
	before := copiedOpen(t, mem, j)
	m.appendMany(t, j, s, 60, 10)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	lost := m.last()
	s.payload = 100
	m.appendMany(t, j, s, 10, 3) // they are in one log
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	logs := filesOf(t, mem, pebblefile.Log)
	newest := logs[len(logs)-1]
	b := []byte{}
	changeFile(t, mem, newest, func(all []byte) []byte { b = bytes.Clone(all); return all }) // under the race detector MemFS spoils what it was given
	if err := datadir.WriteFile(before, before.PathJoin(testDir, folder), before.PathBase(newest), b); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)

	o.FS = copied(t, before)
	if j, err := OpenReadOnly(testDir, o); err == nil || !strings.Contains(err.Error(), "are gone") {
		t.Fatalf("reading over a hole from %d to %d: opened %v, %v", first+1, lost, j != nil, err)
	}
	j = mustOpen(t, o, 0)
	corrupt := (*CorruptError)(nil)
	if err := j.Sound(); !errors.As(err, &corrupt) || corrupt.Offset != first+1 {
		t.Errorf("the hole begins at %d: %v", first+1, err)
	}
	if b, err := j.NextBlock(nil, first); !errors.As(err, &corrupt) || corrupt.Offset != first+1 {
		t.Errorf("the block behind %d: %v, %v", first, b, err)
	}
	// Recording goes on.
	g := j.NewGroup()
	g.Add(&Header{Kind: Connected, Source: 1}, nil)
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
}

// TestFirstLogIsGuarded: a flipped bit in the first log of all is found, and not taken for its end.
func TestFirstLogIsGuarded(t *testing.T) {
	rng := testkit.RandomSource(t)
	mem := vfs.NewMem()
	o := testOptions(mem)
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 1), &model{}
	s.payload = 1000
	m.appendMany(t, j, s, 150, 1)
	o.FS = copiedOpen(t, mem, j)
	logs := filesOf(t, o.FS, pebblefile.Log)
	changeFile(t, o.FS, logs[len(logs)-1], func(b []byte) []byte { b[20_000] ^= 1; return b })
	refused(t, o, "a flipped bit in the first log")
}

// TestRecordingOverDamage: beside a damaged table recording goes on, however often it flushes and tries to compact; a reader that comes to the
// damage is told the offset and the file.
func TestRecordingOverDamage(t *testing.T) {
	rng := testkit.RandomSource(t)
	o := testOptions(vfs.NewMem())
	o.BlockRaw = 300
	j := mustOpen(t, o, 0)
	s, m := newStream(t, rng, j, 2), &model{}
	m.appendMany(t, j, s, 300, 5)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	table := filesOf(t, o.FS, pebblefile.Table)[0]
	changeFile(t, o.FS, table, func(b []byte) []byte { b[len(b)/3] ^= 1; return b })
	j = mustOpen(t, o, 0)
	defer mustClose(t, j)
	begun := m.last()
	for range 8 {
		m.appendMany(t, j, s, 100, 5)
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for at := uint64(0); ; {
		b, err := j.NextBlock(nil, at)
		if err == nil {
			at = b.Last()
			continue
		}
		corrupt := (*CorruptError)(nil)
		if !errors.As(err, &corrupt) || corrupt.Offset != at+1 || !strings.Contains(err.Error(), strings.TrimSuffix(o.FS.PathBase(table), ".sst")) {
			t.Errorf("behind offset %d: %v", at, err)
		}
		break
	}
	for at := begun; at < m.last(); {
		b, err := j.NextBlock(nil, at)
		if err != nil {
			t.Fatalf("behind offset %d, recorded over the damage: %v", at, err)
		}
		at = b.Last()
	}
}
