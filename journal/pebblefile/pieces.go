package pebblefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A table is read past damage by its own index, block by block: each is where the index says, and is whole where its checksum fits. So what
// cannot be read is known exactly, and no block is looked at twice: where a large one does not fit its checksum, Pebble tries every bit of
// it, which takes seconds a look.
//
//	+------------+------------+-----+-------------------+-----+-----------+--------+
//	| data block | data block | ... | partition of the  | ... | top index | footer |
//	|            |            |     | index, or none    |     |           |        |
//	+------------+------------+-----+-------------------+-----+-----------+--------+
//
// Of a table with few data blocks the top index names these, else partitions that do.

// piece is a data block of a table, or, where a partition of the index is damaged, all data that it names.
type piece struct {
	at block.Handle
	// sep is a key: those of the piece are at or below it, those of the next are above.
	sep []byte
	// unnamed: at holds data blocks, one behind the other, that no index names.
	unnamed bool
}

var errTable = errors.New("the table's index cannot be read")

// footerBytes is the length of the footer of a table of format 6: the kind of the checksums, the handles of the metaindex and of the index, padding,
// a checksum (u32), the format (u32) and a magic number.
const (
	footerBytes = 57
	tableFormat = 6
	tableMagic  = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
)

// indexOf reads the handle of a table's index from its footer.
func indexOf(f vfs.File) (h block.Handle, err error) {
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	var b [footerBytes]byte
	if info.Size() < footerBytes {
		return h, errTable
	}
	if _, err := f.ReadAt(b[:], info.Size()-footerBytes); err != nil {
		return h, err
	}
	tail := b[footerBytes-16:] // checksum, format, magic
	crc := crc32.Update(crc32.Checksum(b[:footerBytes-16], castagnoli), castagnoli, tail[4:])
	if string(tail[8:]) != tableMagic || binary.LittleEndian.Uint32(tail[4:]) != tableFormat || masked(crc) != binary.LittleEndian.Uint32(tail) || block.ChecksumType(b[0]) != block.ChecksumTypeCRC32c {
		return h, errTable
	}
	_, n := block.DecodeHandle(b[1:])
	h, m := block.DecodeHandle(b[1+n:])
	if n == 0 || m == 0 {
		return h, errTable
	}
	return h, nil
}

// readBlock reads a block that is not compressed, and compares it with its checksum.
func readBlock(f vfs.File, h block.Handle) ([]byte, error) {
	if h.Length > maxCarved {
		return nil, errTable
	}
	b := make([]byte, h.Length+blockTrailer)
	if _, err := f.ReadAt(b, int64(h.Offset)); err != nil {
		return nil, err
	}
	if data := b[:h.Length+1]; b[h.Length] == 0 && masked(crc32.Checksum(data, castagnoli)) == binary.LittleEndian.Uint32(b[h.Length+1:]) {
		return b[:h.Length], nil
	}
	return nil, fmt.Errorf("the block at byte %d, of %d bytes, does not fit its checksum", h.Offset, h.Length)
}

// masked is a checksum as Pebble stores it, as LevelDB does.
func masked(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

// entries reads a block of an index: pieces without more than their places and separators.
func entries(f vfs.File, h block.Handle, c *pebble.Comparer) (out []piece, err error) {
	defer guard(&err)
	b, err := readBlock(f, h)
	if err != nil {
		return nil, err
	}
	var it colblk.IndexIter
	if err := it.Init(c, b, sstable.NoTransforms); err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		at, err := it.BlockHandleWithProperties()
		if err != nil {
			return nil, err
		}
		out = append(out, piece{at: at.Handle, sep: slices.Clone(it.Separator())})
	}
	return out, nil
}

// pieces are all data of a table, in the order of keys, which is that of the file.
func pieces(f vfs.File, c *pebble.Comparer) ([]piece, error) {
	h, err := indexOf(f)
	if err != nil {
		return nil, err
	}
	top, err := entries(f, h, c)
	if err != nil || len(top) == 0 || top[0].at.Offset == 0 { // the first data block begins the file
		return top, err
	}
	var out []piece
	for _, p := range top {
		part, err := entries(f, p.at, c)
		if err != nil {
			part = []piece{{sep: p.sep, unnamed: true}}
		}
		out = append(out, part...)
	}
	// What is not named lies between what is.
	end := top[0].at.Offset
	for i := len(out) - 1; i >= 0; i-- {
		if p := &out[i]; p.unnamed {
			if i > 0 && !out[i-1].unnamed {
				p.at.Offset = out[i-1].at.Offset + out[i-1].at.Length + blockTrailer
			}
			p.at.Length = max(end, p.at.Offset) - p.at.Offset
		}
		end = out[i].at.Offset
	}
	return out, nil
}

// Span is a stretch of keys: above Low, and up to High. Low is nil where it begins with the first, High where it ends with the last.
type Span struct{ Low, High []byte }

// Unreadable returns the spans of a table's keys that Pebble cannot read, in their order; o are the options of its database. Damaged data
// that lies side by side is one span. Memory holds one block of the table.
func Unreadable(ctx context.Context, fs vfs.FS, path string, o *pebble.Options) ([]Span, error) {
	if !opens(ctx, fs, path, o) {
		return []Span{{}}, nil
	}
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := pieces(f, pebble.DefaultComparer)
	if err != nil {
		return []Span{{}}, nil
	}
	var out []Span
	var low []byte
	bad := false // the piece before
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := &all[i]
		was := bad
		if bad = p.unnamed; !bad {
			_, err := readBlock(f, p.at)
			bad = err != nil
		}
		switch {
		case bad && was:
			out[len(out)-1].High = p.sep
		case bad:
			out = append(out, Span{low, p.sep})
		}
		low = p.sep
	}
	return out, nil
}

// opens reports whether Pebble can begin to read a table.
func opens(ctx context.Context, fs vfs.FS, path string, o *pebble.Options) bool {
	var err error
	func() {
		defer guard(&err)
		var t *TableReader
		if t, err = OpenTable(fs, path, o); err != nil {
			return
		}
		defer t.Close()
		dels, derr := t.r.NewRawRangeDelIter(ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
		if err = derr; err == nil && dels != nil {
			dels.Close()
		}
	}()
	return err == nil
}
