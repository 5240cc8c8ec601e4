package service_test

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

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/service"
)

// files are the names and bytes below a directory, but for its locks.
func files(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			out.WriteString(files(t, fs, path))
			continue
		}
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		fmt.Fprintf(&out, "%s %x\n", path, b)
	}
	return out.String()
}

// A directory of a newer format, and one with an index of a newer form, are refused by readers and by writers, and not a byte of them is
// changed. The index can be computed anew.
func TestNewerDirectoriesAreRefused(t *testing.T) {
	for _, what := range []string{"gate", "index rows", "index keys"} {
		t.Run(what, func(t *testing.T) {
			fs := vfs.NewMem()
			writeCapture(t, fs)
			w, err := service.OpenForWriting(t.Context(), dataDir, "a test", service.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Import(t.Context(), "s", capturePath, recorder.ImportOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Finish(t.Context()), w.Close()); err != nil {
				t.Fatal(err)
			}
			path := fs.PathJoin(dataDir, "index")
			switch what {
			case "gate":
				if err := datadir.WriteFile(fs, dataDir, "KVJOURNAL", fmt.Appendf(nil, "kvjournal data directory, format %d\n", datadir.Format+1)); err != nil {
					t.Fatal(err)
				}
			case "index rows":
				raiseRows(t, fs, path)
			case "index keys":
				c := *pebble.DefaultComparer
				c.Name = "kvjournal.index.99"
				if err := fs.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				db, err := pebble.Open(path, &pebble.Options{FS: fs, Comparer: &c, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: quietLogger{}})
				if err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, fs, dataDir)
			if _, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs}); !errors.Is(err, datadir.ErrNewer) {
				t.Errorf("a reader: %v", err)
			} else {
				t.Log(err)
			}
			if _, err := service.OpenForWriting(t.Context(), dataDir, "a test", service.Options{FS: fs}); !errors.Is(err, datadir.ErrNewer) {
				t.Errorf("a writer: %v", err)
			}
			if files(t, fs, dataDir) != before {
				t.Error("something was changed")
			}
			err = service.RebuildAtRest(t.Context(), dataDir, service.Options{FS: fs})
			if what == "gate" {
				if !errors.Is(err, datadir.ErrNewer) || files(t, fs, dataDir) != before {
					t.Errorf("rebuild: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if a.Index.Applied() != a.Journal.Durable() || index.Newer(dataDir, index.Options{FS: fs}) != nil {
				t.Error("the index was not computed anew")
			}
		})
	}
}

type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// raiseRows makes the index at path say that its rows are of a newer format.
func raiseRows(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	c := *pebble.DefaultComparer
	c.Name = "kvjournal.index.1"
	db, err := pebble.Open(path, &pebble.Options{FS: fs, Comparer: &c, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: quietLogger{}, DisableAutomaticCompactions: true})
	if err != nil {
		t.Fatal(err)
	}
	row, closer, err := db.Get([]byte{'j'})
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte(nil), row...)
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(newer, 1000)
	if err := errors.Join(db.Set([]byte{'j'}, newer, pebble.Sync), db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
}
