package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

const (
	// baselineVersion is the first byte of every block of a baseline.
	baselineVersion = 1
	// baselineRaw is how many bytes of rows a block of a baseline holds before the next begins; a block of one row may be larger.
	baselineRaw = 256 << 10
	// baselineTable is how many bytes of blocks are written before they are brought into the journal.
	baselineTable = 32 << 20

	// baselineFolder holds tables of a baseline that are not in the journal yet.
	baselineFolder = "baseline.new"
)

func baselineKey(generation, number uint64) []byte {
	return binary.BigEndian.AppendUint64(key64(keyBaseline, generation), number)
}

// BaselineWriter writes the rows of a new baseline into the journal, where they count for nothing before Prune makes them current.
// Rows are added in the order of their keys. What it holds does not grow with them.
type BaselineWriter struct {
	j       *Journal
	horizon Horizon
	raw     []byte
	last    []byte // key of the row added last
	block   []byte

	file   vfs.File
	path   string
	table  *sstable.Writer
	stored int
}

// NewBaseline begins the next baseline. Of h Generation, Blocks, Rows, Checksum and Clocks are filled in. Only one may be under way; it
// ends with Prune or Abort.
func (j *Journal) NewBaseline(h Horizon) (*BaselineWriter, error) {
	if j.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	if old := j.Horizon(); h.Offset <= old.Offset && old.Generation > 0 && h.Forgotten <= old.Forgotten {
		return nil, fmt.Errorf("the horizon is at offset %d already", old.Offset)
	}
	if h.Offset == 0 || h.Offset > j.Durable() {
		return nil, fmt.Errorf("offset %d: %w, it ends at %d", h.Offset, ErrNotFound, j.Durable())
	}
	if err := j.failed(); err != nil {
		return nil, err
	}
	h.Generation = j.Horizon().Generation + 1
	h.Blocks, h.Rows, h.Checksum = 0, 0, 0
	if err := datadir.Raise(j.opts.FS, j.dir, datadir.FormatPruned); err != nil {
		return nil, err
	}
	if err := j.sweepBaselines(); err != nil { // of one that was given up
		return nil, err
	}
	return &BaselineWriter{j: j, horizon: h}, nil
}

// Horizon is what was begun, with what is filled in so far.
func (w *BaselineWriter) Horizon() Horizon { return w.horizon }

// Add adds a row behind those added before.
func (w *BaselineWriter) Add(key, value []byte) error {
	if bytes.Compare(key, w.last) <= 0 && w.horizon.Rows > 0 {
		return fmt.Errorf("a row of the baseline is out of order: %x behind %x", key, w.last)
	}
	if len(w.raw) > 0 && len(w.raw)+len(key)+len(value) > baselineRaw {
		if err := w.finishBlock(); err != nil {
			return err
		}
	}
	w.raw = binary.AppendUvarint(w.raw, uint64(len(key)))
	w.raw = append(w.raw, key...)
	w.raw = binary.AppendUvarint(w.raw, uint64(len(value)))
	w.raw = append(w.raw, value...)
	w.last = append(w.last[:0], key...)
	w.horizon.Rows++
	return nil
}

// A block of a baseline: version u8, flags u8 (1: a zstd frame), length of the rows uvarint, the rows, crc32c of the key and all before.
// A row: length of the key uvarint, key, length of the value uvarint, value.
func (w *BaselineWriter) finishBlock() error {
	if len(w.raw) == 0 {
		return nil
	}
	if w.table == nil {
		if err := w.beginTable(); err != nil {
			return err
		}
	}
	w.block = append(w.block[:0], baselineVersion, 0)
	w.block = binary.AppendUvarint(w.block, uint64(len(w.raw)))
	var compressed bool
	if w.block, compressed = w.j.codec.compress(w.block, w.raw); compressed {
		w.block[1] = blockTableZstd
	}
	key := baselineKey(w.horizon.Generation, w.horizon.Blocks)
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, w.block)
	w.block = binary.LittleEndian.AppendUint32(w.block, sum)
	w.horizon.Checksum = crc32.Update(w.horizon.Checksum, castagnoli, w.block[len(w.block)-4:])
	if err := w.table.Set(key, w.block); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	w.horizon.Blocks++
	w.raw = w.raw[:0]
	if w.stored += len(w.block); w.stored >= baselineTable {
		return w.finishTable()
	}
	return nil
}

