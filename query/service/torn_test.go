package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/testkit"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

var ages = regexp.MustCompile(`"age_ms":\d+`)

// ageless is an answer without how old it is.
func ageless(answer string) string { return ages.ReplaceAllString(answer, "") }

// journalBytes are all files of the journal and the head file, with their names.
func journalBytes(t *testing.T, fs vfs.FS) string {
	t.Helper()
	var out strings.Builder
	names, err := fs.List(fs.PathJoin(dataDir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&out, "%s %s\n", name, testkit.ReadFile(t, fs, fs.PathJoin(dataDir, "journal", name)))
	}
	if _, err := fs.Stat(fs.PathJoin(dataDir, "head")); err == nil {
		fmt.Fprintf(&out, "head %s\n", testkit.ReadFile(t, fs, fs.PathJoin(dataDir, "head")))
	}
	return out.String()
}

// put replaces dataDir/name of a filesystem by that of another.
func put(t *testing.T, to, from *vfs.MemFS, name string) {
	t.Helper()
	path := to.PathJoin(dataDir, name)
	if err := to.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if ok, err := vfs.Clone(from, to, path, path, vfs.CloneSync); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// torn is a directory whose journal ends at last, without a head file, and whose index has applied all up to known, and of which the rest is lost.
func (w *world) torn() (fs *vfs.MemFS, last, known uint64) {
	for range 20 {
		w.some()
	}
	w.must(errors.Join(w.x.CatchUp(w.t.Context(), nil), w.x.Flush()))
	last, fs = w.j.Durable(), w.left()
	w.some()
	w.must(errors.Join(w.x.CatchUp(w.t.Context(), nil), w.x.Flush()))
	put(w.t, fs, w.left(), "index")
	w.must(fs.Remove(fs.PathJoin(dataDir, "head")))
	return fs, last, w.j.Durable()
}

func (w *world) close() { w.must(errors.Join(w.x.Close(), w.j.Close())) }

// allSilent fails where an answer of the engine at an offset is not in doubt for what may be lost, and returns all of them.
func (w *world) allSilent(what string, e *query.Engine, questions []query.Question, at uint64) string {
	w.t.Helper()
	got, err := e.Lookup(w.t.Context(), questions, query.When{Kind: query.AtOffset, Offset: at})
	w.must(err)
	for i := range got {
		if !got[i].Silent {
			w.t.Fatalf("%s: %v is not in doubt", what, got[i].Name)
		}
		got[i].AsOf.AgeMs = nil
	}
	b, err := json.Marshal(got)
	w.must(err)
	return string(b)
}

// flipIndex damages the history in the index's largest table: what it says of itself can still be read.
func flipIndex(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	dir := fs.PathJoin(dataDir, "index")
	list, err := pebblefile.List(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	largest := pebblefile.File{}
	for _, f := range list {
		if f.Kind == pebblefile.Table && f.Size > largest.Size {
			largest = f
		}
	}
	b := testkit.ReadFile(t, fs, fs.PathJoin(dir, largest.Name))
	b[len(b)/3] ^= 1
	if err := datadir.WriteFile(fs, dir, largest.Name, b); err != nil {
		t.Fatal(err)
	}
}

// TestAtRestKeepsWhatTheIndexKnew: where the index alone knows that the journal once reached further it is computed anew, on disk, and what it knew
// outlives it, until a writer wrote the loss down; no question changes the journal.
func TestAtRestKeepsWhatTheIndexKnew(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	fs, last, known := w.torn()
	before := journalBytes(t, fs)
	questions := w.questions(w.rng, 60)
	want, o := "", service.Options{FS: fs}
	for i, harm := range []func(){
		func() {},
		func() {}, // the index is new
		func() { flipIndex(t, fs) },
		func() { w.must(fs.RemoveAll(fs.PathJoin(dataDir, "index"))) },
		func() {
			w.must(fs.RemoveAll(fs.PathJoin(dataDir, "index")))
			w.must(fs.MkdirAll(fs.PathJoin(dataDir, "index"), 0o700))
		},
	} {
		harm()
		for _, open := range []func() (*service.AtRest, error){
			func() (*service.AtRest, error) { return service.HealAtRest(t.Context(), dataDir, o) },
			func() (*service.AtRest, error) { return service.OpenAtRest(t.Context(), dataDir, o) },
		} {
			a, err := open()
			w.must(err)
			got := w.allSilent(fmt.Sprint(i), &a.Engine, questions, last)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%d: answers\n%s\nbefore\n%s", i, got, want)
			}
			w.must(a.Close())
			if journalBytes(t, fs) != before {
				t.Fatalf("%d: a question changed the journal", i)
			}
		}
		if got := index.KnownTo(dataDir, index.Options{FS: fs}).To(w.j.ID()); got != known {
			t.Fatalf("%d: what is known ends at %d, want %d", i, got, known)
		}
	}
	var found []string
	_, err := service.Verify(t.Context(), dataDir, service.VerifyOptions{FS: fs, Scratch: "scratch", Report: func(f journal.Finding) { found = append(found, f.What) }})
	w.must(err)
	if !strings.Contains(strings.Join(found, "\n"), "acknowledged records are gone from the journal's end") {
		t.Errorf("verify finds %q", found)
	}
	_, err = service.BackupAtRest(t.Context(), dataDir, "backup", backup.Options{FS: fs})
	w.must(err)
	if got := journal.Kept(fs, "backup", "head"); got.Offset != known {
		t.Errorf("the backup's head file knows of %d, want %d", got.Offset, known)
	}
	writer, err := service.OpenForWriting(t.Context(), dataDir, "the test", o)
	w.must(err)
	w.must(writer.Index.CatchUp(t.Context(), nil))
	if r, err := writer.Journal.Record(known + 1); err != nil || r.Kind != journal.TailLost {
		t.Errorf("a writer writes %+v, %v", r, err)
	}
	if got := w.allSilent("a writer", &query.Engine{Journal: writer.Journal, Index: writer.Index}, questions, last); got != want {
		t.Errorf("at rest %s\na writer %s", want, got)
	}
	w.must(writer.Close())
	if _, err := fs.Stat(fs.PathJoin(dataDir, index.KnownFile)); err == nil {
		t.Error("what was written down is kept beside")
	}
}

// TestCrashWhileTheIndexGoes: at whatever moment the machine stops while the index that knows of a loss is computed anew, the loss stays known.
func TestCrashWhileTheIndexGoes(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	fs, last, known := w.torn()
	live := vfs.NewCrashableMem()
	if ok, err := vfs.Clone(fs, live, dataDir, dataDir, vfs.CloneSync); !ok || err != nil {
		t.Fatal(ok, err)
	}
	root, err := live.OpenDir("/")
	w.must(err)
	w.must(root.Sync())
	var left []*vfs.MemFS
	watched := errorfs.Wrap(live, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if live.PathDir(op.Path) != dataDir || op.Kind != errorfs.OpRename && op.Kind != errorfs.OpRemoveAll {
			return nil
		}
		for _, unsynced := range []int{0, 100} {
			left = append(left, live.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: w.rng}))
		}
		killed := vfs.NewMem() // the machine goes on
		_, err := vfs.Clone(live, killed, dataDir, dataDir)
		left = append(left, killed)
		return err
	}))
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: watched})
	w.must(err)
	w.must(a.Close())
	left = append(left, live.CrashClone(vfs.CrashCloneCfg{}))
	questions, gone := w.questions(w.rng, 20), 0
	for i, fs := range left {
		if _, err := fs.Stat(fs.PathJoin(dataDir, "index")); err != nil {
			gone++
		}
		if got := index.KnownTo(dataDir, index.Options{FS: fs}).To(w.j.ID()); got != known {
			t.Errorf("crash %d of %d: what is known ends at %d, want %d", i, len(left), got, known)
		}
		a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
		w.must(err)
		w.allSilent(fmt.Sprintf("crash %d of %d", i, len(left)), &a.Engine, questions, last)
		w.must(a.Close())
	}
	if gone == 0 {
		t.Errorf("none of %d crashes left a directory without an index", len(left))
	}
}

