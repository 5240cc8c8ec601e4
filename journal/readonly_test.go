package journal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/faultfs"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func readOnly(fs vfs.FS) Options {
	o := testOptions(fs)
	o.ReadOnly = true
	return o
}

func TestReadOnlyChangesNothing(t *testing.T) {
	rng := testkit.RandomSource(t)
	for _, how := range []string{"log not flushed", "flushed", "sealed", "crashed"} {
		t.Run(how, func(t *testing.T) {
			crash := faultfs.NewCrashable()
			var fs vfs.FS = crash
			j := mustOpen(t, testOptions(fs), 0)
			s, m := newStream(t, rng, j, 2), &model{}
			m.appendMany(t, j, s, 120, 5)
			switch how {
			case "sealed":
				if err := j.Seal(context.Background()); err != nil {
					t.Fatal(err)
				}
			case "flushed":
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			stats := j.Stats()
			if how == "crashed" {
				fs = crash.Clone(rng, 0)
			} else {
				mustClose(t, j)
			}
			before := tree(t, fs, "/")
			r, err := OpenReadOnly(testDir, readOnly(fs))
			if err != nil {
				t.Fatal(err)
			}
			checkReads(t, r, m, s, rng, 100)
			if got := r.Stats(); got.Durable != stats.Durable || got.Totals != stats.Totals {
				t.Errorf("stats are %+v, want %+v", got, stats)
			} else if got.TableBytes == 0 && got.LogBytes == 0 {
				t.Error("stats know of no bytes")
			}
			if r.ID() != j.ID() || len(r.Sources()) != 2 {
				t.Errorf("id %v, sources %v", r.ID(), r.Sources())
			}
			for id, want := range m.positions {
				got, err := r.Position(id)
				if err != nil {
					t.Fatal(err)
				}
				checkPosition(t, id, got, want, m)
			}
			if err := r.Seal(context.Background()); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Seal: %v", err)
			}
			if err := r.Flush(); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Flush: %v", err)
			}
			if _, err := r.EnsureSource("new", nil, nil); err == nil {
				t.Error("EnsureSource succeeds")
			}
			if _, ok := r.SourceNamed("new"); ok {
				t.Error("EnsureSource failed but the source is there")
			}
			mustClose(t, r)
			if err := diffTrees(tree(t, fs, "/"), before); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := Open(testDir, nil, readOnly(vfs.NewMem())); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Open with ReadOnly: %v", err)
	}
}

// TestDirectoriesThatAreNoJournal: each kind has its own error, for a writer and for a reader, and nothing is changed.
func TestDirectoriesThatAreNoJournal(t *testing.T) {
	gate := func(content string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			if err := datadir.WriteFile(fs, testDir, "KVJOURNAL", []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	newerPebble := func(t *testing.T, fs vfs.FS) {
		j := mustOpen(t, testOptions(fs), 0)
		mustClose(t, j)
		path := fs.PathJoin(testDir, "journal")
		names, err := fs.List(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if len(n) > 22 && n[:22] == "marker.format-version." {
				if err := fs.Rename(fs.PathJoin(path, n), fs.PathJoin(path, "marker.format-version.000099.999")); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no marker among %q", names)
	}
	for _, c := range []struct {
		name           string
		make           func(*testing.T, vfs.FS)
		writer, reader error // nil: it opens
	}{
		{"missing", nil, nil, datadir.ErrMissing},
		{"empty", func(*testing.T, vfs.FS) {}, nil, datadir.ErrMissing},
		{"gate only", gate("kvjournal data directory, format 1\n"), nil, datadir.ErrMissing},
		{"foreign", func(t *testing.T, fs vfs.FS) {
			if err := datadir.WriteFile(fs, testDir, "notes.txt", []byte("mine")); err != nil {
				t.Fatal(err)
			}
		}, datadir.ErrForeign, datadir.ErrForeign},
		{"foreign gate", gate("something else"), datadir.ErrForeign, datadir.ErrForeign},
		{"empty gate", gate(""), datadir.ErrForeign, datadir.ErrForeign},
		{"format 0", gate("kvjournal data directory, format 0\n"), datadir.ErrForeign, datadir.ErrForeign},
		{"newer", gate(fmt.Sprintf("kvjournal data directory, format %d\n", datadir.Format+1)), datadir.ErrNewer, datadir.ErrNewer},
		{"newer Pebble", newerPebble, datadir.ErrNewer, datadir.ErrNewer},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			if c.make != nil {
				if err := fs.MkdirAll(testDir, 0o700); err != nil {
					t.Fatal(err)
				}
				c.make(t, fs)
			}
			before := tree(t, fs, "/")
			check := func(what string, err, want error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
				for _, other := range []error{datadir.ErrForeign, datadir.ErrNewer, datadir.ErrMissing, datadir.ErrLocked} {
					if other != want && errors.Is(err, other) {
						t.Errorf("%s: %v is %v too", what, err, other)
					}
				}
				if err := diffTrees(tree(t, fs, "/"), before); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			r, err := OpenReadOnly(testDir, readOnly(fs))
			if err == nil {
				r.Close()
			}
			check("reader", err, c.reader)
			w, err := Open(testDir, nil, testOptions(fs))
			if c.writer == nil {
				if err != nil {
					t.Fatal(err)
				}
				mustClose(t, w)
				return
			}
			if err == nil {
				w.Close()
			}
			check("writer", err, c.writer)
		})
	}
}
