package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/internal/pack"
	"github.com/kvjournal/kvjournal/journal/varint"
)

const (
	// blockVersion is the first byte of every block.
	blockVersion = 1
	// maxBlockRaw bounds the raw bytes of a block of more than one record.
	maxBlockRaw = 1 << 20
	// maxBlockRecords bounds the records of a block, for those that have next to no bytes: empty frames, connection events.
	maxBlockRecords = 8192
	// maxDecoded bounds what a block may claim to decompress to.
	maxDecoded = 1 << 31
)

// Flags of a block. Payloads are always packed (journal/internal/pack).
const (
	blockTableZstd = 1 << iota // the table is a zstd frame
	blockStarts                // the payload has shapes of a form that the first programs do not know (pack.Encoder.Starts)

	blockFlags = 1<<iota - 1 // all that this program knows
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// codec holds the zstd state that blocks share. Its methods may be called from several goroutines at once.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec() (*codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(maxBlockRaw), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &codec{enc: enc, dec: dec}, nil
}

func (c *codec) close() {
	c.enc.Close()
	c.dec.Close()
}

// minTable is the size of the smallest table that is compressed, in bytes. What a smaller one would lose is nothing in a full block, and a small
// block is soon merged: it is packed once and unpacked twice until then, by the index and by the sealer.
const minTable = 256

// compress appends raw, as a zstd frame where that is shorter, and reports whether it is one.
func (c *codec) compress(dst, raw []byte) ([]byte, bool) {
	if len(raw) < minTable {
		return append(dst, raw...), false
	}
	n := len(dst)
	dst = c.enc.EncodeAll(raw, dst)
	if len(dst)-n >= len(raw) {
		return append(dst[:n], raw...), false
	}
	return dst, true
}

func (c *codec) expand(dst, stored []byte, compressed bool, rawLen uint64) ([]byte, error) {
	if !compressed {
		if uint64(len(stored)) != rawLen {
			return nil, fmt.Errorf("%d bytes stored, %d expected", len(stored), rawLen)
		}
		return append(dst[:0], stored...), nil
	}
	// The length is the block's own word, guarded by its checksum; still, let the decoder grow the buffer as data comes.
	if uint64(cap(dst)) < rawLen && rawLen <= maxBlockRaw {
		dst = make([]byte, 0, rawLen)
	}
	out, err := c.dec.DecodeAll(stored, dst[:0])
	if err != nil {
		return nil, err
	}
	if uint64(len(out)) != rawLen {
		return nil, fmt.Errorf("%d bytes decompressed, %d expected", len(out), rawLen)
	}
	return out, nil
}

// builder collects the records of one block.
type builder struct {
	first   uint64
	count   int
	raw     int // bytes of the payloads
	table   tableWriter
	payload pack.Encoder
	scratch []byte
	packed  []byte // the table, compressed
	stored  []byte // the finished block: see pack
}

func (b *builder) reset(first uint64) {
	b.first, b.count, b.raw = first, 0, 0
	b.table.reset()
	b.payload.Reset()
}

func (b *builder) add(h *Header, frames [][]byte) {
	plain, size := isPlain(h, frames), 0
	if plain {
		size = len(frames[2])
		b.payload.Add(frames[2])
	} else {
		for _, f := range frames {
			size += len(f)
		}
		b.payload.AddRaw(frames...)
	}
	b.table.add(h, plain, frames, size)
	b.raw += size
	b.count++
}

// pack makes stored of what was added.
func (b *builder) pack(c *codec) { b.stored = b.appendBlock(b.stored[:0], c) }

// appendBlock appends the finished block's bytes to dst.
func (b *builder) appendBlock(dst []byte, c *codec) []byte {
	start := len(dst)
	b.scratch = b.table.appendTo(b.scratch[:0])
	table, tableZ := c.compress(b.packed[:0], b.scratch)
	b.packed = table
	dst = append(dst, blockVersion, 0)
	dst = binary.AppendUvarint(dst, uint64(b.count))
	dst = binary.AppendUvarint(dst, uint64(len(b.scratch)))
	dst = binary.AppendUvarint(dst, uint64(len(table)))
	dst = binary.AppendUvarint(dst, uint64(b.raw))
	dst = append(dst, table...)
	dst = b.payload.AppendTo(dst, c.enc)
	if tableZ {
		dst[start+1] |= blockTableZstd
	}
	if b.payload.Starts() {
		dst[start+1] |= blockStarts
	}
	return binary.LittleEndian.AppendUint32(dst, blockChecksum(b.first, dst[start:]))
}

// blockChecksum covers the block's bytes and its first offset, so that a block under another's key is found out.
func blockChecksum(first uint64, b []byte) uint32 {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], first)
	return crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, b)
}

// Block is a decoded run of consecutive records. It is reused by the reader that filled it.
type Block struct {
	// First is the offset of the first record.
	First   uint64
	entries []entry
	payload []byte
	// stored is the packed payload, which is unpacked when it is first asked for.
	stored   []byte
	rawLen   uint64
	loaded   bool
	codec    *codec
	tableBuf []byte
}

