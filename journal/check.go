package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// Checked is how much a check of a journal read.
type Checked struct {
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Blocks  uint64 `json:"blocks"`
	Records uint64 `json:"records"`
	// Horizon is where a pruned journal begins, 0: it was never pruned. Baseline is how many rows stand for what came before.
	Horizon  uint64 `json:"horizon_offset,omitempty"`
	Baseline uint64 `json:"baseline_rows,omitempty"`
	// First and Last are the offsets of the first and the last record that could be read.
	First uint64 `json:"first_offset,omitempty"`
	Last  uint64 `json:"last_offset,omitempty"`
	// Known is the newest offset of which the journal, the head file or the index tells.
	Known uint64 `json:"known_offset,omitempty"`
}

// Check reads all of the journal of a directory at rest, which the caller holds datadir.Share of: every file with its checksums, every
// block and every message, the rows beside them in both directions, where each source stands, and the head file. Each finding is given to report, in no order. The journal is returned open for reading, nil where it
// cannot be opened; err is not nil only where the check itself could not go on. Memory does not grow with the journal.
func Check(ctx context.Context, dir string, o Options, report func(Finding), progress func(done, total uint64)) (*Journal, Checked, error) {
	o.ReadOnly = true
	o = o.withDefaults()
	c := &checker{dir: dir, o: o, report: report, sources: map[uint32]*checkedSource{}}
	path := o.FS.PathJoin(dir, folder)
	files, err := pebblefile.List(o.FS, path)
	if err != nil {
		return nil, c.Checked, err
	}
	for _, f := range files {
		c.Files++
		c.Bytes += f.Size
	}
	done := int64(0)
	c.read = func(bytes int64) {
		if done += bytes; progress != nil {
			progress(uint64(min(done, 2*c.Bytes)), uint64(2*c.Bytes))
		}
	}
	c.checkGate()
	j, err := open(dir, o)
	if err != nil {
		if errors.Is(err, datadir.ErrNewer) || errors.Is(err, errNothing) {
			return nil, c.Checked, err
		}
		f := Finding{File: folder, What: err.Error(), Next: NextRepair}
		if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
			f.Offset, f.What = corrupt.Offset, corrupt.What
		}
		c.find(f)
		return nil, c.Checked, c.checkFiles(ctx, files, nil)
	}
	err = c.checkOpen(ctx, j, files)
	if err != nil {
		return nil, c.Checked, errors.Join(err, j.Close())
	}
	return j, c.Checked, nil
}

type checker struct {
	Checked
	dir     string
	o       Options
	j       *Journal
	report  func(Finding)
	read    func(bytes int64)
	damaged bool
	torn    bool // records are missing, so that what is computed from them differs

	at      uint64      // first offset of the block being checked
	want    [256]uint64 // rows that there must be, by family
	rows    blockRows
	totals  Totals
	sources map[uint32]*checkedSource
	scan    event.Batch
	frames  [][]byte
	seq     [8]byte
}

// find reports a finding; it is damage unless it says otherwise.
func (c *checker) find(f Finding) {
	if f.Severity == "" {
		f.Severity = Damage
	}
	c.damaged = c.damaged || f.Severity == Damage
	c.report(f)
}

func (c *checker) row(key []byte, offset uint64, what string) {
	c.find(Finding{File: folder, Offset: offset, Key: hex.EncodeToString(key), What: what, Next: NextRepair})
}

// checkGate reads the gate file, which has no checksum, byte by byte.
func (c *checker) checkGate() {
	if err := datadir.CheckExactly(c.o.FS, c.dir); err != nil {
		c.find(Finding{File: datadir.GateFile, What: err.Error(), Next: NextRepair})
	}
}

func (c *checker) checkOpen(ctx context.Context, j *Journal, files []pebblefile.File) error {
	c.j = j
	live, err := liveTables(j.db)
	if err != nil {
		return err
	}
	if err := c.checkFiles(ctx, files, live); err != nil {
		return err
	}
	if err := j.db.CheckLevels(nil); err != nil && !c.damaged {
		c.find(Finding{File: folder, What: "its tables contradict each other: " + err.Error(), Next: NextRepair})
	}
	if err := c.checkBaseline(ctx); err != nil {
		return err
	}
	if err := c.checkBlocks(ctx); err != nil {
		return err
	}
	c.checkHead()
	if err := c.checkRows(ctx); err != nil {
		return err
	}
	c.checkTotals()
	return c.checkSources()
}