func (w *BaselineWriter) beginTable() error {
	fs := w.j.opts.FS
	dir := fs.PathJoin(w.j.dir, baselineFolder)
	if err := datadir.MakePrivate(fs, dir); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	w.path = fs.PathJoin(dir, fmt.Sprintf("%d-%d.sst", w.horizon.Generation, w.horizon.Blocks))
	var err error
	if w.file, err = datadir.Private(fs).Create(w.path, vfs.WriteCategoryUnspecified); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	o := w.j.opts.pebble(w.j.guard)
	o.EnsureDefaults()
	w.table = sstable.NewWriter(objstorageprovider.NewFileWritable(w.file), o.MakeWriterOptions(len(o.Levels)-1, w.j.db.TableFormat()))
	w.stored = 0
	return nil
}

// finishTable brings the table into the journal. Ingested, it is durable, passes no write-ahead log, and is never written again: keys of
// this family lie before all others, so that no table of records overlaps it.
func (w *BaselineWriter) finishTable() error {
	if w.table == nil {
		return nil
	}
	err := w.table.Close() // syncs
	w.table = nil
	if err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	if err := w.j.db.Ingest(context.Background(), []string{w.path}); err != nil {
		return fmt.Errorf("taking the baseline into the journal: %w", err)
	}
	return nil
}

// Abort gives the baseline up. Behind Prune it does nothing.
func (w *BaselineWriter) Abort() error {
	if w.j == nil {
		return nil
	}
	if w.table != nil {
		w.table.Close()
	}
	j := w.j
	w.j = nil
	if j.failed() != nil {
		return nil // the next start sweeps
	}
	return j.sweepBaselines()
}

// sweepBaselines removes what baselines left that are not current.
func (j *Journal) sweepBaselines() error {
	if err := j.opts.FS.RemoveAll(j.opts.FS.PathJoin(j.dir, baselineFolder)); err != nil {
		return fmt.Errorf("removing the rest of a baseline: %w", err)
	}
	return j.strayBaselines(func(low, high []byte) error { return j.db.DeleteRange(low, high, pebble.Sync) })
}

// strayBaselines calls f with each range of keys that holds blocks of baselines that are not current.
func (j *Journal) strayBaselines(f func(low, high []byte) error) error {
	now := j.Horizon().Generation
	for _, r := range [][2][]byte{{baselineKey(0, 0), baselineKey(now, 0)}, {baselineKey(now+1, 0), {keyBaseline + 1}}} {
		it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: r[0], UpperBound: r[1]})
		if err != nil {
			return err
		}
		some := it.First()
		if err := it.Close(); err != nil {
			return readError(0, err)
		}
		if some {
			if err := f(r[0], r[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachBaseline calls f with each row of the current baseline, in the order of keys; what f gets is valid until it returns. A baseline that is
// not whole is a *CorruptError.
func (j *Journal) EachBaseline(ctx context.Context, f func(key, value []byte) error) error {
	h := j.Horizon()
	if h.Generation == 0 {
		return nil
	}
	return j.readBaseline(ctx, &baselineReader{h: &h, codec: j.codec}, f)
}

// readBaseline is EachBaseline with a reader, which tells how far it came.
func (j *Journal) readBaseline(ctx context.Context, r *baselineReader, f func(key, value []byte) error) error {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: baselineKey(r.h.Generation, 0), UpperBound: baselineKey(r.h.Generation+1, 0)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return readError(r.h.Offset, err)
		}
		if err := r.block(it.Key(), v, f); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return readError(r.h.Offset, err)
	}
	return r.end()
}
