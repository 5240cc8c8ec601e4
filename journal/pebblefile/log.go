package pebblefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Batch is one commit in a write-ahead log.
type Batch struct {
	// Seq is the sequence number of its first row.
	Seq  uint64
	repr []byte
}

// Rows calls f with the batch's rows. A deletion of a range has its end as Value, and is Deleted.
func (b Batch) Rows(f func(row Row, isRange bool) error) (err error) {
	defer guard(&err)
	r := batchrepr.Read(b.repr)
	for seq := b.Seq; ; seq++ {
		kind, key, value, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		row, isRange := Row{Key: key, Value: value, Seq: seq}, false
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		case pebble.InternalKeyKindRangeDelete:
			row.Deleted, isRange = true, true
		case pebble.InternalKeyKindLogData:
			seq--
			continue
		default:
			row.Deleted, row.Value = true, nil
		}
		if err := f(row, isRange); err != nil {
			return err
		}
	}
}

// Tail says how a log or a manifest ends.
type Tail struct {
	// End is the offset behind the last record that could be read, Records their number.
	End     int64
	Records int
	// Clean: nothing but the writer's own trailer, or zeros, lies behind End. Else it is what a crash in the middle of a write leaves, or
	// damage; Err says which where that is known.
	Clean bool
	// Err is not nil where later chunks prove that what lies at End had been synced: it is damage.
	Err error

	unread error // that reading the file gave
}

// ReadLog calls f with the batches of a log, in order, up to the first that cannot be read. f keeps nothing of the batch.
// err is f's, ctx's, or the file's.
func ReadLog(ctx context.Context, fs vfs.FS, path string, num uint64, f func(Batch) error) (Tail, error) {
	return new(LogReader).Read(ctx, fs, path, num, f)
}

// LogReader reads logs one behind the other, each batch into the memory of the one before.
type LogReader struct{ buf bytes.Buffer }

// Read is ReadLog.
func (r *LogReader) Read(ctx context.Context, fs vfs.FS, path string, num uint64, f func(Batch) error) (Tail, error) {
	return records(ctx, fs, path, num, 0, r.batches(f))
}

// SalvageLog is ReadLog that goes on behind damage: behind what cannot be read but was synced, as later chunks prove. Where nothing proves
// that, what lies behind was maybe never acknowledged, and its offsets may have been used again: there it ends. Tail is that of
// the first stretch.
func SalvageLog(ctx context.Context, fs vfs.FS, path string, num uint64, f func(Batch) error) (first Tail, err error) {
	r := &LogReader{}
	first, err = r.Read(ctx, fs, path, num, f)
	for tail := first; err == nil && tail.Err != nil; {
		// Chunks begin anew with each block of the log.
		tail, err = records(ctx, fs, path, num, (tail.End/logBlock+1)*logBlock, r.batches(f))
	}
	return first, err
}

// logBlock is the size of a log's blocks, which no chunk crosses.
const logBlock = 32 << 10

// batches makes a function that takes records one that takes batches.
func (r *LogReader) batches(f func(Batch) error) func(io.Reader) error {
	buf := &r.buf
	return func(record io.Reader) error {
		buf.Reset()
		if _, err := buf.ReadFrom(record); err != nil {
			return err
		}
		h, ok := batchrepr.ReadHeader(buf.Bytes())
		if !ok {
			return errShort
		}
		if f == nil || h.Count == 0 {
			return nil
		}
		if err := f(Batch{Seq: uint64(h.SeqNum), repr: buf.Bytes()}); err != nil {
			return stop{err}
		}
		return nil
	}
}

// manifestBegins is the number of records without which no marker names the manifest of a database that has tables: what the tables are, and
// what came with the opening. The last sequence number stands in the second: Pebble opens a database without it, does not see the
// newest rows, and gives their numbers away again.
const manifestBegins = 2

// ReadManifest reads, to its end, the manifest that the marker among the files names: name is empty where there is no marker. A beheaded one
// ends so early that no crash leaves it so.
func ReadManifest(ctx context.Context, fs vfs.FS, dir string, files []File) (name string, tail Tail, beheaded bool, err error) {
	name, named := MarkerValue(files, "manifest")
	if !named {
		return "", Tail{}, false, nil
	}
	tail, err = CheckManifest(ctx, fs, fs.PathJoin(dir, name))
	if err == nil && tail.unread != nil { // it tells nothing of where the manifest ends
		err = fmt.Errorf("%s: %w", fs.PathJoin(dir, name), tail.unread)
	}
	tables := slices.ContainsFunc(files, func(f File) bool { return f.Kind == Table })
	return name, tail, err == nil && tables && tail.Records < manifestBegins, err
}

// CheckManifest reads a manifest to its end. Pebble takes the first record that it cannot read for the end.
func CheckManifest(ctx context.Context, fs vfs.FS, path string) (Tail, error) {
	return records(ctx, fs, path, 0, 0, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}

// readings notes the first failure of a file's reads, which the reader of records takes for damage.
type readings struct {
	io.ReaderAt
	failed error
}

func (r *readings) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) && r.failed == nil {
		r.failed = err
	}
	return n, err
}

var errShort = errors.New("a record is too short for a batch")

// stop carries an error of the caller's through.
type stop struct{ error }

// records reads from an offset on, at which a block begins.
func records(ctx context.Context, fs vfs.FS, path string, num uint64, from int64, f func(io.Reader) error) (tail Tail, err error) {
	tail.End = from
	defer func() {
		if p := recover(); p != nil {
			tail.Err, tail.Clean = fmt.Errorf("%w: %v", errPanic, p), false
		}
	}()
	file, err := fs.Open(path)
	if err != nil {
		return tail, err
	}
	defer file.Close()
	in := &readings{ReaderAt: file}
	defer func() { tail.unread = in.failed }()
	rr := recordsOf(record.NewReader, io.NewSectionReader(in, from, math.MaxInt64-from), num)
	for {
		if err := ctx.Err(); err != nil {
			return tail, err
		}
		r, err := rr.Next()
		if errors.Is(err, io.EOF) {
			return ending(file, tail, err)
		}
		if err == nil {
			if err = f(r); err == nil {
				tail.End = from + rr.Offset()
				tail.Records++
				continue
			}
			var s stop
			if errors.As(err, &s) {
				return tail, s.error
			}
		}
		if !errors.Is(err, record.ErrUnexpectedEOF) {
			tail.Err = err // a later chunk says that this was synced, or the bytes are no batch
		}
		return ending(file, tail, err)
	}
}

// ending tells whether anything lies behind the last record.
func ending(file vfs.File, tail Tail, why error) (Tail, error) {
	info, err := file.Stat()
	if err != nil {
		return tail, err
	}
	if errors.Is(why, io.EOF) { // the end of the file, or the writer's trailer
		tail.Clean = true
		return tail, nil
	}
	buf := make([]byte, 32<<10)
	tail.Clean = tail.Err == nil
	for at := tail.End; at < info.Size() && tail.Clean; {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), info.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return tail, err
		}
		for _, b := range buf[:n] {
			if b != 0 {
				tail.Clean = false
				break
			}
		}
		at += int64(n)
		if n == 0 {
			break
		}
	}
	return tail, nil
}
