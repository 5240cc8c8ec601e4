package datadir

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
)

// killed is a database whose owner was killed: a table, and behind it a log with a deletion, so that a table of what is in the log has no
// statistics, which Pebble begins to gather with the flush, in the middle of Open.
func killed(t *testing.T) vfs.FS {
	t.Helper()
	mem := faultfs.NewCrashable()
	db, err := OpenPebble("db", logged(mem))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Set([]byte("a"), nil, pebble.Sync), db.Flush(),
		db.Set([]byte("b"), nil, pebble.Sync), db.DeleteRange([]byte("a"), []byte("b"), pebble.Sync))
	left := mem.Clone(rand.New(rand.NewPCG(1, 1)), 0)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return left
}

func logged(fs vfs.FS) *pebble.Options {
	return &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: &PebbleLogger{}}
}

// TestOpenEndsWhatItFlushes: whatever operation of an Open fails, behind the beginning of its flush it returns no error. Else work in the background
// would go on with the caches of a database that there is not, and panic.
func TestOpenEndsWhatItFlushes(t *testing.T) {
	outcomes := map[string]int{}
	for i, done := int64(0), false; !done; i++ {
		fault := &faultfs.Nth{N: i, Err: syscall.EIO}
		ended := make(chan string, 100)
		var db *pebble.DB
		var flushed atomic.Bool
		fatal := func(string) {
			ended <- "fatal"
			select {} // it must not return
		}
		o := logged(NewGuard(errorfs.Wrap(killed(t), fault), GuardOptions{Database: "journal", Fatal: fatal}))
		o.Logger = Logger(nil, "journal", fatal)
		o.EventListener = &pebble.EventListener{FlushBegin: func(pebble.FlushInfo) { flushed.Store(true) }}
		go func() {
			var err error
			switch db, err = OpenPebble("db", o); {
			case err == nil:
				ended <- "open"
			case flushed.Load():
				ended <- "late: " + err.Error()
			default:
				ended <- "error"
			}
		}()
		how := <-ended
		outcomes[how]++
		path, failed := fault.Failed()
		if done = !failed; len(how) > len("error") {
			t.Errorf("operation %d, of %s: %s", i, path, how)
		}
		if how != "open" {
			continue
		}
		err := holds(db, "b")
		if err != nil { // the operation that fails may be one of this reading
			err = holds(db, "b")
		}
		if err != nil {
			t.Errorf("operation %d, of %s: %v", i, path, err)
		}
		if err := db.Close(); err != nil && done {
			t.Error(err)
		}
	}
	if outcomes["open"] < 2 || outcomes["fatal"] < 10 || outcomes["error"] < 10 {
		t.Errorf("outcomes: %v", outcomes)
	}
	t.Log(outcomes)
}

// holds is an error where a database holds anything but one key.
func holds(db *pebble.DB, key string) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	if !it.First() || string(it.Key()) != key || it.Next() {
		return errors.Join(errors.New("it holds other keys than "+key), it.Error())
	}
	return nil
}
