package pebblefile

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
)

// maxCarved bounds what is carved at once: it is held in memory. Tables are at most some ten MiB.
const maxCarved = 1 << 30

// carveRun calls f with the rows of the data blocks that b begins with, one behind the other: the end of each is where its checksum fits. It
// ends at the first that is damaged.
func carveRun(ctx context.Context, b []byte, schema *colblk.KeySchema, c *pebble.Comparer, f func(Row) error) error {
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := blockEnd(b)
		if end < 0 {
			return nil
		}
		if more, err := carve(append([]byte(nil), b[:end]...), schema, c, f); err != nil || !more {
			return err
		}
		b = b[end+blockTrailer:]
	}
	return nil
}

const (
	// keyBundle is the size of bundles in Pebble's default key schema.
	keyBundle = 16
	// blockTrailer is behind each block: how it is compressed (0: not), and a checksum of all before.
	blockTrailer = 5
	// shortestBlock is less than the headers of a columnar block.
	shortestBlock = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockEnd is the length of the block that b begins with, -1 where none ends in it.
func blockEnd(b []byte) int {
	crc := ^uint32(0)
	for i := 0; i+blockTrailer <= len(b); i++ {
		crc = castagnoli[byte(crc)^b[i]] ^ crc>>8
		if b[i] != 0 || i < shortestBlock {
			continue
		}
		// b[i] may be the trailer's first byte.
		if masked(^crc) == binary.LittleEndian.Uint32(b[i+1:]) {
			return i
		}
	}
	return -1
}

// carve calls f with the rows of a block. more is false where it is no data block: then the data is over.
func carve(data []byte, schema *colblk.KeySchema, c *pebble.Comparer, f func(Row) error) (more bool, err error) {
	var stopped error
	defer func() {
		if p := recover(); p != nil {
			more, err = false, stopped
		}
	}()
	var d colblk.DataBlockDecoder
	d.Init(schema, data)
	var it colblk.DataBlockIter
	it.InitOnce(schema, c, nil)
	if err := it.Init(&d, sstable.NoTransforms); err != nil {
		return false, nil
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		row := Row{Key: kv.K.UserKey, Seq: uint64(kv.K.SeqNum())}
		switch kv.K.Kind() {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			if row.Value, _, err = kv.Value(nil); err != nil {
				return false, nil
			}
		default:
			row.Deleted = true
		}
		if stopped = f(row); stopped != nil {
			return false, fmt.Errorf("carving: %w", stopped)
		}
	}
	return it.Error() == nil, nil
}
