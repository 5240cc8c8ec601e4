package main

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
)

// TestExportAtEachFailure makes the i-th file operation fail, for every i: there is the whole file or, after an error that names it, the old one,
// and nothing else.
func TestExportAtEachFailure(t *testing.T) {
	for _, name := range []string{"out.ndjson", "out.ndjson.zst"} {
		for i := int64(0); ; i++ {
			mem := vfs.NewMem()
			if err := mem.MkdirAll("/d", 0o755); err != nil {
				t.Fatal(err)
			}
			path := "/d/" + name
			old, err := mem.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.Write([]byte("old")); err != nil {
				t.Fatal(err)
			}
			old.Close()
			fault := &faultfs.Nth{N: i, Err: syscall.EIO}
			err = exportFile(errorfs.Wrap(mem, fault), path, true, func(w io.Writer) error {
				_, err := io.WriteString(w, strings.Repeat("line\n", 200_000))
				return err
			})
			_, failed := fault.Failed()
			names, lerr := mem.List("/d")
			if lerr != nil || len(names) != 1 {
				t.Errorf("%s, operation %d: %q, %v", name, i, names, lerr)
			}
			info, serr := mem.Stat(path)
			if serr != nil {
				t.Fatalf("%s, operation %d: %v", name, i, serr)
			}
			if isOld := info.Size() == 3; isOld != (err != nil) {
				t.Errorf("%s, operation %d: error %v, and the file has %d bytes", name, i, err, info.Size())
			}
			if err != nil && (!failed || !strings.Contains(err.Error(), "/d")) {
				t.Errorf("%s, operation %d: %v", name, i, err)
			}
			if !failed {
				break
			}
		}
	}
}
