package backup_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/query/backup"
)

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