// Len is the number of records.
func (b *Block) Len() int { return len(b.entries) }

// Last is the offset of the last record.
func (b *Block) Last() uint64 { return b.First + uint64(len(b.entries)) - 1 }

// Header returns the header of record i, 0 <= i < Len(). It is valid until the block is filled again.
func (b *Block) Header(i int) *Header { return &b.entries[i].Header }

// RawLen is the number of raw payload bytes of all records.
func (b *Block) RawLen() int { return int(b.rawLen) }

// Frames appends the frames of record i to dst, exactly as received. They are valid until the block is filled again;
// the second frame of a usual message aliases seq.
func (b *Block) Frames(i int, dst [][]byte, seq *[8]byte) ([][]byte, error) {
	if err := b.load(); err != nil {
		return dst, err
	}
	return b.entries[i].framesOf(b.payload, dst, seq), nil
}

// Load unpacks the payload, which the first Frames does otherwise: a reader that prefetches calls it.
func (b *Block) Load() error { return b.load() }

func (b *Block) load() error {
	if b.loaded {
		return nil
	}
	payload := b.payload[:0]
	if b.rawLen <= maxBlockRaw {
		payload = slices.Grow(payload, int(b.rawLen))
	}
	p, err := pack.Unpack(payload, b.stored, int(b.rawLen), b.codec.dec)
	if err != nil {
		return payloadError(b.First, err)
	}
	b.payload, b.loaded = p, true
	return nil
}

// decode fills b from the stored bytes of the block whose key says first. It copies what it keeps.
func (b *Block) decode(first uint64, stored []byte, c *codec) error {
	packed, err := b.decodeTable(first, stored, c)
	b.stored = append(b.stored[:0], packed...)
	return err
}

// blockParts are a block's head, and what it stores.
type blockParts struct {
	flags                       byte
	count, tableRaw, payloadRaw uint64
	table, packed               []byte
}

// blockPartsOf checks the stored bytes of the block whose key says first, and splits them; nothing is unpacked.
func blockPartsOf(first uint64, stored []byte) (p blockParts, err error) {
	fail := func(what string) (blockParts, error) { return blockParts{}, &CorruptError{Offset: first, What: what} }
	if len(stored) < 7 {
		return fail("block is too short")
	}
	body, sum := stored[:len(stored)-4], binary.LittleEndian.Uint32(stored[len(stored)-4:])
	if blockChecksum(first, body) != sum {
		return fail("block checksum does not match")
	}
	if body[0] != blockVersion {
		if body[0] < blockVersion {
			return fail(fmt.Sprintf("block version %d, this program reads %d", body[0], blockVersion))
		}
		return p, newer(first, fmt.Sprintf("a block of version %d, this program reads %d", body[0], blockVersion))
	}
	if p.flags = body[1]; p.flags&^blockFlags != 0 {
		return p, newer(first, fmt.Sprintf("a block with flags %#x, of which this program knows %#x", p.flags, blockFlags))
	}
	head := varint.Cursor{B: body[2:]}
	var tableLen uint64
	p.count, p.tableRaw, tableLen, p.payloadRaw = head.Uvarint(), head.Uvarint(), head.Uvarint(), head.Uvarint()
	if head.Bad || tableLen > uint64(len(head.B)) || p.count == 0 || p.tableRaw > maxDecoded || p.payloadRaw > maxDecoded || p.count > p.tableRaw {
		return fail("block head does not decode")
	}
	p.table, p.packed = head.B[:tableLen], head.B[tableLen:]
	return p, nil
}

// decodeTable is decode without the payload, which it returns packed, as a part of stored.
func (b *Block) decodeTable(first uint64, stored []byte, c *codec) ([]byte, error) {
	p, err := blockPartsOf(first, stored)
	if err != nil {
		return nil, err
	}
	if b.tableBuf, err = p.expandTable(b.tableBuf, first, c); err != nil {
		return nil, err
	}
	b.First, b.rawLen, b.codec = first, p.payloadRaw, c
	b.loaded = false
	if b.entries, err = decodeTable(b.entries[:0], b.tableBuf, int(p.count), int(p.payloadRaw)); err != nil {
		return nil, tableError(first, err)
	}
	return p.packed, nil
}

// expandTable unpacks the table of the block that begins at first, in place of buf.
func (p *blockParts) expandTable(buf []byte, first uint64, c *codec) ([]byte, error) {
	table, err := c.expand(buf, p.table, p.flags&blockTableZstd != 0, p.tableRaw)
	if err != nil {
		return nil, &CorruptError{Offset: first, What: "header table: " + err.Error()}
	}
	return table, nil
}

// payloadError is what is wrong with the payload of the block that begins at first.
func payloadError(first uint64, err error) error {
	return &CorruptError{Offset: first, What: "payload: " + err.Error()}
}

// tableError is what is wrong with the table of the block that begins at first.
func tableError(first uint64, err error) error {
	var unknown *newerRecord
	if errors.As(err, &unknown) {
		return newer(first+uint64(unknown.record), unknown.what)
	}
	return &CorruptError{Offset: first, What: err.Error()}
}