func (c *checker) checkFiles(ctx context.Context, files []pebblefile.File, live map[uint64]bool) error {
	d := pebblefile.Files{FS: c.o.FS, Dir: c.o.FS.PathJoin(c.dir, folder), Options: c.o.pebble(c.o.FS), Written: c.o.written(), Live: live, Logged: true}
	return d.Check(ctx, files, c.read, func(t pebblefile.Trouble) {
		f := Finding{File: folder + "/" + t.File.Name, What: t.What, Next: NextRepair}
		switch {
		case t.Idle:
			f.Severity, f.What, f.Next = Note, f.What+"; the database does not need it any more", NextNothing
		case t.Maybe:
			// What a crash leaves of a write that was never acknowledged. Where it was more, records are missing, and that is found.
			f.Severity, f.Next = Note, NextNothing
		case live != nil && t.File.Kind == pebblefile.Log:
			f.Severity, f.What, f.Next = Note, f.What+"; the database opens without it", NextNothing
		}
		c.find(f)
	})
}

// written are the options that may stand in the database's OPTIONS file.
func (o Options) written() (out []*pebble.Options) {
	own, shared := o.pebble(o.FS), o.pebble(o.FS)
	own.ReadOnly, shared.ReadOnly = false, false
	own.Cache, shared.Cache, shared.CacheSize = nil, nil, SharedCache
	if own.CacheSize == 0 {
		own.CacheSize = o.CacheSize
	}
	return append(out, own, shared)
}

// checkRun checks the blocks that an iterator gives from an offset on, and returns the offset behind them, and the one that must come next.
func (c *checker) checkRun(ctx context.Context, it *pebble.Iterator, from, next uint64) (uint64, uint64, error) {
	b, horizon := &Block{}, c.j.Horizon().Offset
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return from, next, err
		}
		first := last8(it.Key())
		v, err := it.ValueAndErr()
		if err != nil {
			return from, next, nil // the iterator's own error
		}
		c.read(int64(len(v)))
		if len(it.Key()) != 9 {
			c.row(it.Key(), 0, "the key of a block has the wrong length")
			continue
		}
		err = b.decode(first, v, c.j.codec)
		if err == nil {
			err = b.Load()
		}
		if err != nil {
			c.torn = true
			c.find(Finding{File: c.holder(it.Key()), Offset: first, What: err.Error(), Next: NextRepair})
			continue // the hole that it leaves is found with the next block
		}
		if c.Blocks++; c.First == 0 {
			c.First = first
		}
		switch {
		case first <= horizon && next <= horizon: // it was kept, or holds the horizon
		case first < next:
			c.find(Finding{File: c.holder(it.Key()), Offset: first, What: fmt.Sprintf("a block that begins at offset %d lies over one that ends at %d", first, next-1), Next: NextRepair})
		case first > next:
			if told, err := b.tells(next); err != nil || !told {
				c.lose(next, first-1)
			}
		}
		from, next = b.Last()+1, max(next, b.Last()+1)
		c.Last = from - 1
		if err := c.block(b); err != nil {
			return from, next, err
		}
	}
	return from, next, nil
}

// lose reports a hole of which no record tells.
func (c *checker) lose(first, last uint64) {
	c.torn = true
	c.find(Finding{Offset: first, Last: last, What: fmt.Sprintf("%d records are missing", last-first+1), Next: NextRepair})
}

// checkHead compares the head file and the index's offset with the journal.
func (c *checker) checkHead() {
	last := c.j.Durable()
	head, err := c.readHead()
	if err != nil {
		c.find(Finding{File: headFile, What: err.Error(), Next: NextNothing, Severity: Damage})
	}
	c.Known = max(last, head, c.o.Indexed.To(c.j.id))
	if c.Known > last {
		c.torn = true
		c.find(Finding{Offset: last + 1, Last: c.Known, What: "acknowledged records are gone from the journal's end", Next: "the next recorder writes that down and marks what it puts in doubt; " + NextRepair})
	}
}

func (c *checker) readHead() (uint64, error) {
	h, err := headOf(c.o.FS, c.dir)
	if err == nil && h.id != c.j.id {
		return 0, fmt.Errorf("%w: it is that of another journal", errHead)
	}
	return h.offset, err
}