// TestHealAtRest: a damaged index is computed anew, on disk or where that cannot be had in memory, and a journal whose end is gone stays as it is.
func TestHealAtRest(t *testing.T) {
	w := newWorld(t, 3)
	defer w.close()
	for range 20 {
		w.some()
	}
	w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush()))
	last, damaged := w.j.Durable(), w.left()
	w.some()
	w.awaitHead()
	w.must(datadir.WriteFile(damaged, dataDir, "head", testkit.ReadFile(t, w.fs, w.fs.PathJoin(dataDir, "head"))))
	moment := query.When{Kind: query.AtOffset, Offset: last}
	ask := func(e *query.Engine) (string, error) {
		out := ""
		err := e.Objects(t.Context(), query.ObjectsQuestion{At: moment}, nil, func(o *query.ObjectLine) error {
			b, err := query.AppendJSON(nil, o)
			out += string(b)
			return err
		})
		return ageless(out), err
	}
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: damaged})
	w.must(err)
	want, err := ask(&a.Engine)
	w.must(errors.Join(err, a.Close()))

	flipIndex(t, damaged)
	before, beforeAll := journalBytes(t, damaged), digest(t, damaged)
	for _, c := range []struct {
		name   string
		fs     vfs.FS
		onDisk bool
	}{
		{"a read-only directory", readOnly{damaged, func(string, string) {}}, false},
		{"a full disk", full{errorfs.Wrap(damaged, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return syscall.ENOSPC
			}
			return nil
		}))}, false},
		{"a directory", damaged, true},
	} {
		o := service.Options{FS: c.fs}
		a, err := service.OpenAtRest(t.Context(), dataDir, o)
		if err == nil {
			_, err = ask(&a.Engine)
			a.Close()
		}
		if !index.Damage(err) {
			t.Fatalf("%s: a damaged index: %v", c.name, err)
		}
		a, err = service.HealAtRest(t.Context(), dataDir, o)
		w.must(err)
		got, err := ask(&a.Engine)
		w.must(errors.Join(err, a.Close()))
		if got != want {
			t.Errorf("%s: answers\n%s\nwant\n%s", c.name, got, want)
		}
		if journalBytes(t, damaged) != before || !c.onDisk && digest(t, damaged) != beforeAll {
			t.Errorf("%s: a question changed it", c.name)
		}
	}
	a, err = service.OpenAtRest(t.Context(), dataDir, service.Options{FS: damaged})
	w.must(err)
	got, err := ask(&a.Engine)
	w.must(errors.Join(err, a.Close()))
	if got != want {
		t.Errorf("behind the heal\n%s\nwant\n%s", got, want)
	}
}

