package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

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
