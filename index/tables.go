package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// createTable begins a table as those of the lowest level are, which may be brought into db.
func (o Options) createTable(path string, db *pebble.DB) (*sstable.Writer, error) {
	f, err := datadir.Private(o.FS).Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	p := o.pebble(o.FS, false)
	p.EnsureDefaults()
	w := p.MakeWriterOptions(len(p.Levels)-1, db.TableFormat())
	w.DisableValueBlocks = true // as SpanPolicyFunc says of those that Pebble writes
	return sstable.NewWriter(objstorageprovider.NewFileWritable(f), w), nil
}

const (
	// tableBytes is how many bytes of rows a table gets; it takes about half of them on disk.
	tableBytes = 12 << 20
	// tableWriters is how many tables are written at once.
	tableWriters = 2
)

// tables writes rows as tables, several at once. One goroutine adds rows and finishes.
type tables struct {
	o     Options
	db    *pebble.DB
	dir   string
	paths []string
	jobs  chan tableJob
	free  chan []byte
	wg    sync.WaitGroup

	mu  sync.Mutex
	err error
}

// tableJob is a table's rows: key length uvarint, value length uvarint, key, value.
type tableJob struct {
	path string
	rows []byte
}

// newTables makes tables in dir, which is there; streams is how many tables are filled at once.
func newTables(db *pebble.DB, dir string, streams int, o Options) *tables {
	t := &tables{o: o, db: db, dir: dir, jobs: make(chan tableJob), free: make(chan []byte, tableWriters+streams)}
	for range cap(t.free) {
		t.free <- nil
	}
	for range tableWriters {
		t.wg.Go(func() {
			for j := range t.jobs {
				if t.failed() == nil {
					t.fail(t.write(j))
				}
				t.free <- j.rows[:0]
			}
		})
	}
	return t
}

func (t *tables) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func (t *tables) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// finish waits for the tables under way; it must be called.
func (t *tables) finish() error {
	close(t.jobs)
	t.wg.Wait()
	return t.err
}

func (t *tables) write(j tableJob) error {
	w, err := t.o.createTable(j.path, t.db)
	if err != nil {
		return err
	}
	c := varint.Cursor{B: j.rows}
	for len(c.B) > 0 && err == nil {
		key, value := c.Uvarint(), c.Uvarint()
		if err = w.Set(c.Bytes(key), c.Bytes(value)); c.Bad {
			err = errors.New("rows of a table do not decode")
		}
	}
	return errors.Join(err, w.Close()) // syncs
}

// tableStream is rows in the order of their keys, for one table after the other.
type tableStream struct {
	t    *tables
	rows []byte
	open bool // rows is a buffer of t's
}

// add appends a row; full: a table's rows were handed over.
func (s *tableStream) add(key, value []byte) (full bool) {
	if !s.open {
		if s.rows, s.open = <-s.t.free, true; s.rows == nil {
			s.rows = make([]byte, 0, s.t.o.tableBytes+4<<10)
		}
	}
	b := binary.AppendUvarint(s.rows, uint64(len(key)))
	b = binary.AppendUvarint(b, uint64(len(value)))
	b = append(b, key...)
	s.rows = append(b, value...)
	if len(s.rows) < s.t.o.tableBytes {
		return false
	}
	s.end()
	return true
}

// end hands over what is left.
func (s *tableStream) end() {
	if !s.open {
		return
	}
	if len(s.rows) == 0 {
		s.t.free <- s.rows
	} else {
		path := s.t.o.FS.PathJoin(s.t.dir, fmt.Sprintf("rows-%d.sst", len(s.t.paths)))
		s.t.paths = append(s.t.paths, path)
		s.t.jobs <- tableJob{path, s.rows}
	}
	s.rows, s.open = nil, false
}
