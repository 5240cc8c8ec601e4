package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// What Pebble takes for an end may be damage: it stops at the first record of the manifest that it cannot read, makes a new database
// where the marker of the manifest is gone, and does not miss a write-ahead log. Then older records would be gone without an error, and a
// database that is open for writing removes the tables that it does not know. So before and after Pebble opens, what it cannot
// know is checked here.

// survey is what is known of the database's files before it is opened.
type survey struct {
	files []pebblefile.File
	// begins holds, for each write-ahead log, the offset of the first block that was appended to it.
	begins []uint64
	// head is what the head file knows, of whatever journal.
	head uint64
	// manifest is not nil where the manifest cannot be read to its end.
	manifest error
}

// examine reads what the files of the database in path say of themselves. It fails where a database is plainly there but Pebble would not
// see it.
func examine(dir, path string, o Options) (*survey, error) {
	files, err := pebblefile.List(o.FS, path)
	if err != nil {
		return nil, err
	}
	s := &survey{files: files}
	if h, err := headOf(o.FS, dir); err == nil { // it only ever adds knowledge
		s.head = h.offset
	}
	ctx := context.Background()
	var logs pebblefile.LogReader
	for _, f := range files {
		if f.Kind != pebblefile.Log || f.Size == 0 {
			continue
		}
		first, err := firstAppended(ctx, &logs, o.FS.PathJoin(path, f.Name), f.Num, o)
		if err != nil {
			return nil, err
		}
		if first != 0 {
			s.begins = append(s.begins, first)
		}
	}
	// The head file is written when the database is complete: one whose making was cut short has none.
	_, err = o.FS.Stat(o.FS.PathJoin(dir, headFile))
	data := err == nil || s.count(pebblefile.Table) > 0 || len(s.begins) > 0
	_, named := pebblefile.MarkerValue(files, "manifest")
	_, versioned := pebblefile.MarkerValue(files, "format-version")
	if data && (!named || !versioned) {
		what := "there is no database in it, but a head file or others that tell of one"
		if len(files) > 0 {
			what = "a marker file is gone, marker.manifest.* or marker.format-version.*"
		}
		return nil, fmt.Errorf("%s: %w", path, &CorruptError{What: what})
	}
	manifest, tail, beheaded, err := pebblefile.ReadManifest(ctx, o.FS, path, files)
	switch {
	case err != nil:
		s.manifest = err
	case beheaded:
		return nil, fmt.Errorf("%s: %w", path, &CorruptError{What: fmt.Sprintf("%s is cut short behind its first %d bytes; nothing was changed", manifest, tail.End)})
	case manifest != "" && !tail.Clean:
		s.manifest = fmt.Errorf("%s cannot be read behind its first %d bytes", manifest, tail.End)
	}
	return s, nil
}

func (s *survey) count(k pebblefile.Kind) (n int) {
	for _, f := range s.files {
		if f.Kind == k {
			n++
		}
	}
	return n
}

// whole is what opening the database came to: one that is read and holds nothing, beside tables, has lost what its manifest says of them;
// beside a head file that knows of records it has lost all its logs, and so has one without any log that holds sources alone.
func (s *survey) whole(j *Journal, err error) error {
	if err == nil && j.next == 1 && s.count(pebblefile.Log) == 0 && readHead(j.opts.FS, j.dir, j.id).offset > 0 {
		return s.logsGone()
	}
	if !errors.Is(err, errNothing) {
		return err
	}
	for _, f := range s.files {
		if f.Kind == pebblefile.Table {
			return &CorruptError{What: fmt.Sprintf("it holds nothing, and records may be in %s, which the manifest does not name; nothing was changed", f.Name)}
		}
	}
	if s.head > 0 {
		return s.logsGone()
	}
	return err
}

func (s *survey) logsGone() error {
	return &CorruptError{Offset: 1, What: fmt.Sprintf("it holds no record, and the head file knows of %d: its write-ahead logs are gone; nothing was changed. To begin anew, give a new directory", s.head)}
}

// logBytes is the size of all write-ahead logs.
func (s *survey) logBytes() (n int64) {
	for _, f := range s.files {
		if f.Kind == pebblefile.Log {
			n += f.Size
		}
	}
	return n
}

// errEnough ends a reading of a log.
var errEnough = errors.New("that is enough")

