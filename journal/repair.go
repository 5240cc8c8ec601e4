package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// Repair does not open the damaged database: it reads its files one by one, and what it keeps of them is what checks itself.
//
//	every table and log ──▶ pile: blocks by offset, other rows by key, each the newest first ──▶ a new journal, record by record
//
// A block holds what was received, which never changes: so of two that hold the same offset either will do, and it does not matter whether
// the database still went by the file. The rows beside blocks, the totals and the index are computed anew.
//
// Of a pruned journal the baseline is kept, if it is whole (repairbaseline.go).
//
// Where offsets are missing, TailLost records take the place of the last of them, one for each source (or one for several, if fewer
// offsets than sources are missing): a mark at a spot that no reader can pass. Everything may have happened there: no evidence
// before counts behind it, a reading of the master that spans it is void, and where a master was asked, the epochs on both sides are taken for
// silent (R11), since what flagged them may be among what is lost.

// Repaired tells what a repair kept and what it could not.
type Repaired struct {
	Sources int    `json:"sources"`
	Records uint64 `json:"records"`
	First   uint64 `json:"first_offset,omitempty"`
	Last    uint64 `json:"last_offset,omitempty"`
	// Horizon is where it begins, if it was pruned and its baseline, of so many rows, is whole. BaselineLost: it is not, and what came
	// before the horizon is lost, but for the records that are there still.
	Horizon      uint64 `json:"horizon_offset,omitempty"`
	BaselineRows uint64 `json:"baseline_rows,omitempty"`
	BaselineLost bool   `json:"baseline_lost,omitempty"`
	// Lost is the number of offsets that are missing, in Holes runs; Ranges are the first of these.
	Lost   uint64      `json:"lost_records"`
	Holes  int         `json:"holes"`
	Ranges [][2]uint64 `json:"lost_offsets,omitempty"`
	// Unreadable are the files of which something could not be read.
	Unreadable []string `json:"unreadable,omitempty"`
	// Restored are the sources whose name or standing was lost and is made up from their records.
	Restored []string `json:"restored,omitempty"`
}

// maxRanges bounds the ranges that are named.
const maxRanges = 1000

// Repair writes into the new data directory to, which the caller has claimed, all of the journal in dir that can be read. Nothing in dir is
// changed. Memory does not grow with the journal, but the holes in it are held.
func Repair(ctx context.Context, dir, to string, o Options, progress func(done, total uint64)) (Repaired, error) {
	o = o.withDefaults()
	r := &repairer{ctx: ctx, from: o.FS.PathJoin(dir, folder), dir: dir, o: o, progress: progress, beginning: 1, sources: map[uint32]*salvaged{}}
	var err error
	if r.codec, err = newCodec(); err != nil {
		return r.Repaired, err
	}
	defer r.codec.close()
	if err := datadir.Prepare(o.FS, to); err != nil {
		return r.Repaired, err
	}
	scratch := o.FS.PathJoin(to, "pile")
	if r.pile, err = openPile(scratch, o); err != nil {
		return r.Repaired, err
	}
	err = r.gather()
	if err == nil {
		err = r.survey()
	}
	if err == nil {
		err = r.write(to)
	}
	err = errors.Join(err, r.pile.Close())
	if err == nil {
		err = o.FS.RemoveAll(scratch)
	}
	return r.Repaired, err
}

type repairer struct {
	Repaired
	ctx      context.Context
	dir      string // the damaged one
	from     string // its database
	o        Options
	codec    *codec
	pile     *pebble.DB
	progress func(done, total uint64)

	done, total uint64
	id          ID
	hasID       bool
	beginning   uint64 // see Journal.beginning
	known       uint64 // the newest offset of which something tells
	holes       []hole
	sources     map[uint32]*salvaged

	horizons   []Horizon // that were found
	horizon    Horizon   // that is kept, the zero Horizon: none
	hasHorizon bool      // its record was found
	totals     *Totals   // the newest that were found, nil: none
	behind     Totals    // of the records behind the horizon
	rows       []byte    // of a block of a baseline
	frames     [][]byte
}

// hole is a run of offsets that are missing.
type hole struct {
	first, last uint64
	// next are the epochs of the sources' next records behind it.
	next map[uint32]uint64
}

// salvaged is what is known of a source.
type salvaged struct {
	Source
	named bool
	// asked: a master was asked, so that there may be flags of R11.
	asked bool
	// newest is the header of the newest record read so far that is not stale.
	newest Header
	has    bool
	// last is the offset of the newest message that is not stale, at the end; seq its number.
	last     uint64
	seq      uint64
	position *Position
	there    bool // the message that position names was found
}

func (r *repairer) source(id uint32) *salvaged {
	s := r.sources[id]
	if s == nil {
		s = &salvaged{Source: Source{ID: id}}
		r.sources[id] = s
	}
	return s
}

// step tells of progress.
func (r *repairer) step(bytes uint64) {
	if r.done += bytes; r.progress != nil {
		r.progress(min(r.done, r.total), r.total)
	}
}

// The pile, a database that is thrown away: 'a' · see keepBaseline; 'b' · first offset · ^sequence number -> block; 'r' · length of key u16 · key ·
// ^sequence number -> 1 and the row's value, or 0 where it was deleted.
func openPile(path string, o Options) (*pebble.DB, error) {
	if err := o.FS.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	p := o.pebble(o.FS)
	p.ReadOnly, p.DisableWAL = false, true
	p.Logger = datadir.Logger(o.Log, "repair", o.Fatal)
	p.EventListener = nil
	return pebble.Open(path, p)
}

