package journal

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Checkpoint writes the journal's database into the new directory to, on the same filesystem, by hard links where those can be
// had. On return it is synced, and everything that was acknowledged before the call is in it. Appending goes on meanwhile.
//
// The copy is made of tables alone. Pebble copies its log while it is written to, and what it copied may be torn in the middle; so all
// that counts is flushed first, and the log is left out: flushes take commits in their order, so the tables of any moment are the
// journal as it was at some commit.
func (j *Journal) Checkpoint(to string) error {
	if err := j.failed(); err != nil {
		return err
	}
	if err := j.Flush(); err != nil {
		return fmt.Errorf("flushing the journal: %w", err)
	}
	if err := j.db.Checkpoint(to); err != nil {
		return fmt.Errorf("writing a checkpoint of the journal: %w", err)
	}
	names, err := j.opts.FS.List(to)
	if err != nil {
		return fmt.Errorf("reading the checkpoint of the journal: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			if err := j.opts.FS.Remove(j.opts.FS.PathJoin(to, name)); err != nil {
				return fmt.Errorf("leaving the log out of the checkpoint: %w", err)
			}
		}
	}
	return datadir.SyncDir(j.opts.FS, to)
}

// Origin tells which journal another one began as a copy of.
type Origin struct {
	// Journal is the id of the journal that was copied, Offset its newest one in the copy: up to there both are the same.
	Journal string `json:"journal"`
	Offset  uint64 `json:"offset"`
	// Copied is when the copy was given an id of its own.
	Copied time.Time `json:"copied"`
}

// Origin returns where the journal began as a copy; ErrNotFound where it did not.
func (j *Journal) Origin() (Origin, error) {
	v, err := j.get(metaOrigin)
	if err != nil {
		return Origin{}, err
	}
	var o Origin
	if err := json.Unmarshal(v, &o); err != nil {
		return Origin{}, &CorruptError{What: "origin row does not decode"}
	}
	return o, nil
}

// Fork gives the journal in dir, a copy that nobody has opened, an id of its own, and writes that down as its origin. From here on it and
// the journal that it was copied from give the same offsets to different records; with one id, an index of the one would be
// taken for an index of the other, and answer wrongly. The head file says again what it said.
func Fork(dir string, o Options, now time.Time) (was, is ID, err error) {
	o = o.withDefaults()
	j, err := open(dir, o)
	if err != nil {
		return was, is, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	was = j.id
	if _, err := rand.Read(is[:]); err != nil {
		return was, is, err
	}
	h := j.headWith(Known{})
	origin, err := json.Marshal(Origin{Journal: was.String(), Offset: j.Durable(), Copied: now.UTC()})
	if err != nil {
		return was, is, err
	}
	b := j.db.NewBatch()
	defer b.Close()
	if err := errors.Join(b.Set(metaID, is[:], nil), b.Set(metaOrigin, origin, nil), b.Commit(pebble.Sync)); err != nil {
		return was, is, fmt.Errorf("giving the journal an id of its own: %w", err)
	}
	j.id, h.id = is, is
	return was, is, datadir.WriteFile(o.FS, dir, headFile, encodeHead(h))
}
