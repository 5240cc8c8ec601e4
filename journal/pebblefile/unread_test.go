package pebblefile

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A manifest that cannot be read for a moment is no beheaded one: what failed is told, and where.
func TestReadManifestTellsWhatFailed(t *testing.T) {
	mem := vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), nil, nil), db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := List(mem, "db")
	if err != nil {
		t.Fatal(err)
	}
	name, tail, beheaded, err := ReadManifest(t.Context(), mem, "db", files)
	if err != nil || beheaded || !tail.Clean {
		t.Fatalf("%s: %+v, %v", name, tail, err)
	}
	broken := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, name) {
			return syscall.EACCES
		}
		return nil
	}))
	if _, tail, beheaded, err := ReadManifest(t.Context(), broken, "db", files); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), name) || beheaded {
		t.Errorf("%+v, beheaded %v, %v", tail, beheaded, err)
	}
}