func pileKey(family byte, key []byte, seq uint64) []byte {
	k := []byte{family}
	if family == 'r' {
		k = binary.BigEndian.AppendUint16(k, uint16(len(key)))
	}
	return binary.BigEndian.AppendUint64(append(k, key...), ^seq)
}

// gather reads every table and log into the pile. The tables that the database goes by are enough, where it can say so and all can be
// read; else every table counts.
func (r *repairer) gather() error {
	files, err := pebblefile.List(r.o.FS, r.from)
	if err != nil {
		return err
	}
	live := r.live()
	for _, f := range files {
		if f.Kind == pebblefile.Table || f.Kind == pebblefile.Log {
			r.total += 3 * uint64(f.Size)
		}
	}
	for _, f := range files {
		path := r.o.FS.PathJoin(r.from, f.Name)
		var bad error
		switch f.Kind {
		case pebblefile.Table:
			// Of a table that the database does not go by, the rows beside the blocks may be older than they look.
			bad, err = r.table(path, live == nil || live[f.Num])
		case pebblefile.Log:
			var tail pebblefile.Tail
			tail, err = pebblefile.SalvageLog(r.ctx, r.o.FS, path, f.Num, func(b pebblefile.Batch) error {
				return b.Rows(func(row pebblefile.Row, isRange bool) error {
					if isRange {
						return nil // of blocks that the sealer merged: they say the same
					}
					return r.keep(row, true)
				})
			})
			bad = tail.Err
		default:
			continue
		}
		if errors.Is(err, pebble.ErrClosed) || r.ctx.Err() != nil {
			return errors.Join(err, r.ctx.Err())
		}
		if bad == nil {
			bad = err
		}
		if bad != nil {
			r.Unreadable = append(r.Unreadable, folder+"/"+f.Name)
			r.o.Log.Warn("a part of a file cannot be read", "file", folder+"/"+f.Name, "why", bad.Error())
		}
		r.step(uint64(f.Size))
	}
	return r.pile.Flush()
}

// live are the tables that the database goes by, nil where it cannot say.
func (r *repairer) live() map[uint64]bool {
	o := r.o
	o.ReadOnly = true
	db, err := datadir.OpenPebble(r.from, o.pebble(o.FS))
	if err != nil {
		return nil
	}
	defer db.Close()
	tables, err := liveTables(db)
	if err != nil {
		return nil
	}
	return tables
}

// table reads a table, and where that is damaged each of its blocks that is whole.
func (r *repairer) table(path string, live bool) (bad, err error) {
	keep := func(row pebblefile.Row) error { return r.keep(row, live) }
	t, bad := pebblefile.OpenTable(r.o.FS, path, r.o.pebble(r.o.FS))
	if bad == nil {
		_, bad, err = t.Rows(r.ctx, nil, nil, keep)
		t.Close()
	}
	if bad == nil || err != nil {
		return bad, err
	}
	return bad, pebblefile.Salvage(r.ctx, r.o.FS, path, pebble.DefaultComparer, keep)
}

// keep puts a row on the pile, a block only if it is whole.
func (r *repairer) keep(row pebblefile.Row, live bool) error {
	if len(row.Key) == 0 || len(row.Key) > 1<<16-1 {
		return nil
	}
	switch row.Key[0] {
	case keyBaseline:
		return r.keepBaseline(row)
	case keyBlock:
		if row.Deleted || len(row.Key) != 9 {
			return nil
		}
		b := &Block{}
		if b.decode(last8(row.Key), row.Value, r.codec) != nil || b.Load() != nil {
			return nil
		}
		return r.pile.Set(pileKey('b', row.Key[1:], row.Seq), row.Value, pebble.NoSync)
	case keyPlace, keySeq, keyTime:
		return nil
	}
	if !live && row.Key[0] != keyState && row.Key[0] != keySource && !bytes.Equal(row.Key, metaBaseline) {
		return nil
	}
	value := append([]byte{1}, row.Value...)
	if row.Deleted {
		value = []byte{0}
	}
	return r.pile.Set(pileKey('r', row.Key, row.Seq), value, pebble.NoSync)
}

// eachRow calls f with the rows other than blocks, the versions of a key one behind the other, the newest first.
func (r *repairer) eachRow(f func(key, value []byte) error) error {
	it, err := r.pile.NewIter(&pebble.IterOptions{LowerBound: []byte{'r'}, UpperBound: []byte{'r' + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		key := it.Key()[3 : len(it.Key())-8]
		if err := f(key, v); err != nil {
			return err
		}
	}
	return it.Error()
}

// eachBlock calls f with the blocks in order, each with the offset from which on its records are new.
func (r *repairer) eachBlock(f func(b *Block, from uint64) error) error {
	it, err := r.pile.NewIter(&pebble.IterOptions{LowerBound: []byte{'b'}, UpperBound: []byte{'b' + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	b, next := &Block{}, uint64(0)
	for ok := it.First(); ok; ok = it.Next() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		r.step(uint64(len(v)))
		if err := b.decode(binary.BigEndian.Uint64(it.Key()[1:]), v, r.codec); err != nil {
			return err
		}
		if b.Last() < next {
			continue
		}
		from := max(b.First, next)
		next = b.Last() + 1
		if err := f(b, from); err != nil {
			return err
		}
	}
	return it.Error()
}

var errNothingLeft = errors.New("no record of this journal can be read; nothing was written")

func (r *repairer) name(id uint32) string { return fmt.Sprintf("recovered-%d", id) }
