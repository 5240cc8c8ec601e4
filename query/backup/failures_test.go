package backup_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/service"
)

// The i-th file operation of a backup, and of a restore, fails, for every i: an error and no backup, or a whole one; the directory that it
// is taken of stays as it was, and the next attempt succeeds. make crash visits every i; else it is each 17th or so.
func TestEachFailure(t *testing.T) {
	step := func() int32 { return 1 }
	if os.Getenv("KVJOURNAL_POINTS") == "" {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		some := rand.New(rand.NewPCG(seed, 1))
		step = func() int32 { return 1 + some.Int32N(33) }
	}
	for _, what := range []string{"backup", "restore"} {
		t.Run(what, func(t *testing.T) {
			begun := vfs.NewCrashableMem()
			want, from, ended := ready(t, begun), dataDir, 0
			if what == "restore" {
				from = "/backups/from"
				if _, err := backup.AtRest(t.Context(), dataDir, from, undisturbed, backup.Options{FS: begun}); err != nil {
					t.Fatal(err)
				}
			}
			for i := step() - 1; ; i += step() {
				mem := begun.CrashClone(vfs.CrashCloneCfg{}) // all that matters was synced
				at := errorfs.OnIndex(i)
				err := attempt(t, what, from, errorfs.Wrap(mem, survivable{errorfs.ErrInjected.If(at)}))
				failed := at.Index.Load() < 0
				if errors.Is(err, errEnded) {
					// The process that ended does no more to its files; what stands for it here still compacts.
					ended++
					mem = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(uint64(i), 2))})
				}
				if err != nil && !failed {
					t.Fatalf("nothing failed: %v", err)
				}
				if err == nil || datadir.Check(mem, "/backups/to") == nil {
					if got := atRest(t, mem, "/backups/to", 1); got != want {
						t.Fatalf("operation %d failed: what was made answers otherwise (%v)", i, err)
					}
				} else {
					if _, err := service.OpenAtRest(t.Context(), "/backups/to", service.Options{FS: mem}); err == nil {
						t.Fatalf("operation %d failed: half of it opens", i)
					}
					if err := attempt(t, what, from, mem); err != nil {
						t.Fatalf("operation %d failed; the next attempt: %v", i, err)
					}
				}
				if got := atRest(t, mem, from, 1); got != want {
					t.Fatalf("operation %d failed: the original answers otherwise", i)
				}
				if !failed {
					t.Logf("%d operations; the process ended at %d of them", i, ended)
					if i < 50 {
						t.Error("so few?")
					}
					return
				}
			}
		})
	}
}

// survivable leaves out what Pebble answers with a panic of a goroutine of its own, which no test outlives: a database's directory that
// cannot be synced when a manifest is put in place.
type survivable struct{ errorfs.Injector }

func (s survivable) MaybeError(op errorfs.Op) error {
	err := s.Injector.MaybeError(op)
	if op.Kind == errorfs.OpFileSync && (strings.HasSuffix(op.Path, "/index") || strings.HasSuffix(op.Path, "/journal")) {
		return nil
	}
	return err
}

// errEnded stands for the end of the process, which Pebble asks for where it cannot write its manifest.
var errEnded = errors.New("the process ended")

func attempt(t *testing.T, what, from string, fs vfs.FS) error {
	end, done := make(chan error, 1), make(chan error, 1)
	o := backup.Options{FS: fs, Fatal: func(string) {
		select {
		case end <- errEnded:
		default:
		}
		select {} // it must not return
	}}
	go func() {
		var err error
		if what == "backup" {
			_, err = backup.AtRest(context.Background(), from, "/backups/to", undisturbed, o)
		} else {
			_, err = backup.Restore(context.Background(), from, "/backups/to", o)
		}
		done <- err
	}()
	select {
	case err := <-end:
		return err
	case err := <-done:
		return err
	case <-time.After(5 * time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}
