package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

const (
	dataDir = "/data"
	batches = 120
	objects = 20
)

// writeCapture writes a capture of objects that come and go, a batch a second, with a gap in the middle.
func writeCapture(t *testing.T, fs vfs.FS, path string, seed uint64) {
	t.Helper()
	writeSpaced(t, fs, path, seed, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), time.Second)
}

func writeSpaced(t *testing.T, fs vfs.FS, path string, seed uint64, begun time.Time, apart time.Duration) {
	t.Helper()
	w, err := capture.Create(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	records := []capture.Record{{Kind: capture.Connected, Received: begun.UnixNano()}}
	for i := range uint64(batches) {
		seq, at := i+1, begun.Add(time.Duration(i)*apart)
		if i >= batches/2 {
			seq += 5 // dropped by the publisher's queue
		}
		f := event.Fields{Type: event.Stored, ID: i + 1, Timestamp: at.UnixMilli(), Tenant: "default", Backend: "b", Medium: "cpu", Key: fmt.Sprint("k", rng.IntN(objects))}
		switch rng.IntN(20) {
		case 0:
			f = event.Fields{Type: event.Cleared, ID: i + 1, Timestamp: at.UnixMilli(), Tenant: "default", Backend: "b"}
		case 1, 2, 3, 4, 5, 6:
			f.Type = event.Removed
		}
		frame := event.SeqFrame(seq)
		records = append(records, capture.Record{Kind: capture.Message, Received: at.UnixNano(),
			Frames: [][]byte{{}, frame[:], enc.AppendPayload(nil, at.UnixMilli(), []event.Fields{f}, 0)}})
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func source(n int) string { return fmt.Sprint("source-", n) }

// writing opens the data directory on fs for writing, with n captures imported.
func writing(t *testing.T, fs vfs.FS, n int) *service.Writing {
	t.Helper()
	if err := fs.MkdirAll("/backups", 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := service.OpenForWriting(t.Context(), dataDir, "a test", service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		imported(t, fs, w, i)
	}
	return w
}

func imported(t *testing.T, fs vfs.FS, w *service.Writing, n int) {
	t.Helper()
	path := fmt.Sprintf("/%d.kvcap", n)
	writeCapture(t, fs, path, uint64(n))
	if _, err := w.Import(context.Background(), source(n), path, recorder.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Index.CatchUp(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
}

// answers are those about all objects of n sources, at several moments, and all their gaps, as JSON.
func answers(t *testing.T, e *query.Engine, n int) string {
	t.Helper()
	var out []any
	for i := range n {
		var questions []query.Question
		for k := range objects {
			questions = append(questions, query.Question{Name: query.Name{Source: source(i), Key: query.Bytes(fmt.Sprint("k", k))}})
		}
		for _, w := range []query.When{{}, {Kind: query.AtOffset, Offset: uint64(i*batches + batches/2)}, {Kind: query.AtSeq, Epoch: 1, Seq: 10}} {
			all, err := e.Lookup(t.Context(), questions, w)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range all {
				a.AsOf.AgeMs = nil
				out = append(out, a)
			}
		}
		if err := e.Gaps(t.Context(), &query.GapsQuery{Source: source(i)}, nil, func(g *query.GapOut) error { out = append(out, g); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func atRest(t *testing.T, fs vfs.FS, dir string, n int) string {
	t.Helper()
	a, err := service.OpenAtRest(t.Context(), dir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	return answers(t, &a.Engine, n)
}

// unlinkable is a filesystem without hard links between directories, as between two volumes, but for those of a stage.
type unlinkable struct{ vfs.FS }

func (u unlinkable) Link(from, to string) error {
	if !strings.Contains(to, "/backup.tmp/") {
		return syscall.EXDEV
	}
	return u.FS.Link(from, to)
}

// A backup of a directory that is written to answers as it did, on its volume and on another, whatever is written meanwhile; so does
// what is restored from it.
func TestLive(t *testing.T) {
	for _, links := range []bool{true, false} {
		t.Run(fmt.Sprint("links ", links), func(t *testing.T) {
			mem := vfs.NewMem()
			var fs vfs.FS = mem
			if !links {
				fs = unlinkable{mem}
			}
			w := writing(t, fs, 2)
			want := answers(t, &query.Engine{Journal: w.Journal, Index: w.Index}, 2)
			before := w.Journal.Durable()
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for i := 2; ; i++ {
					select {
					case <-stop:
						return
					default:
						imported(t, fs, w, i)
					}
				}
			}()
			for i := range 3 {
				to := fmt.Sprint("/backups/", i)
				r, err := backup.Live(t.Context(), w.Journal, w.Index, to, backup.Options{FS: fs})
				if err != nil {
					t.Fatal(err)
				}
				if r.DurableOffset < before || r.AppliedOffset > r.DurableOffset || r.Compared.Records == 0 || r.Compared.Events == 0 || (r.Linked > 0) != links || !r.Live {
					t.Errorf("%+v of a directory that held %d records", r, before)
				}
				if got := atRest(t, fs, to, 2); got != want {
					t.Errorf("the backup answers otherwise")
				}
				restored := fmt.Sprint("/restored/", i)
				if r, err = backup.Restore(t.Context(), to, restored, backup.Options{FS: fs}); err != nil {
					t.Fatal(err)
				}
				if r.Origin == r.JournalID || r.AppliedOffset != r.DurableOffset {
					t.Errorf("%+v", r)
				}
				if got := atRest(t, fs, restored, 2); got != want {
					t.Errorf("what was restored answers otherwise")
				}
				before = w.Journal.Durable()
			}
			close(stop)
			<-stopped
			if _, err := fs.Stat(dataDir + "/backup.tmp"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the stage stays: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// ready is a directory at rest with one source.
func ready(t *testing.T, fs vfs.FS) (want string) {
	t.Helper()
	w := writing(t, fs, 1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return atRest(t, fs, dataDir, 1)
}

func undisturbed() error { return nil }

// The places that a backup does not go to, and a restore neither.
func TestPlaces(t *testing.T) {
	fs := vfs.NewMem()
	want := ready(t, fs)
	take := func(to string) error {
		_, err := backup.AtRest(t.Context(), dataDir, to, undisturbed, backup.Options{FS: fs})
		return err
	}
	restore := func(from, to string) error {
		_, err := backup.Restore(t.Context(), from, to, backup.Options{FS: fs})
		return err
	}
	if err := take("/backups/a"); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("/full/x", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		says string
	}{
		{take("/backups/a"), "is there already"},
		{take(dataDir), "lie one in the other"},
		{take(dataDir + "/x"), "lie one in the other"},
		{take("/nowhere/a"), "must be there"},
		{restore("/backups/a", "/full"), "not empty"},
		{restore("/backups/a", dataDir), "not empty"},
		{restore("/backups/a", "/backups/a/x"), "lie one in the other"},
		{restore("/backups", "/new"), "not a kvjournal data directory"},
		{restore("/none", "/new"), "no kvjournal data here"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v, want an error that says %q", c.err, c.says)
		}
	}
	// The rest of a backup that was killed is cleared away; what is something else is not.
	if err := fs.MkdirAll("/backups/c.partial/journal", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := take("/backups/c"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("something else lies in the place: %v", err)
	}
	if err := datadir.WriteFile(fs, "/backups/c.partial", "KVJOURNAL.unfinished", nil); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFile(fs, "/backups/c.partial", "rest", nil); err != nil {
		t.Fatal(err)
	}
	if err := take("/backups/c"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat("/backups/c/rest"); err == nil {
		t.Error("the rest of a backup became part of the next")
	}
	disturbed := errors.New("a recorder came")
	if _, err := backup.AtRest(t.Context(), dataDir, "/backups/b", func() error { return disturbed }, backup.Options{FS: fs}); !errors.Is(err, disturbed) {
		t.Errorf("a recorder came meanwhile: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.AtRest(interrupted, dataDir, "/backups/b", undisturbed, backup.Options{FS: fs}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if names, _ := fs.List("/backups"); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
	if got := atRest(t, fs, "/backups/a", 1); got != want {
		t.Error("the backup answers otherwise")
	}
}

// A backup is not written to; what was restored is, goes on behind what the backup held, and neither changes the other's answers. An
// index of the one is not taken for one of the other.
func TestRestoredGoesOn(t *testing.T) {
	fs := vfs.NewMem()
	want := ready(t, fs)
	if _, err := backup.AtRest(t.Context(), dataDir, "/backups/a", undisturbed, backup.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.OpenForWriting(t.Context(), "/backups/a", "a test", service.Options{FS: fs}); !errors.Is(err, datadir.ErrBackup) {
		t.Fatalf("a backup opens for writing: %v", err)
	}
	r, err := backup.Restore(t.Context(), "/backups/a", "/restored", backup.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	grow := func(dir string, n int) {
		t.Helper()
		w, err := service.OpenForWriting(t.Context(), dir, "a test", service.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		imported(t, fs, w, n)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Both go on from the same offset, with different records.
	grow("/restored", 1)
	grow(dataDir, 2)
	for _, dir := range []string{dataDir, "/restored", "/backups/a"} {
		a, err := service.OpenAtRest(t.Context(), dir, service.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		origin, oerr := a.Journal.Origin()
		if dir == "/restored" {
			if oerr != nil || origin.Journal != r.Origin || origin.Offset != r.DurableOffset || a.Journal.ID().String() != r.JournalID {
				t.Errorf("origin %+v, %v; the report says %+v", origin, oerr, r)
			}
		} else if !errors.Is(oerr, journal.ErrNotFound) {
			t.Errorf("%s has an origin: %+v, %v", dir, origin, oerr)
		}
		if got := answers(t, &a.Engine, 1); got != want {
			t.Errorf("%s answers otherwise about what it held before", dir)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	right := atRestOf(t, fs, dataDir, 2)
	if err := fs.RemoveAll(dataDir + "/index"); err != nil {
		t.Fatal(err)
	}
	if err := fs.Rename("/restored/index", dataDir+"/index"); err != nil {
		t.Fatal(err)
	}
	if got := atRestOf(t, fs, dataDir, 2); got != right {
		t.Error("an index of the restored journal answers for the one that it was copied from")
	}
}

// atRestOf are the answers about source n.
func atRestOf(t *testing.T, fs vfs.FS, dir string, n int) string {
	t.Helper()
	a, err := service.OpenAtRest(t.Context(), dir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var out strings.Builder
	for k := range objects {
		all, err := a.Lookup(t.Context(), []query.Question{{Name: query.Name{Source: source(n), Key: query.Bytes(fmt.Sprint("k", k))}}}, query.When{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			l.AsOf.AgeMs = nil
			b, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
	}
	return out.String()
}

// The i-th file operation of a backup, and of a restore, fails, for every i: an error and no backup, or a whole one; the directory that it
// is taken of stays as it was, and the next attempt succeeds. make crash visits every i; else it is each 17th or so.
func TestEachFailure(t *testing.T) {
	step := func() int32 { return 1 }
	if os.Getenv("KVJOURNAL_POINTS") == "" {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		some := rand.New(rand.NewPCG(seed, 1))
		step = func() int32 { return 1 + some.Int32N(33) }
	}
	for _, what := range []string{"backup", "restore"} {
		t.Run(what, func(t *testing.T) {
			begun := vfs.NewCrashableMem()
			want, from, ended := ready(t, begun), dataDir, 0
			if what == "restore" {
				from = "/backups/from"
				if _, err := backup.AtRest(t.Context(), dataDir, from, undisturbed, backup.Options{FS: begun}); err != nil {
					t.Fatal(err)
				}
			}
			for i := step() - 1; ; i += step() {
				mem := begun.CrashClone(vfs.CrashCloneCfg{}) // all that matters was synced
				at := errorfs.OnIndex(i)
				err := attempt(t, what, from, errorfs.Wrap(mem, survivable{errorfs.ErrInjected.If(at)}))
				failed := at.Index.Load() < 0
				if errors.Is(err, errEnded) {
					ended++
				}
				if err != nil && !failed {
					t.Fatalf("nothing failed: %v", err)
				}
				if err == nil || datadir.Check(mem, "/backups/to") == nil {
					if got := atRest(t, mem, "/backups/to", 1); got != want {
						t.Fatalf("operation %d failed: what was made answers otherwise (%v)", i, err)
					}
				} else {
					if _, err := service.OpenAtRest(t.Context(), "/backups/to", service.Options{FS: mem}); err == nil {
						t.Fatalf("operation %d failed: half of it opens", i)
					}
					if err := attempt(t, what, from, mem); err != nil {
						t.Fatalf("operation %d failed; the next attempt: %v", i, err)
					}
				}
				if got := atRest(t, mem, from, 1); got != want {
					t.Fatalf("operation %d failed: the original answers otherwise", i)
				}
				if !failed {
					t.Logf("%d operations; the process ended at %d of them", i, ended)
					if i < 50 {
						t.Error("so few?")
					}
					return
				}
			}
		})
	}
}

// survivable leaves out what Pebble answers with a panic of a goroutine of its own, which no test outlives: a database's directory that
// cannot be synced when a manifest is put in place.
type survivable struct{ errorfs.Injector }

func (s survivable) MaybeError(op errorfs.Op) error {
	err := s.Injector.MaybeError(op)
	if op.Kind == errorfs.OpFileSync && (strings.HasSuffix(op.Path, "/index") || strings.HasSuffix(op.Path, "/journal")) {
		return nil
	}
	return err
}

// errEnded stands for the end of the process, which Pebble asks for where it cannot write its manifest.
var errEnded = errors.New("the process ended")

func attempt(t *testing.T, what, from string, fs vfs.FS) error {
	end, done := make(chan error, 1), make(chan error, 1)
	o := backup.Options{FS: fs, Fatal: func(string) {
		select {
		case end <- errEnded:
		default:
		}
		select {} // it must not return
	}}
	go func() {
		var err error
		if what == "backup" {
			_, err = backup.AtRest(context.Background(), from, "/backups/to", undisturbed, o)
		} else {
			_, err = backup.Restore(context.Background(), from, "/backups/to", o)
		}
		done <- err
	}()
	select {
	case err := <-end:
		return err
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}

// A backup whose bytes were changed is not restored.
func TestDamagedBackup(t *testing.T) {
	fs := vfs.NewMem()
	w := writing(t, fs, 1)
	if err := errors.Join(w.Finish(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	for i, damage := range []func(dir string) error{
		func(dir string) error { return fs.RemoveAll(dir + "/journal") },
		func(dir string) error {
			return datadir.WriteFile(fs, dir, datadir.BackupFile, []byte(`{"backup":1,"journal_id":"00","durable_offset":5}`))
		},
		func(dir string) error { return datadir.WriteFile(fs, dir, datadir.BackupFile, []byte(`{"backup":2}`)) },
		func(dir string) error {
			return datadir.WriteFile(fs, dir, "KVJOURNAL", []byte("kvjournal data directory, format 99\n"))
		},
		func(dir string) error { return cut(fs, dir+"/journal") },
	} {
		dir := fmt.Sprint("/backups/", i)
		if _, err := backup.AtRest(t.Context(), dataDir, dir, undisturbed, backup.Options{FS: fs}); err != nil {
			t.Fatal(err)
		}
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), dir, "/restored", backup.Options{FS: fs}); err == nil {
			t.Errorf("damage %d is restored", i)
		} else {
			t.Log(err)
		}
		if _, err := fs.Stat("/restored"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("damage %d: something is left: %v", i, err)
		}
	}
}

// A damaged index costs time, never data: neither a backup nor a restore fails on it.
func TestDamagedIndex(t *testing.T) {
	fs := vfs.NewMem()
	w := writing(t, fs, 1)
	if err := errors.Join(w.Finish(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := atRest(t, fs, dataDir, 1)
	if _, err := backup.AtRest(t.Context(), dataDir, "/backups/whole", undisturbed, backup.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dataDir, "/backups/whole"} {
		if err := cut(fs, dir+"/index"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backup.AtRest(t.Context(), dataDir, "/backups/without", undisturbed, backup.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat("/backups/without/index"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a damaged index was backed up: %v", err)
	}
	if got := atRest(t, fs, "/backups/without", 1); got != want {
		t.Error("the backup without an index answers otherwise")
	}
	for i, from := range []string{"/backups/without", "/backups/whole"} {
		dir := fmt.Sprint("/restored/", i)
		r, err := backup.Restore(t.Context(), from, dir, backup.Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		if r.AppliedOffset != r.DurableOffset {
			t.Errorf("%+v", r)
		}
		if got := atRest(t, fs, dir, 1); got != want {
			t.Errorf("what was restored from %s answers otherwise", from)
		}
	}
}

// cut gives every table a copy of its own, a byte of which is changed.
func cut(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := fs.Open(dir + "/" + name)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		b[len(b)/3] ^= 1
		if err := fs.Remove(dir + "/" + name); err != nil {
			return err
		}
		if err := datadir.WriteFile(fs, dir, name, b); err != nil {
			return err
		}
	}
	return nil
}
