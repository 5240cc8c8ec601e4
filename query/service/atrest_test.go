package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/testkit"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/service"
)

const (
	dataDir     = "data"
	capturePath = "small.kvcap"
	batches     = 300
)

// writeCapture writes a capture of one object that comes and goes, with a gap in the middle.
func writeCapture(t *testing.T, fs vfs.FS) {
	t.Helper()
	w, err := capture.Create(fs, capturePath)
	if err != nil {
		t.Fatal(err)
	}
	enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	begun := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	records := []capture.Record{{Kind: capture.Connected, Received: begun.UnixNano()}}
	for i := range uint64(batches) {
		seq, at := i+1, begun.Add(time.Duration(i)*time.Second)
		if i >= batches/2 {
			seq += 5 // dropped by the publisher's queue
		}
		f := event.Fields{Type: event.Stored, ID: i + 1, Timestamp: at.UnixMilli(), Tenant: "default", Backend: "b", Medium: "cpu", Key: "k"}
		if i%2 == 1 {
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

// answers are those to a few questions, and all gaps, as JSON.
func answers(t *testing.T, e *query.Engine) string {
	t.Helper()
	ctx := context.Background()
	var out []any
	for _, w := range []query.When{{}, {Kind: query.AtOffset, Offset: 2}, {Kind: query.AtOffset, Offset: batches / 2}, {Kind: query.AtSeq, Epoch: 1, Seq: 10}} {
		all, err := e.Lookup(ctx, []query.Question{{Name: query.Name{Key: query.Bytes("k")}}, {Name: query.Name{Key: query.Bytes("never")}}}, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			a.AsOf.AgeMs = nil
			out = append(out, a)
		}
	}
	if err := e.Gaps(ctx, &query.GapsQuery{}, nil, func(g *query.GapOut) error { out = append(out, g); return nil }); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// crashed is a directory as a power loss leaves it behind an import that did not finish: the journal is durable, the index
// was never flushed. want is what the writer answered.
func crashed(t *testing.T) (fs *vfs.MemFS, want string) {
	t.Helper()
	live := vfs.NewCrashableMem()
	writeCapture(t, live)
	w, err := service.OpenForWriting(t.Context(), dataDir, "test", service.Options{FS: live})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Import(t.Context(), "s", capturePath, recorder.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	root, err := live.OpenDir("/") // whether that is synced is the journal's business, not this test's
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Sync(); err != nil {
		t.Fatal(err)
	}
	fs = live.CrashClone(vfs.CrashCloneCfg{})
	if err := w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = answers(t, &query.Engine{Journal: w.Journal, Index: w.Index})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if known := index.KnownTo(dataDir, index.Options{FS: fs}).Newest(); known != 0 {
		t.Fatalf("the index survived up to %d: nothing to bring up", known)
	}
	return fs, want
}

// readOnly is a filesystem that refuses every change.
type readOnly struct {
	vfs.FS
	refused func(op, name string)
}

func (r readOnly) no(op, name string) error {
	r.refused(op, name)
	return syscall.EROFS
}

func (r readOnly) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.no("create", name)
}
func (r readOnly) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, r.no("open for writing", name)
}
func (r readOnly) ReuseForWrite(old, name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, r.no("reuse", name)
}
func (r readOnly) Link(old, name string) error              { return r.no("link", name) }
func (r readOnly) Remove(name string) error                 { return r.no("remove", name) }
func (r readOnly) RemoveAll(name string) error              { return r.no("remove all", name) }
func (r readOnly) Rename(old, name string) error            { return r.no("rename", old) }
func (r readOnly) MkdirAll(dir string, _ os.FileMode) error { return r.no("mkdir", dir) }

func TestAtRestOnAReadOnlyFilesystem(t *testing.T) {
	fs, want := crashed(t)
	refused := 0
	ro := readOnly{fs, func(op, name string) { refused++ }}
	for range 2 {
		a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: ro})
		if err != nil {
			t.Fatal(err)
		}
		if got := answers(t, &a.Engine); got != want {
			t.Errorf("answers\n%s\nthe writer's\n%s", got, want)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("the index was not even tried to be brought up on disk")
	}
	if known := index.KnownTo(dataDir, index.Options{FS: fs}).Newest(); known != 0 {
		t.Errorf("a read-only index is at %d", known)
	}
}

// The same where it can be written: the second time nothing is left to do.
func TestAtRestBringsTheIndexUp(t *testing.T) {
	fs, want := crashed(t)
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	durable := a.Journal.Durable()
	if got := answers(t, &a.Engine); got != want {
		t.Errorf("answers\n%s\nthe writer's\n%s", got, want)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if known := index.KnownTo(dataDir, index.Options{FS: fs}).Newest(); known != durable {
		t.Errorf("the index on disk is at %d of %d", known, durable)
	}
	progress := 0
	a, err = service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs, Progress: func(applied, total uint64) { progress++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := answers(t, &a.Engine); got != want || progress > 0 {
		t.Errorf("again, with %d steps of progress: %s", progress, got)
	}
}

// A question that is cancelled while the index is brought up leaves a directory that the next one opens.
func TestAtRestCancelled(t *testing.T) {
	fs, want := crashed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := service.OpenAtRest(ctx, dataDir, service.Options{FS: fs}); err == nil {
		a.Close()
		t.Fatal("opened, though cancelled")
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if got := answers(t, &a.Engine); got != want {
		t.Errorf("answers %s", got)
	}
}

// While a writer holds the directory, nobody opens it at rest; who reads it already is told before he prints.
func TestAtRestBesideAWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), dataDir)
	w, err := service.OpenForWriting(t.Context(), dir, "the test", service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var live *service.LiveError
	if _, err := service.OpenAtRest(t.Context(), dir, service.Options{}); !errors.As(err, &live) {
		t.Errorf("beside a writer: %v", err)
	}
	if err := service.RebuildAtRest(t.Context(), dir, service.Options{}); !errors.As(err, &live) {
		t.Errorf("rebuild beside a writer: %v", err)
	}
	if _, err := service.OpenForWriting(t.Context(), dir, "another", service.Options{}); !errors.Is(err, datadir.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := service.OpenAtRest(t.Context(), dir, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Undisturbed(); err != nil {
		t.Errorf("nobody is there: %v", err)
	}
	if w, err = service.OpenForWriting(t.Context(), dir, "the test", service.Options{}); err != nil {
		t.Fatalf("a reader stops a writer: %v", err)
	}
	if err := a.Undisturbed(); !errors.As(err, &live) {
		t.Errorf("a writer came: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestAtRestWithoutItsEnd: where acknowledged records are gone, what they may have told is in doubt before a recorder writes that down, as it
// is behind it: the master may change things without an event.
func TestAtRestWithoutItsEnd(t *testing.T) {
	w := newWorld(t, 1)
	defer func() { w.must(errors.Join(w.x.Close(), w.j.Close())) }()
	for range 20 {
		w.some()
	}
	w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush()))
	last, torn := w.j.Durable(), w.left()
	w.some()
	w.awaitHead()
	w.must(datadir.WriteFile(torn, dataDir, "head", testkit.ReadFile(t, w.fs, w.fs.PathJoin(dataDir, "head"))))

	questions := w.questions(w.rng, 60)
	ask := func(e *query.Engine) string {
		got, err := e.Lookup(t.Context(), questions, query.When{Kind: query.AtOffset, Offset: last})
		w.must(err)
		for i := range got {
			if read := got[i].Source == w.streams[1].source.Name; got[i].Silent != read {
				t.Errorf("%v: silent: %v", got[i].Name, got[i].Silent)
			}
			got[i].AsOf.AgeMs = nil
		}
		b, err := json.Marshal(got)
		w.must(err)
		return string(b)
	}
	before := digest(t, torn)
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: torn})
	w.must(err)
	atRest := ask(&a.Engine)
	w.must(a.Close())
	if digest(t, torn) != before {
		t.Error("files were changed")
	}
	writer, err := service.OpenForWriting(t.Context(), dataDir, "the test", service.Options{FS: torn})
	w.must(err)
	w.must(writer.Index.CatchUp(t.Context(), nil))
	if got := ask(&query.Engine{Journal: writer.Journal, Index: writer.Index}); got != atRest {
		t.Errorf("at rest %s\na writer %s", atRest, got)
	}
	w.must(writer.Close())
}

// TestAtRestHealsTheManifest: an index whose manifest has no proper end is computed anew on disk, once, not in memory for every question.
func TestAtRestHealsTheManifest(t *testing.T) {
	w := newWorld(t, 1)
	fs := w.atRest()
	manifest := func() (string, pebblefile.Tail) {
		dir := fs.PathJoin(dataDir, "index")
		files, err := pebblefile.List(fs, dir)
		w.must(err)
		name, _ := pebblefile.MarkerValue(files, "manifest")
		tail, err := pebblefile.CheckManifest(t.Context(), fs, fs.PathJoin(dir, name))
		w.must(err)
		return name, tail
	}
	name, _ := manifest()
	path := fs.PathJoin(dataDir, "index", name)
	w.must(datadir.WriteFile(fs, fs.PathDir(path), name, append(testkit.ReadFile(t, fs, path), 1)))
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: fs})
	w.must(err)
	w.must(a.Close())
	if name, tail := manifest(); !tail.Clean {
		t.Errorf("%s: %+v", name, tail)
	}
}
