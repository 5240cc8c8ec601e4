package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// Pebble keeps write-ahead logs that it does not need any more, to write over them, and removes them when it is next opened: a directory at
// rest would hold up to 128 MiB of them. Where all that was ever logged lies in tables, Close removes them. One log stays, empty,
// because a database without any is one that has lost it (pebblefile.Files.Check).

// written is how much the database was ever given, by its log and past it.
type written struct{ logged, ingested uint64 }

func (j *Journal) written() written {
	m := j.db.Metrics()
	return written{m.WAL.BytesIn, m.Ingest.Count}
}

// inTables reports whether all that was written lies in tables, which are synced: nothing came since a flush began.
func (j *Journal) inTables() bool {
	flushed := j.flushed.Load()
	return flushed != nil && *flushed == j.written()
}

// dropLogs removes the logs of a database that is closed and has all in its tables. A crash leaves some or all of them, which is as good.
func dropLogs(fs vfs.FS, path string) error {
	files, err := pebblefile.List(fs, path)
	if err != nil {
		return err
	}
	var logs []pebblefile.File
	for _, f := range files { // by number
		if f.Kind == pebblefile.Log {
			logs = append(logs, f)
		}
	}
	if len(logs) == 0 {
		return nil
	}
	newest := logs[len(logs)-1]
	name := fs.PathJoin(path, newest.Name)
	// The flush began it, so nothing is in it but what lay in the file before, behind its end. To be sure, that is read.
	_, err = pebblefile.ReadLog(context.Background(), fs, name, newest.Num, func(pebblefile.Batch) error { return errEnough })
	if errors.Is(err, errEnough) {
		return fmt.Errorf("%s is not empty; no log is removed", newest.Name)
	}
	if err != nil {
		return err
	}
	if newest.Size > 0 && len(logs) > 1 { // the others are there while there is none of its name
		f, err := datadir.Private(fs).Create(name, "pebble-wal")
		if err == nil {
			err = errors.Join(f.Sync(), f.Close(), datadir.SyncDir(fs, path))
		}
		if err != nil {
			return err
		}
	}
	for _, f := range logs[:len(logs)-1] {
		if err := fs.Remove(fs.PathJoin(path, f.Name)); err != nil {
			return err
		}
	}
	return nil
}
