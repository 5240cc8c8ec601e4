package journal

import (
	"encoding/binary"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Totals count the records of a journal, over all sources and from the beginning on.
type Totals struct {
	// Messages received, duplicates and damaged ones included.
	Messages uint64
	// Events of the messages that were applied.
	Events uint64
	// RawBytes of all messages' frames.
	RawBytes uint64
	// Duplicates and Damaged messages.
	Duplicates uint64
	Damaged    uint64
}

func (t *Totals) count(h *Header, size int) {
	if h.Kind != Message {
		return
	}
	t.Messages++
	t.RawBytes += uint64(size)
	switch {
	case h.Stale:
	case h.Duplicate:
		t.Duplicates++
	case h.Damage != 0:
		t.Damaged++
	default:
		t.Events += uint64(h.Events)
	}
}

func (t *Totals) fields() []*uint64 {
	return []*uint64{&t.Messages, &t.Events, &t.RawBytes, &t.Duplicates, &t.Damaged}
}

func (t *Totals) encode() []byte {
	var b []byte
	for _, f := range t.fields() {
		b = binary.AppendUvarint(b, *f)
	}
	return b
}

func decodeTotals(b []byte) (Totals, error) {
	var t Totals
	c := varint.Cursor{B: b}
	for _, f := range t.fields() {
		*f = c.Uvarint()
	}
	if c.Bad {
		return t, &CorruptError{What: "totals row does not decode"}
	}
	return t, nil
}

// Stats describe an open journal.
type Stats struct {
	// Durable is the newest acknowledged offset; Totals count what lies at or below it.
	Durable uint64
	Totals  Totals
	// TableBytes is the size of the tables on disk, LogBytes that of the write-ahead logs.
	TableBytes uint64
	LogBytes   uint64
}

// Stats returns figures of the moment.
func (j *Journal) Stats() Stats {
	m := j.db.Metrics()
	total := m.Total()
	s := j.Durables()
	s.TableBytes, s.LogBytes = uint64(total.TablesSize), m.WAL.PhysicalSize
	if j.opts.ReadOnly {
		s.LogBytes = j.logFiles()
	}
	return s
}

// logFiles is the size of the write-ahead logs of a database that is open for reading, which Pebble does not tell.
func (j *Journal) logFiles() uint64 {
	fs, dir := j.opts.FS, j.opts.FS.PathJoin(j.dir, "journal")
	names, err := fs.List(dir)
	if err != nil {
		return 0
	}
	var n uint64
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			n += uint64(info.Size())
		}
	}
	return n
}

// Durables is the part of Stats that costs nothing: what is durable, and how much that is.
func (j *Journal) Durables() Stats {
	d := j.durable.Load()
	return Stats{Totals: d.totals, Durable: d.last}
}

// Database are the figures of the journal's database.
func (j *Journal) Database() *pebble.Metrics { return j.db.Metrics() }
