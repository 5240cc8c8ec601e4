package index

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// Checked is how much a check of an index read.
type Checked struct {
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Rows    uint64 `json:"rows"`
	Applied uint64 `json:"applied_offset"`
	// Compared: every row was compared with one that was computed anew from the journal.
	Compared bool `json:"compared"`
}

// maxDifferences bounds the rows that are named; more are counted only.
const maxDifferences = 20

// Check reads the index of the journal's directory, which is at rest: every file with its checksums, and every row beside those of an index
// that is computed anew up to the same offset in scratch, a directory of o.FS that is not there yet. j is nil where the journal
// cannot be read, and nothing is compared then.
func Check(ctx context.Context, dir string, j *journal.Journal, scratch string, o Options, report func(journal.Finding), progress func(done, total uint64)) (Checked, error) {
	o = o.withDefaults()
	c := &checker{o: o, path: o.FS.PathJoin(dir, folder), report: report}
	files, err := pebblefile.List(o.FS, c.path)
	if err != nil {
		return c.Checked, err
	}
	if len(files) == 0 {
		c.find("", "there is no index", journal.Note)
		return c.Checked, nil
	}
	for _, f := range files {
		c.Files++
		c.Bytes += f.Size
	}
	db, err := datadir.OpenPebble(c.path, o.pebble(o.FS, true))
	if err != nil {
		c.find("", err.Error(), journal.Damage)
		return c.Checked, c.files(ctx, files, nil)
	}
	defer db.Close()
	if err := c.open(ctx, db, files); err != nil || j == nil || j.Sound() != nil {
		return c.Checked, err
	}
	return c.Checked, c.compare(ctx, db, j, scratch, progress)
}

type checker struct {
	Checked
	o       Options
	path    string
	report  func(journal.Finding)
	damaged bool
	differ  int
}

func (c *checker) find(file, what string, severity journal.Severity) {
	c.damaged = c.damaged || severity == journal.Damage
	c.report(journal.Finding{File: folder + file, What: what, Severity: severity, Next: journal.NextRebuild})
}

func (c *checker) files(ctx context.Context, files []pebblefile.File, live map[uint64]bool) error {
	d := pebblefile.Files{FS: c.o.FS, Dir: c.path, Options: c.o.pebble(c.o.FS, true), Written: c.o.written(), Live: live}
	return d.Check(ctx, files, nil, func(t pebblefile.Trouble) {
		severity := journal.Damage
		if t.Idle || t.Maybe {
			severity = journal.Note
		}
		c.find("/"+t.File.Name, t.What, severity)
	})
}

// open checks what the open database says of itself.
func (c *checker) open(ctx context.Context, db *pebble.DB, files []pebblefile.File) error {
	levels, err := db.SSTables()
	if err != nil {
		return err
	}
	live := map[uint64]bool{}
	for _, l := range levels {
		for _, t := range l {
			live[uint64(t.BackingSSTNum)] = true
		}
	}
	if err := c.files(ctx, files, live); err != nil {
		return err
	}
	if err := db.CheckLevels(nil); err != nil && !c.damaged {
		c.find("", "its tables contradict each other: "+err.Error(), journal.Damage)
	}
	if c.Applied, err = readApplied(db); err != nil {
		c.find("", "its applied offset cannot be read: "+err.Error(), journal.Damage)
	}
	return nil
}

// compare computes the index anew and compares the two, key by key.
func (c *checker) compare(ctx context.Context, db *pebble.DB, j *journal.Journal, scratch string, progress func(done, total uint64)) error {
	got, err := get(db, []byte{keyJournal})
	switch {
	case errors.Is(err, pebble.ErrNotFound) && c.Applied == 0:
		c.find("", "it is empty", journal.Note)
		return nil
	case err != nil:
		c.find("", "what it was computed from cannot be read: "+err.Error(), journal.Damage)
		return nil
	case string(got) != string(identity(j)):
		c.find("", "it is of another format or belongs to another journal", journal.Note)
		return nil
	case c.Applied > j.Durable():
		c.find("", fmt.Sprintf("it knows offset %d, the journal ends at %d", c.Applied, j.Durable()), journal.Damage)
		return nil
	case c.Applied < j.Horizon().Offset:
		c.find("", fmt.Sprintf("it ends at offset %d, and the journal begins at %d since it was pruned", c.Applied, j.Horizon().Offset), journal.Note)
		return nil
	}
	trim, err := trimmedFor(db, j)
	if err != nil {
		c.find("", "what it begins with cannot be read: "+err.Error(), journal.Damage)
		return nil
	}
	o := c.o
	o.Log, o.Pause, o.Damaged = nil, nil, nil
	o = o.withDefaults()
	fresh, err := buildAt(ctx, scratch, j, o, c.Applied, func(applied uint64) {
		if progress != nil {
			progress(applied, c.Applied)
		}
	})
	if corrupt := (*journal.CorruptError)(nil); errors.As(err, &corrupt) {
		return nil // a finding of the journal's
	}
	if err != nil {
		return fmt.Errorf("computing the index anew in %s, to compare: %w", scratch, err)
	}
	defer fresh.Close()
	if err := c.rows(ctx, db, fresh.db, trim); err != nil {
		return err
	}
	c.Compared = true
	if c.differ > maxDifferences {
		c.find("", fmt.Sprintf("%d rows differ in all", c.differ), journal.Damage)
	}
	return nil
}

