package pebblefile

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Row is a key of a table or a log with its value. Both are valid until the function that was given the row returns.
type Row struct {
	Key, Value []byte
	// Seq orders the writes of a database; 0 in the lowest level, whose rows are older than all others of their key.
	Seq uint64
	// Deleted: the key was deleted at Seq.
	Deleted bool
}

// TableReader reads one table. It is not for concurrent use.
type TableReader struct{ r *sstable.Reader }

// OpenTable opens a table; o are the options of its database. An error is a table of which nothing can be read this way.
func OpenTable(fs vfs.FS, path string, o *pebble.Options) (t *TableReader, err error) {
	defer guard(&err)
	o = o.Clone()
	o.EnsureDefaults()
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return nil, err // NewReader closed the file
	}
	return &TableReader{r}, nil
}

// Close closes the table.
func (t *TableReader) Close() error { return t.r.Close() }

// Check reads every block of the table and compares it with its checksum. The footer is what a table is opened by.
func (t *TableReader) Check() (err error) {
	defer guard(&err)
	return t.r.ValidateBlockChecksums()
}

// Rows calls f with the rows from low on and below high (nil: all), in the order of their keys, until a block cannot be read: then next
// is a key at which reading may go on (nil: there is none), and damage says what is wrong. err is f's or ctx's.
func (t *TableReader) Rows(ctx context.Context, low, high []byte, f func(Row) error) (last []byte, damage, err error) {
	defer guard(&damage)
	it, damage := t.r.NewIter(sstable.NoTransforms, nil, high, sstable.AssertNoBlobHandles)
	if damage != nil {
		return nil, damage, nil
	}
	defer func() {
		if cerr := it.Close(); damage == nil && err == nil {
			damage = cerr
		}
	}()
	kv := it.SeekGE(low, 0)
	for n := 0; kv != nil; kv, n = it.Next(), n+1 {
		if n%1024 == 0 && ctx.Err() != nil {
			return last, nil, ctx.Err()
		}
		row := Row{Key: kv.K.UserKey, Seq: uint64(kv.K.SeqNum())}
		switch kv.K.Kind() {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			if row.Value, _, damage = kv.Value(nil); damage != nil {
				return last, damage, nil
			}
		default:
			row.Deleted = true
		}
		last = append(last[:0], row.Key...)
		if err := f(row); err != nil {
			return last, nil, err
		}
	}
	return last, it.Error(), nil
}

// Readable reports whether the table can be read at key: what stands there or behind it is returned.
func (t *TableReader) Readable(key []byte) (at []byte, ok bool, err error) {
	defer guard(&err)
	it, err := t.r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, false, err
	}
	defer it.Close()
	if kv := it.SeekGE(key, 0); kv != nil {
		return append([]byte(nil), kv.K.UserKey...), true, nil
	}
	return nil, false, it.Error()
}

// errPanic is what a panic of Pebble's readers becomes: bytes that their checksums vouch for may still be none that they expect.
var errPanic = errors.New("the file does not decode")

func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errPanic, p)
	}
}
