package recorder

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func importOK(t *testing.T, j *journal.Journal, s journal.Source, path string, o ImportOptions) journal.Import {
	t.Helper()
	im, err := Import(context.Background(), j, s, path, o)
	if err != nil {
		t.Fatalf("importing %s: %v", path, err)
	}
	return im
}

func TestImport(t *testing.T) {
	for _, path := range []string{"a.kvcap", "a.kvcap.zst"} {
		t.Run(path, func(t *testing.T) {
			fs := vfs.NewMem()
			s := newStream()
			writeCapture(t, fs, path, s.fact(capture.Connected), s.batch("a"), s.batch("b"), s.fact(capture.Disconnected), s.fact(capture.Connected), s.batch("c"))
			j := openJournal(t, fs)
			src := ensureSource(t, j, "s")
			im := importOK(t, j, src, path, ImportOptions{FS: fs})
			if im.Records != 6 || im.Total != 6 || im.First != 1 || im.Last != 6 || im.Path != path || len(im.SHA256) != 64 {
				t.Errorf("%+v", im)
			}
			wantVerdicts(t, j, "connected", "message 1/1", "message 1/2 follows", "disconnected", "connected", "message 1/3 behind:reconnect gap:reconnect")
		})
	}
}

// TestImportTwice: the same content is refused whatever its name and compression; again imports it behind what is there.
func TestImportTwice(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	records := []capture.Record{s.batch("a"), s.batch("b")}
	writeCapture(t, fs, "a.kvcap", records...)
	writeCapture(t, fs, "copy.kvcap.zst", records...)
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs})
	before := dump(t, j)

	for _, path := range []string{"a.kvcap", "copy.kvcap.zst"} {
		im, err := Import(context.Background(), j, src, path, ImportOptions{FS: fs})
		if !errors.Is(err, ErrImported) {
			t.Fatalf("%s: %v", path, err)
		}
		if im.Path != "a.kvcap" || im.First != 1 || im.Last != 2 || !strings.Contains(err.Error(), "a.kvcap") {
			t.Errorf("%s: %+v, %v", path, im, err)
		}
	}
	if after := dump(t, j); !slices.Equal(before, after) {
		t.Errorf("a refused import changed the journal: %q", after)
	}

	im := importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs, Again: true})
	if im.First != 3 || im.Last != 4 || im.Records != 2 {
		t.Errorf("%+v", im)
	}
	wantVerdicts(t, j, "message 1/1", "message 1/2 follows", "message 2/1 before:publisher_restart gap:publisher_restart", "message 2/2 follows")
	if _, err := Import(context.Background(), j, src, "a.kvcap", ImportOptions{FS: fs}); !errors.Is(err, ErrImported) {
		t.Errorf("behind --again: %v", err)
	}

	other := ensureSource(t, j, "other")
	if im := importOK(t, j, other, "a.kvcap", ImportOptions{FS: fs}); im.First != 5 {
		t.Errorf("into another source: %+v", im)
	}
}

// TestImportOfOneMessageAgain: the capture's only message equals the one before it in all frames: a duplicate.
func TestImportOfOneMessageAgain(t *testing.T) {
	fs := vfs.NewMem()
	writeCapture(t, fs, "a.kvcap", newStream().batch("a"))
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs})
	importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs, Again: true})
	wantVerdicts(t, j, "message 1/1", "message 1/1 duplicate")
}

// TestImportDamaged: a capture that is cut short, or is none, or is empty, changes nothing.
func TestImportDamaged(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	writeCapture(t, fs, "whole.kvcap", s.fact(capture.Connected), s.batch("a"), s.batch("b"), s.batch("c"))
	writeCapture(t, fs, "whole.kvcap.zst", s.fact(capture.Connected), s.batch("a"), s.batch("b"))
	writeCapture(t, fs, "empty.kvcap")
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	first := newStream()
	writeCapture(t, fs, "first.kvcap", first.batch("z"))
	importOK(t, j, src, "first.kvcap", ImportOptions{FS: fs})
	before, position := dump(t, j), mustPosition(t, j, src)

	refused := func(path string) error {
		_, err := Import(context.Background(), j, src, path, ImportOptions{FS: fs})
		if err == nil {
			t.Fatalf("%s was imported", path)
		}
		if after := dump(t, j); !slices.Equal(before, after) {
			t.Fatalf("%s changed the journal: %q", path, after)
		}
		if now := mustPosition(t, j, src); now != position {
			t.Fatalf("%s changed where the source stands: %s, was %s", path, now, position)
		}
		return err
	}
	for _, whole := range []string{"whole.kvcap", "whole.kvcap.zst"} {
		content := testkit.ReadFile(t, fs, whole)
		cuts := 0
		for n := 1; n < len(content); n += 7 {
			writeFile(t, fs, "cut"+whole[5:], content[:n])
			if whole == "whole.kvcap" && (n == 8 || n == 17) {
				continue // the end of a record
			}
			if err := refused("cut" + whole[5:]); n > 8 {
				var corrupt *capture.CorruptError
				if !errors.As(err, &corrupt) || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%s cut to %d bytes: %v", whole, n, err)
				}
			}
			cuts++
		}
		if cuts < 10 {
			t.Errorf("%s: only %d cuts", whole, cuts)
		}
	}
	refused("empty.kvcap")
	refused("missing.kvcap")
	writeFile(t, fs, "text.kvcap", []byte("no capture at all"))
	if err := refused("text.kvcap"); !errors.Is(err, capture.ErrNotCapture) {
		t.Error(err)
	}
	im := importOK(t, j, src, "whole.kvcap", ImportOptions{FS: fs})
	if im.Records != 4 || im.First != 2 {
		t.Errorf("the whole one, afterwards: %+v", im)
	}
}

// TestSecondCapture: numbers prove nothing across captures: they go on (reconnect), jump (disconnected), or go back.
func TestSecondCapture(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	writeCapture(t, fs, "1.kvcap", s.fact(capture.Connected), s.batch("a"), s.batch("b"))
	writeCapture(t, fs, "2.kvcap", s.batch("c"), s.batch("d"))
	s.batch("never seen")
	writeCapture(t, fs, "3.kvcap", s.fact(capture.Connected), s.batch("e"))
	restarted := newStream()
	writeCapture(t, fs, "4.kvcap", restarted.batch("f"))
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	for _, path := range []string{"1.kvcap", "2.kvcap", "3.kvcap", "4.kvcap"} {
		importOK(t, j, src, path, ImportOptions{FS: fs})
	}
	wantVerdicts(t, j,
		"connected", "message 1/1", "message 1/2 follows",
		"message 1/3 behind:reconnect gap:reconnect", "message 1/4 follows",
		"connected", "message 1/6 behind:disconnected gap:disconnected 5..5",
		"message 2/1 before:publisher_restart gap:publisher_restart")
}

func mustPosition(t *testing.T, j *journal.Journal, s journal.Source) string {
	t.Helper()
	p, err := j.Position(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	return string(p.State.AppendBinary([]byte{byte(p.Last)}))
}

func writeFile(t *testing.T, fs vfs.FS, path string, content []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append([]byte(nil), content...)); err != nil {
		t.Fatal(err)
	}
}
