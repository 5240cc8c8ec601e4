package index

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
)

// Checkpoint writes the index's database into the new directory to, on the same filesystem, by hard links where those can be had. On
// return it is synced, and it is exactly the index at some offset: all that was applied before the call is in it. Applying goes on
// meanwhile. For a copy whose index is never ahead of its journal, make the index's checkpoint first.
func (x *Index) Checkpoint(to string) error {
	if err := x.Flush(); err != nil {
		return fmt.Errorf("flushing the index: %w", err)
	}
	x.scans.Add(1) // a rebuilt index is not exchanged meanwhile
	defer x.scans.Add(-1)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.gone != nil {
		return x.gone
	}
	if err := x.db.Checkpoint(to); err != nil {
		return fmt.Errorf("writing a checkpoint of the index: %w", err)
	}
	return nil
}

// Adopt makes the index in dir, which nobody has opened, that of the journal with the id is, if it is that of the journal with the id
// was: both hold the same records. Else ErrRebuild.
func Adopt(dir string, was, is journal.ID, o Options) (err error) {
	o = o.withDefaults()
	o.Passing = true
	path := o.FS.PathJoin(dir, folder)
	if _, err := o.FS.Stat(path); err != nil {
		return fmt.Errorf("there is none: %w", ErrRebuild)
	}
	db, err := openPebble(path, o)
	if err != nil {
		return fmt.Errorf("opening %s: %w: %w", path, err, ErrRebuild)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	row, err := get(db, []byte{keyJournal})
	if err != nil || len(row) != 4+len(was) || journal.ID(row[4:]) != was {
		return fmt.Errorf("it belongs to another journal: %w", ErrRebuild)
	}
	if err := db.Set([]byte{keyJournal}, append(row[:4:4], is[:]...), pebble.NoSync); err != nil {
		return err
	}
	return db.Flush()
}
