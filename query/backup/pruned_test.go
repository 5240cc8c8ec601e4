package backup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

// importedAged imports a capture of source n with two hours, which have places to prune to.
func importedAged(t *testing.T, fs vfs.FS, w *service.Writing, n int) {
	t.Helper()
	path := fmt.Sprintf("/aged-%d.kvcap", n)
	writeSpaced(t, fs, path, uint64(n), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n)*3*time.Hour), time.Minute)
	if _, err := w.Import(t.Context(), source(n), path, recorder.ImportOptions{}); err != nil {
		t.Error(err)
	}
	if err := w.Index.CatchUp(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func prunedTo(t *testing.T, w *service.Writing, offset uint64) journal.Horizon {
	t.Helper()
	h, err := w.Index.Prune(t.Context(), offset, index.BaselineOptions{}, nil)
	if err != nil {
		t.Error(err)
	}
	return h
}

// answersFrom are the answers about all sources at some offsets, and their gaps.
func answersFrom(t *testing.T, e *query.Engine, offsets ...uint64) string {
	t.Helper()
	var out []any
	for _, s := range e.Journal.Sources() {
		for k := range objects {
			for _, o := range offsets {
				all, err := e.Lookup(t.Context(), []query.Question{{Name: query.Name{Source: s.Name, Key: query.Bytes(fmt.Sprint("k", k))}}}, query.When{Kind: query.AtOffset, Offset: o})
				if err != nil {
					t.Fatal(err)
				}
				all[0].AsOf.AgeMs = nil
				out = append(out, all[0])
			}
		}
		if err := e.Gaps(t.Context(), &query.GapsQuery{Source: s.Name}, nil, func(g *query.GapOut) error { out = append(out, g); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// soundCopy verifies a directory at rest, opens it, and returns its answers.
func soundCopy(t *testing.T, fs vfs.FS, dir string, horizon uint64, offsets ...uint64) string {
	t.Helper()
	var found []journal.Finding
	v, err := service.Verify(t.Context(), dir, service.VerifyOptions{FS: fs, Scratch: "/scratch", Report: func(f journal.Finding) { found = append(found, f) }})
	if err != nil || !v.Sound || !v.Index.Compared || v.Journal.Horizon != horizon {
		t.Errorf("%s, horizon %d: %+v, %v\n%+v", dir, horizon, v, err, found)
	}
	if format, err := datadir.Version(fs, dir); format != datadir.FormatPruned || err != nil {
		t.Errorf("%s: the gate says format %d, %v", dir, format, err)
	}
	a, err := service.OpenAtRest(t.Context(), dir, service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if at, _ := a.Journal.Record(horizon); at.Offset != horizon {
		t.Errorf("%s: the record at the horizon is gone", dir)
	}
	_, err = a.Lookup(t.Context(), []query.Question{{Name: query.Name{Key: query.Bytes("k1")}}}, query.When{Kind: query.AtOffset, Offset: 3})
	if !errors.As(err, new(*query.PrunedError)) {
		t.Errorf("%s: what was pruned: %v", dir, err)
	}
	return answersFrom(t, &a.Engine, offsets...)
}

// A pruned directory is backed up and restored, live and at rest, whether its index was trimmed or not; what was restored can be pruned.
func TestPruned(t *testing.T) {
	fs := vfs.NewMem()
	w := writing(t, fs, 0)
	importedAged(t, fs, w, 0)
	importedAged(t, fs, w, 1)
	end := w.Journal.Durable()
	h := prunedTo(t, w, 100)
	if h.Offset < 50 || h.Offset > 100 {
		t.Fatalf("horizon %+v", h)
	}
	offsets := []uint64{h.Offset, 150, end}
	want := answersFrom(t, &query.Engine{Journal: w.Journal, Index: w.Index}, offsets...)
	if _, err := backup.Live(t.Context(), w.Journal, w.Index, "/backups/live", backup.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.AtRest(t.Context(), dataDir, "/backups/rest", undisturbed, backup.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"live", "rest"} {
		if got := soundCopy(t, fs, "/backups/"+name, h.Offset, offsets...); got != want {
			t.Errorf("the backup %s answers otherwise", name)
		}
		if _, err := backup.Restore(t.Context(), "/backups/"+name, "/restored/"+name, backup.Options{FS: fs}); err != nil {
			t.Fatal(err)
		}
		if got := soundCopy(t, fs, "/restored/"+name, h.Offset, offsets...); got != want {
			t.Errorf("what was restored of %s answers otherwise", name)
		}
	}
	r, err := service.PruneAtRest(t.Context(), "/restored/live", &query.PruneQuestion{Before: query.When{Kind: query.AtOffset, Offset: 200}}, service.Options{FS: fs}, nil)
	if err != nil || !r.Pruned || r.Horizon.Offset <= h.Offset {
		t.Fatal(r, err)
	}
	soundCopy(t, fs, "/restored/live", r.Horizon.Offset, end)
}

// Backups are taken while the directory is written to and pruned again and again: each is whole, with an index.
func TestBackupWhilePruning(t *testing.T) {
	for _, links := range []bool{true, false} {
		var fs vfs.FS = vfs.NewMem()
		if !links {
			fs = unlinkable{fs}
		}
		w := writing(t, fs, 0)
		importedAged(t, fs, w, 0)
		prunedTo(t, w, 60)
		begin, stopped := make(chan int), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := range begin {
				importedAged(t, fs, w, i)
				prunedTo(t, w, w.Journal.Durable()-uint64(5*i))
			}
		}()
		for i := range 4 {
			to := fmt.Sprint("/backups/", i)
			begin <- i + 1 // and goes on while the backup is taken
			r, err := backup.Live(t.Context(), w.Journal, w.Index, to, backup.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			if r.AppliedOffset == 0 || r.Compared.Records == 0 {
				t.Errorf("%+v", r)
			}
			horizon := horizonOf(t, fs, to)
			want := soundCopy(t, fs, to, horizon, r.DurableOffset)
			if _, err := backup.Restore(t.Context(), to, fmt.Sprint("/restored/", i), backup.Options{FS: fs}); err != nil {
				t.Fatal(err)
			}
			if got := soundCopy(t, fs, fmt.Sprint("/restored/", i), horizon, r.DurableOffset); got != want {
				t.Error("what was restored answers otherwise")
			}
		}
		close(begin)
		<-stopped
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func horizonOf(t *testing.T, fs vfs.FS, dir string) uint64 {
	t.Helper()
	j, err := journal.OpenReadOnly(dir, journal.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return j.Horizon().Offset
}

// The horizon moves between the two checkpoints, beyond what the index's has: both are made anew, so that the backup has an index.
func TestHorizonMovesBetween(t *testing.T) {
	fs := vfs.NewMem()
	w := writing(t, fs, 0)
	importedAged(t, fs, w, 0)
	was, tries := w.Index.Applied(), 0
	var h journal.Horizon
	r, err := backup.Live(t.Context(), w.Journal, w.Index, "/backups/a", backup.Options{FS: fs, Progress: func(p backup.Progress) {
		if p.Step != "flushing" || p.Done != 1 {
			return
		}
		if tries++; tries == 1 {
			importedAged(t, fs, w, 1)
			h = prunedTo(t, w, w.Journal.Durable())
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if h.Offset <= was || tries != 2 || r.AppliedOffset < h.Offset {
		t.Errorf("the index was at %d, the horizon is at %+v, %d tries: %+v", was, h, tries, r)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	soundCopy(t, fs, "/backups/a", h.Offset, r.DurableOffset)
}
