package backup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
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
