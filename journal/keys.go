package journal

import "encoding/binary"

// The first byte of a key names its family. Blocks come first on purpose: their keys only grow, and with every other
// family behind them a flushed table never overlaps the blocks of older ones, so Pebble moves those instead of writing
// them again; only a baseline, which is never flushed, lies before them. Part of the format.
const (
	keyBaseline = 'a' // generation · number -> rows of the index as of the horizon
	keyBlock    = 'b' // offset of the first record -> block
	keyState    = 'c' // source -> offset of its last message, continuity state
	keyImport   = 'i' // source · sha256 of a capture -> JSON
	keyMeta     = 'm' // name -> value
	keySource   = 'n' // source -> JSON
	keyPlace    = 'o' // source · first offset of a block that holds a record of it -> its time row's time, if it has one
	keySpan     = 'p' // source · lowest time -> a span of publisher time that the clock passed twice
	keySeq      = 's' // source · epoch · first seq · first offset of the block
	keyTime     = 't' // source · highest publisher time up to this block · first offset of the block
)

var (
	metaID     = append([]byte{keyMeta}, "id"...)
	metaTotals = append([]byte{keyMeta}, "totals"...)
	metaSealed = append([]byte{keyMeta}, "sealed"...)
	metaOrigin = append([]byte{keyMeta}, "origin"...)
)

func key64(family byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{family}, v)
}

func blockKey(offset uint64) []byte { return key64(keyBlock, offset) }

func sourceKey(family byte, source uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 32), family), source)
}

func placeKey(source uint32, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(sourceKey(keyPlace, source), offset)
}

func seqKey(source uint32, epoch, seq, offset uint64) []byte {
	k := sourceKey(keySeq, source)
	k = binary.BigEndian.AppendUint64(k, epoch)
	k = binary.BigEndian.AppendUint64(k, seq)
	return binary.BigEndian.AppendUint64(k, offset)
}

// ordered maps int64 to uint64 so that the order stays.
func ordered(t int64) uint64   { return uint64(t) ^ 1<<63 }
func unordered(u uint64) int64 { return int64(u ^ 1<<63) }

func timeKey(source uint32, time int64, offset uint64) []byte {
	k := binary.BigEndian.AppendUint64(sourceKey(keyTime, source), ordered(time))
	return binary.BigEndian.AppendUint64(k, offset)
}

func spanKey(source uint32, lo int64) []byte {
	return binary.BigEndian.AppendUint64(sourceKey(keySpan, source), ordered(lo))
}

// last8 is the number a key ends with.
func last8(k []byte) uint64 { return binary.BigEndian.Uint64(k[len(k)-8:]) }
