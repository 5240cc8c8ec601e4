package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// publicDir is a temporary directory that another user may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvjournal-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		setModes(t, dir, 0o755, 0o644)
		os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func setModes(t *testing.T, root string, dirs, files os.FileMode) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, dirs)
		case d.Type().IsRegular():
			return os.Chmod(path, files)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listing is every file with its size and time of change.
func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lookupAsReader asks as a user who cannot write to the directory.
func lookupAsReader(t *testing.T, dir string, objects []object) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, kvjournalBinary, "lookup", "--stdin", "--dir", dir, "--output", "json")
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return runCommand(t, cmd, questions(t, objects)).answered(t)
}

// The first answer behind a kill -9, with an index that was never flushed: the same as before it, on a directory that
// cannot be written to as well.
func TestFirstAnswerAfterKill9(t *testing.T) {
	t.Parallel()
	var (
		dir          string
		last         *query.StatsOut
		objects      []object
		live, losses []string
	)
	record := func() {
		dir = filepath.Join(publicDir(t), "data")
		s := newSimulation(t, func(o *mooncaketest.SimOptions) {
			o.Truth, o.Rate, o.Store.Objects, o.Duration = nil, 20_000, 3000, 10*patience
		})
		rec := record(t, dir, s.Endpoint())
		connected(t, dir, true)
		s.run(t)
		eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > 30_000 })
		s.stop()
		s.wait(t)
		last = quiet(t, dir)
		objects = []object{{"default", "never-seen"}}
		s.View(func(store *mooncaketest.Store, _ *mooncaketest.Publisher) {
			for o := range store.Objects() {
				objects = append(objects, object{o.Tenant, o.Key})
			}
		})
		live, losses = lookupLines(t, dir, "", objects), gapLines(t, dir)
		rec.kill9(t)
	}
	// What lies unflushed for 30 s is flushed: where all this took so long, there is nothing left to bring up.
	for begun := time.Now(); ; {
		record()
		known := index.KnownTo(dir, index.Options{}).Newest()
		if known < last.DurableOffset {
			break
		}
		if time.Since(begun) > 5*patience {
			t.Fatalf("the index on disk is at %d of %d: nothing is left to bring up", known, last.DurableOffset)
		}
	}

	setModes(t, dir, 0o555, 0o444)
	before := listing(t, dir)
	begun := time.Now()
	sameAnswers(t, "live and on a read-only directory", live, lookupAsReader(t, dir, objects))
	t.Logf("first answers of %d events on a read-only directory: %v", last.Events, time.Since(begun).Round(time.Millisecond))
	if after := listing(t, dir); after != before {
		t.Errorf("a read-only directory was changed:\n%s\nafter\n%s", before, after)
	}
	setModes(t, dir, 0o755, 0o644)

	begun = time.Now()
	sameAnswers(t, "live and at rest", live, lookupLines(t, dir, "", objects))
	t.Logf("first answers of %d events: %v", last.Events, time.Since(begun).Round(time.Millisecond))
	if after := gapLines(t, dir); !slices.Equal(losses, after) {
		t.Errorf("gaps live\n%s\nat rest\n%s", losses, after)
	}
	st := stats(t, dir)
	if known := index.KnownTo(dir, index.Options{}).Newest(); known != st.DurableOffset || st.DurableOffset < last.DurableOffset || st.Events < last.Events {
		t.Errorf("the index on disk is at %d of %d behind the answers; live it was %d with %d events", known, st.DurableOffset, last.DurableOffset, last.Events)
	}
	before = listing(t, filepath.Join(dir, "journal"))
	sameAnswers(t, "live and at rest, again", live, lookupLines(t, dir, "", objects))
	if after := listing(t, filepath.Join(dir, "journal")); after != before {
		t.Errorf("a question changed the journal:\n%s\nafter\n%s", before, after)
	}
}