// TestIndexOfAnotherJournal: what an index knows that was put in from another, longer journal is no loss.
func TestIndexOfAnotherJournal(t *testing.T) {
	w, other := newWorld(t, 4), newWorld(t, 5)
	defer w.close()
	defer other.close()
	for range 10 {
		w.some()
		other.some()
		other.some()
	}
	w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush(), other.x.CatchUp(t.Context(), nil), other.x.Flush()))
	if other.j.Durable() <= w.j.Durable() {
		t.Fatal("the other journal is not longer")
	}
	w.awaitHead()
	other.awaitHead()
	questions := w.questions(w.rng, 60)
	moment := query.When{Kind: query.AtOffset, Offset: w.j.Durable()}
	ask := func(e *query.Engine) string {
		got, err := e.Lookup(t.Context(), questions, moment)
		w.must(err)
		for i := range got {
			got[i].AsOf.AgeMs = nil
		}
		b, err := json.Marshal(got)
		w.must(err)
		return string(b)
	}
	want := ask(&query.Engine{Journal: w.j, Index: w.x})
	for _, head := range []string{"its own", "the other's", "none"} {
		mixed := w.left()
		put(t, mixed, other.left(), "index")
		switch head {
		case "the other's":
			put(t, mixed, other.left(), "head")
		case "none":
			w.must(mixed.Remove(mixed.PathJoin(dataDir, "head")))
		}
		asWriter := vfs.NewMem()
		if ok, err := vfs.Clone(mixed, asWriter, dataDir, dataDir); !ok || err != nil {
			t.Fatal(ok, err)
		}
		before := journalBytes(t, mixed)
		for range 2 {
			a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: mixed})
			w.must(err)
			if got := ask(&a.Engine); got != want {
				t.Errorf("head file %s: %s\nwant %s", head, got, want)
			}
			w.must(a.Close())
		}
		if journalBytes(t, mixed) != before {
			t.Errorf("head file %s: a question changed the journal", head)
		}
		if _, err := mixed.Stat(mixed.PathJoin(dataDir, index.KnownFile)); err == nil {
			t.Errorf("head file %s: what the other index knew is kept", head)
		}
		writer, err := service.OpenForWriting(t.Context(), dataDir, "the test", service.Options{FS: asWriter})
		w.must(err)
		if writer.Journal.Durable() != w.j.Durable() {
			t.Errorf("head file %s: a writer takes it for a loss", head)
		}
		w.must(writer.Index.CatchUp(t.Context(), nil))
		if got := ask(&query.Engine{Journal: writer.Journal, Index: writer.Index}); got != want {
			t.Errorf("head file %s, writing: %s\nwant %s", head, got, want)
		}
		w.must(writer.Close())
	}
}
