package recorder

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// testGroup is how many raw bytes these imports commit together.
const testGroup = 3000

// largeCapture has several commit groups, with facts and a duplicate among its messages.
func largeCapture() []capture.Record {
	s := newStream()
	records := []capture.Record{s.fact(capture.Connected)}
	for i := range 12 {
		records = append(records, s.large(testGroup/3+1))
		switch i {
		case 2:
			records = append(records, s.fact(capture.Disconnected), s.large(100), s.fact(capture.Connected))
		case 8:
			records = append(records, records[len(records)-1], s.fact(capture.Disconnected), s.fact(capture.Connected))
		}
	}
	return append(records, s.batch("last"))
}

// TestImportResumes: an import that was interrupted at any commit goes on there, and the journal is as if it had not been.
func TestImportResumes(t *testing.T) {
	whole := vfs.NewMem()
	writeCapture(t, whole, "a.kvcap", largeCapture()...)
	j := openJournal(t, whole)
	commits := 0
	importOK(t, j, ensureSource(t, j, "s"), "a.kvcap", ImportOptions{FS: whole, group: testGroup, Progress: func(done, total int) { commits++ }})
	want := dump(t, j)
	if commits < 3 {
		t.Fatalf("%d commits: too few to interrupt between", commits)
	}

	for stop := 1; stop < commits; stop++ {
		fs := vfs.NewMem()
		writeFile(t, fs, "a.kvcap", testkit.ReadFile(t, whole, "a.kvcap"))
		// Each attempt is interrupted at its stop-th commit, and the next one begins with a reopened journal.
		attempts, last := 0, 0
		for done := false; !done; {
			attempts++
			done = attempt(t, fs, func(j *journal.Journal, s journal.Source) bool {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				n := 0
				im, err := Import(ctx, j, s, "a.kvcap", ImportOptions{FS: fs, group: testGroup, Progress: func(done, total int) {
					if done < last || total != len(want) {
						t.Errorf("progress %d of %d, was %d", done, total, last)
					}
					last = done
					if n++; n == stop {
						cancel()
					}
				}})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if im.Records != last {
					t.Errorf("%d records imported, progress said %d", im.Records, last)
				}
				return err == nil
			})
			if attempts > commits+1 {
				t.Fatalf("stop %d: no end after %d attempts", stop, attempts)
			}
		}
		if attempts < 2 {
			t.Errorf("stop %d: it was not interrupted", stop)
		}
		if got := dump(t, openJournal(t, fs)); !slices.Equal(got, want) {
			t.Errorf("stop %d: the journal differs from an uninterrupted one's", stop)
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("got  %.300s\nwant %.300s", got[i], want[i])
				}
			}
		}
	}
}

// attempt opens the journal for one call.
func attempt(t *testing.T, fs vfs.FS, f func(*journal.Journal, journal.Source) bool) bool {
	t.Helper()
	j, err := journal.Open(testDir, nil, journal.Options{FS: fs, NoSealer: true, MemTableSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	return f(j, ensureSource(t, j, "s"))
}

// TestImportCancelledAtOnce changes nothing.
func TestImportCancelledAtOnce(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	writeCapture(t, fs, "a.kvcap", s.batch("a"), s.batch("b"))
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Import(ctx, j, src, "a.kvcap", ImportOptions{FS: fs}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := dump(t, j); len(got) != 0 {
		t.Errorf("%q", got)
	}
	importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs})
	wantVerdicts(t, j, "message 1/1", "message 1/2 follows")
}

// TestImportResumesBehindAnother: what was imported between the interruption and now is no part of the capture: numbers
// that go on from there by chance prove nothing.
func TestImportResumesBehindAnother(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	var records []capture.Record
	for range 5 {
		records = append(records, s.large(testGroup/3+1))
	}
	writeCapture(t, fs, "a.kvcap", records...)
	j := openJournal(t, fs)
	src := ensureSource(t, j, "s")
	ctx, cancel := context.WithCancel(context.Background())
	im, err := Import(ctx, j, src, "a.kvcap", ImportOptions{FS: fs, group: testGroup, Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) || im.Records == 0 || im.Records == len(records) {
		t.Fatalf("%+v, %v", im, err)
	}
	// Another process, as far as the first was when the import stopped.
	other := newStream()
	other.seq, other.id = uint64(im.Records-1), uint64(im.Records-1)
	writeCapture(t, fs, "b.kvcap", other.batch("of another process"))
	importOK(t, j, src, "b.kvcap", ImportOptions{FS: fs})
	importOK(t, j, src, "a.kvcap", ImportOptions{FS: fs})
	r := headers(t, j)[im.Last+1]
	if got := verdictText(&r); r.Follows || got != "message 2/"+itoa(im.Records+1)+" behind:reconnect gap:reconnect" {
		t.Errorf("the first record behind the other capture: %s", got)
	}
}
