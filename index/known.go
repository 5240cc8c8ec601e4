package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// An index may know of a loss: it has applied what is gone from its journal's end. It is computed anew then, and what takes its place
// knows no more than the journal has. So the offset is kept first, in a file beside it, until a writer wrote the loss down (Told).

// KnownFile holds it, in the data directory.
const KnownFile = "index.head"

// KnownTo returns what the index in dir, and those that it was computed in place of, say of how far the journal went. What is missing or
// cannot be read says nothing; where only the id cannot be read the claim is any journal's.
func KnownTo(dir string, o Options) journal.Known {
	o = o.withDefaults()
	known := kept(dir, o)
	db, err := datadir.OpenPebble(o.FS.PathJoin(dir, folder), o.pebble(o.FS, true))
	if err != nil {
		return known
	}
	defer db.Close()
	return append(known, claimOf(db)...)
}

func kept(dir string, o Options) (known journal.Known) {
	if c := journal.Kept(o.FS, dir, KnownFile); c.Offset > 0 {
		known = append(known, c)
	}
	return known
}

// claimOf is what the rows say.
func claimOf(db pebble.Reader) journal.Known {
	applied, err := readApplied(db)
	if err != nil || applied == 0 {
		return nil
	}
	c := journal.Claim{Offset: applied}
	// In rows of another format than this program knows the id may stand elsewhere.
	if row, err := get(db, []byte{keyJournal}); err == nil && len(row) == 4+len(c.Of) && binary.BigEndian.Uint32(row) <= formatVersion {
		c.Of = journal.ID(row[4:])
	}
	return journal.Known{c}
}

// Look reads what the index in the journal's directory says of itself: how far it, and those that it was computed in place of, know the journal
// to go, and whether it is current: of this format, with all of the journal, so that Open has nothing to do.
func Look(j *journal.Journal, o Options) (known journal.Known, current bool) {
	o = o.withDefaults()
	path := o.FS.PathJoin(j.Dir(), folder)
	known = kept(j.Dir(), o)
	db, err := datadir.OpenPebble(path, o.pebble(o.FS, true))
	if err != nil {
		return known, false
	}
	defer db.Close()
	known = append(known, claimOf(db)...)
	if readable(path, o) != nil {
		return known, false
	}
	applied, err := readApplied(db)
	id, iderr := get(db, []byte{keyJournal})
	return known, err == nil && iderr == nil && applied == j.Durable() && string(id) == string(identity(j))
}

// Current is Look's.
func Current(j *journal.Journal, o Options) bool {
	_, current := Look(j, o)
	return current
}

// keepKnown keeps what is known of a loss that the journal does not tell of, before the index that knows it goes.
func keepKnown(j *journal.Journal, o Options) error {
	offset := KnownTo(j.Dir(), o).To(j.ID())
	if offset <= j.Durable() || offset == kept(j.Dir(), o).To(j.ID()) {
		return nil
	}
	return journal.Claim{Of: j.ID(), Offset: offset}.Keep(o.FS, j.Dir(), KnownFile)
}

// Told drops what was kept of a loss: the journal, which is open for writing, tells of it, or its head file does.
func Told(j *journal.Journal, o Options) error {
	o = o.withDefaults()
	if err := o.FS.Remove(o.FS.PathJoin(j.Dir(), KnownFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing what an older index knew: %w", err)
	}
	return nil
}