// firstAppended is the offset of the first block that was appended in a log, 0 where there is none. What the sealer wrote is
// older, and known by the range that it deletes.
func firstAppended(ctx context.Context, logs *pebblefile.LogReader, path string, num uint64, o Options) (uint64, error) {
	first := uint64(0)
	_, err := logs.Read(ctx, o.FS, path, num, func(b pebblefile.Batch) error {
		block, sealed := uint64(0), false
		err := b.Rows(func(r pebblefile.Row, isRange bool) error {
			sealed = sealed || isRange
			if !r.Deleted && block == 0 && len(r.Key) == 9 && r.Key[0] == keyBlock {
				block = last8(r.Key)
			}
			return nil
		})
		if err == nil && block != 0 && !sealed {
			first, err = block, errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil && pebble.IsCorruptionError(err) {
		return 0, nil // Pebble says so better
	}
	return first, err
}

// sound reports, as a *CorruptError, whether records are missing in the middle: each log must begin where what was before it ended.
func (j *Journal) sound(s *survey) error {
	for _, first := range s.begins {
		if first == 1 || first > j.next-1 || first <= j.Horizon().Offset { // what came before a block that a prune kept is gone
			continue
		}
		b, err := j.blockAt(nil, first-1)
		if errors.Is(err, ErrNotFound) {
			continue // a beginning that is not there
		}
		if err != nil {
			return err
		}
		last := b.Last()
		if last >= first-1 {
			continue
		}
		if b, err = j.blockAt(b, first); err != nil {
			return err
		}
		if b.First != first {
			continue // lost behind the log's end, or pruned
		}
		if told, err := b.tells(last + 1); err != nil || told {
			if err != nil {
				return err
			}
			continue
		}
		return missing(last+1, first-1)
	}
	return nil
}

// precheckBytes is how much of write-ahead logs is read twice at an open for writing, to look before anything is removed.
const precheckBytes = 4 << 20

// precheck opens the database for reading first where that is cheap or there is reason to: one that is open for writing removes the
// tables that its manifest does not name, and with a damaged manifest these may be what is missing.
func precheck(dir string, s *survey, o Options) error {
	if s.count(pebblefile.Manifest) == 0 || s.manifest == nil && s.logBytes() > precheckBytes {
		return nil
	}
	o.ReadOnly = true
	j, err := openExamined(dir, s, o)
	if err != nil {
		if errors.Is(err, errNothing) {
			return nil // its making was cut short
		}
		return err
	}
	defer j.Close()
	if j.hole == nil && j.known(nil) <= j.next-1 {
		return nil
	}
	orphans, err := j.orphans(s)
	if err != nil || len(orphans) == 0 && s.manifest == nil {
		return err
	}
	what := "records are missing"
	if len(orphans) > 0 {
		what += fmt.Sprintf(", and may be in %s, which the manifest does not name", orphans[0])
	}
	if s.manifest != nil {
		what += " (" + s.manifest.Error() + ")"
	}
	return &CorruptError{Offset: j.next, What: what + "; nothing was changed"}
}

// orphans are the tables that are there but not part of the database.
func (j *Journal) orphans(s *survey) ([]string, error) {
	live, err := liveTables(j.db)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range s.files {
		if f.Kind == pebblefile.Table && !live[f.Num] {
			out = append(out, f.Name)
		}
	}
	return out, nil
}

// liveTables are the numbers of the tables that a database goes by.
func liveTables(db *pebble.DB) (map[uint64]bool, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	live := map[uint64]bool{}
	for _, l := range levels {
		for _, t := range l {
			live[uint64(t.BackingSSTNum)] = true
		}
	}
	return live, nil
}

// Sound is nil where the journal is whole as far as its opening could see. Else records are missing in its middle, and it is a
// *CorruptError: appending goes on, but what is computed from it would be wrong.
func (j *Journal) Sound() error { return j.hole }

// errNothing: there is a database, but nothing was ever written to it.
var errNothing = fmt.Errorf("%w: nothing was ever recorded", datadir.ErrMissing)

// empty reports whether the database has no row at all.
func (j *Journal) empty() bool {
	it, err := j.db.NewIter(nil)
	if err != nil {
		return false
	}
	defer it.Close()
	return !it.First() && it.Error() == nil
}

// create makes an empty database at path, in the place of one whose making was cut short: whole or not at all, since Pebble itself can
// leave one without a manifest if a loss of power comes before its first sync of the directory. Pebble begins its first log in its oldest
// format, in which a flipped bit looks like the end: so it is closed before anything is written to it.
func create(fs *datadir.Guard, dir, path string, o Options) error {
	fresh := path + ".new"
	if err := errors.Join(fs.RemoveAll(fresh), fs.RemoveAll(path)); err != nil {
		return err
	}
	if err := datadir.MakePrivate(fs, fresh); err != nil {
		return err
	}
	db, err := datadir.OpenPebble(fresh, o.pebble(fs))
	if err != nil {
		return err
	}
	if err := errors.Join(db.Close(), datadir.SyncDir(fs, fresh)); err != nil {
		return err
	}
	if err := fs.Rename(fresh, path); err != nil {
		return err
	}
	return datadir.SyncDir(fs, dir)
}
