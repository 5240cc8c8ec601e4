package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// baselineReader takes the blocks of a baseline one by one, and says whether it is whole.
type baselineReader struct {
	h     *Horizon
	codec *codec
	// blocks and rows were read so far.
	blocks, rows uint64

	sum uint32
	raw []byte
}

// block takes the next block; what f gets is valid until it returns.
func (r *baselineReader) block(key, v []byte, f func(key, value []byte) error) error {
	if !bytes.Equal(key, baselineKey(r.h.Generation, r.blocks)) {
		return baselineError(r.blocks, "it is missing")
	}
	var err error
	if r.raw, err = r.codec.baselineBlock(r.raw, key, v); err != nil {
		return baselineError(r.blocks, err.Error())
	}
	r.sum = crc32.Update(r.sum, castagnoli, v[len(v)-4:])
	for c := (varint.Cursor{B: r.raw}); len(c.B) > 0; r.rows++ {
		key := c.Bytes(c.Uvarint())
		value := c.Bytes(c.Uvarint())
		if c.Bad {
			return baselineError(r.blocks, "its rows do not decode")
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	r.blocks++
	return nil
}

// end says whether that was all.
func (r *baselineReader) end() error {
	if r.blocks != r.h.Blocks || r.rows != r.h.Rows || r.sum != r.h.Checksum {
		return baselineError(r.blocks, fmt.Sprintf("%d blocks and %d rows are there, %d and %d were written", r.blocks, r.rows, r.h.Blocks, r.h.Rows))
	}
	return nil
}

// baselineBlock checks a block of a baseline, and returns its rows in dst.
func (c *codec) baselineBlock(dst, key, v []byte) ([]byte, error) {
	if len(v) < 7 {
		return dst, errors.New("it is too short")
	}
	body, sum := v[:len(v)-4], binary.LittleEndian.Uint32(v[len(v)-4:])
	if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body) != sum {
		return dst, errors.New("its checksum does not match")
	}
	if body[0] != baselineVersion {
		return dst, fmt.Errorf("version %d, this program reads %d", body[0], baselineVersion)
	}
	cur := varint.Cursor{B: body[2:]}
	n := cur.Uvarint()
	if cur.Bad || n > maxDecoded {
		return dst, errors.New("its head does not decode")
	}
	return c.expand(dst, cur.B, body[1]&blockTableZstd != 0, n)
}

func baselineError(block uint64, what string) error {
	return &CorruptError{What: fmt.Sprintf("block %d of the baseline, which stands for what was pruned: %s", block, what)}
}