// surplus knows which rows an index may hold more than its journal gives: those of before the horizon, where it was not trimmed yet.
type surplus struct {
	untrimmed bool
	horizon   uint64
}

// trimmedFor says what an index may hold more.
func trimmedFor(db *pebble.DB, j *journal.Journal) (surplus, error) {
	b, err := readBaseline(db)
	h := j.Horizon()
	return surplus{untrimmed: b.Generation < h.Generation, horizon: h.Offset}, err
}

// is reports whether a row is one of those. Of what the index begins with it has an earlier row, or none.
func (s *surplus) is(key []byte) bool {
	if !s.untrimmed {
		return false
	}
	if key[0] == keyBaseline {
		return true
	}
	gone, err := prunedRow(key, s.horizon)
	return gone && err == nil
}

// rows compares two indexes. Live rows that are older than the newest clear of their scope may be in one only: see applier.lastClear.
func (c *checker) rows(ctx context.Context, db, fresh *pebble.DB, more surplus) error {
	a, err := db.NewIter(&pebble.IterOptions{})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := fresh.NewIter(&pebble.IterOptions{})
	if err != nil {
		return err
	}
	defer b.Close()
	dead := deadRows{db: fresh}
	inA, inB := a.First(), b.First()
	for n := 0; inA || inB; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !inA && a.Error() != nil || !inB && b.Error() != nil {
			break
		}
		order := -1
		switch {
		case inA && inB:
			order = bytes.Compare(a.Key(), b.Key())
		case inB:
			order = 1
		}
		switch {
		case order == 0:
			c.Rows++
			if !bytes.Equal(a.Value(), b.Value()) && !(a.Key()[0] == keyBaseline && more.untrimmed) {
				c.row(a.Key(), "a row differs from the journal")
			}
			inA, inB = a.Next(), b.Next()
		case order < 0:
			c.Rows++
			if !dead.is(a.Key(), a.Value()) && !more.is(a.Key()) {
				c.row(a.Key(), "a row that the journal does not give")
			}
			inA = a.Next()
		default:
			if !dead.is(b.Key(), b.Value()) && !(b.Key()[0] == keyBaseline && more.untrimmed) {
				c.row(b.Key(), "a row is missing")
			}
			inB = b.Next()
		}
	}
	if err := a.Error(); err != nil {
		c.find("", "it cannot be read: "+err.Error(), journal.Damage)
		return nil
	}
	return b.Error()
}

func (c *checker) row(key []byte, what string) {
	if c.differ++; c.differ > maxDifferences {
		return
	}
	c.damaged = true
	c.report(journal.Finding{File: folder, Key: hex.EncodeToString(key), What: what, Severity: journal.Damage, Next: journal.NextRebuild})
}

// deadRows knows the newest clear of the scope asked for last.
type deadRows struct {
	db      *pebble.DB
	scope   []byte
	cleared Position
}

// is reports whether a row is a live one that no answer shows.
func (d *deadRows) is(key, value []byte) bool {
	if key[0] != keyLive || len(key) < 5 {
		return false
	}
	p, err := livePosition(value)
	if err != nil {
		return false
	}
	scope := key[:scopeLength(key)]
	if !bytes.Equal(scope, d.scope) {
		d.scope, d.cleared = append(d.scope[:0], scope...), Position{}
		k := append([]byte{keyClear}, scope[1:]...)
		it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: k, UpperBound: append(bytes.Clone(k), 0xff)})
		if err != nil {
			return false
		}
		defer it.Close()
		if it.First() {
			d.cleared, _ = cutPosition(it.Key()[len(k):])
		}
	}
	return p.Before(d.cleared)
}

// buildAt computes an index in a directory of its own, up to an offset.
func buildAt(ctx context.Context, path string, j *journal.Journal, o Options, to uint64, progress func(applied uint64)) (*Index, error) {
	db, a, err := openDB(ctx, path, j, o)
	if err != nil {
		return nil, err
	}
	fresh := &Index{dir: j.Dir(), j: j, opts: o}
	fresh.use(db, a)
	fresh.writing.Lock()
	_, err = fresh.catchUp(ctx, to, progress)
	fresh.writing.Unlock()
	if err != nil {
		return nil, errors.Join(err, fresh.Close())
	}
	return fresh, nil
}
