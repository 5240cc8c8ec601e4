package index

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/digits"
)

// The first byte of a key names its keyspace. Part of the format.
const (
	keyApplied = 'a' // -> offset up to which the journal is in the index
	keyClear   = 'c' // scope · position↓ -> evidence: every `cleared`
	keyProof   = 'e' // scope · position↓ -> evidence: those that confirm absence (R7)
	keyGap     = 'g' // source · offset · n -> a line of gaps
	keyHistory = 'h' // scope · object · medium · position↓ -> evidence: every event of an object
	keyJournal = 'j' // -> format version, id of the journal
	keyScope   = 'k' // scope -> nothing: it was seen
	keyLive    = 'l' // scope · object · medium -> position of the newest event, where it is `stored`
	keyMark    = 'm' // source · offset -> a mark and how far it extends
	keyState   = 's' // source -> where the source stands

	keyBaseline   = 'b' // -> JSON: the horizon that the rows begin with
	keyCheckpoint = 'v' // offset -> JSON: where all sources stood

	keyReading       = 'r' // scope · position↓ -> evidence, e, end, number of exceptions: a reading of the master (R9)
	keyException     = 'x' // scope · object · position↓ -> nothing: that reading says nothing about the object
	keySourceReading = 'q' // source · h -> JSON: a reading
	keyStatus        = 'u' // source · offset -> JSON: what the master's counters said there
	keySilent        = 'f' // source · epoch -> offset: it is flagged (R11)
)

// Position is a place in the stream: an event by the offset of its batch and its place in it, 1, 2, …; event 0 lies before
// the batch's first event, endOfBatch behind its last.
type Position struct {
	Offset uint64
	Event  uint32
}

const endOfBatch = 1<<32 - 1

// Compare orders positions.
func (p Position) Compare(q Position) int {
	switch {
	case p.Offset != q.Offset:
		if p.Offset < q.Offset {
			return -1
		}
		return 1
	case p.Event < q.Event:
		return -1
	case p.Event > q.Event:
		return 1
	}
	return 0
}

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// Behind is the position behind the whole record at offset.
func Behind(offset uint64) Position { return Position{offset, endOfBatch} }

// Text is stored so that the order of keys is the order of the bytes, and no key is a prefix of another: 00 becomes 00 FF,
// and 00 01 ends it.
const (
	escape     = 0x00
	escaped00  = 0xff
	terminator = 0x01
)

func appendText(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, escape)
		if i < 0 {
			dst = append(dst, s...)
			return append(dst, escape, terminator)
		}
		dst = append(dst, s[:i]...)
		dst = append(dst, escape, escaped00)
		s = s[i+1:]
	}
}

// cutText reads a text back and returns what follows it; ok is false where there is none.
func cutText(b []byte) (text, rest []byte, ok bool) {
	end := textEnd(b)
	if end < 0 {
		return nil, nil, false
	}
	return bytes.ReplaceAll(b[:end-2], []byte{escape, escaped00}, []byte{escape}), b[end:], true
}

// textEnd is the index behind the text's terminator, -1 where there is none.
func textEnd(b []byte) int {
	for i := 0; ; {
		k := bytes.IndexByte(b[i:], escape)
		if k < 0 || i+k+1 >= len(b) {
			return -1
		}
		if b[i+k+1] == terminator {
			return i + k + 2
		}
		i += k + 2
	}
}

// appendScope appends source, backend and tenant.
func appendScope(dst []byte, source uint32, backend, tenant []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, source)
	dst = appendText(dst, backend)
	return appendText(dst, tenant)
}

// An object's key is a byte that says how it is written, then the key. Connectors make keys that begin with the 64 hex digits of a
// hash; those are kept as 32 bytes, which nearly halves the index. The order of keys is kept within each of the two forms.
const (
	objectPlain  = 1 // text
	objectPacked = 2 // 64 lower-case hex digits, two a byte, then text
	packedBytes  = 32
)

func appendObject(dst, key []byte) []byte {
	if len(key) >= 2*packedBytes && digits.Is(key[0]) { // most others show it here
		n := len(dst)
		dst = digits.AppendPacked(append(dst, objectPacked), key[:2*packedBytes])
		if len(dst) == n+1+packedBytes {
			return appendText(dst, key[2*packedBytes:])
		}
		dst = dst[:n]
	}
	return appendText(append(dst, objectPlain), key)
}

// appendObjectKey appends the key that b holds whole, as appendObject wrote it.
func appendObjectKey(dst, b []byte) []byte {
	if b[0] == objectPacked {
		dst = digits.AppendText(dst, b[1:1+packedBytes])
		b = b[packedBytes:]
	}
	for b = b[1 : len(b)-2]; ; { // without the terminator
		i := bytes.IndexByte(b, escape)
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i+1]...)
		b = b[i+2:]
	}
}

// objectEnd is the index behind the object's key that b begins with, -1 where there is none.
func objectEnd(b []byte) int {
	at := 1
	if len(b) > 0 && b[0] == objectPacked {
		at += packedBytes
	}
	if len(b) < at {
		return -1
	}
	n := textEnd(b[at:])
	if n < 0 {
		return -1
	}
	return at + n
}

// Media: the two that publishers send today are one byte, every other is written out.
const (
	mediumCPU   = 1
	mediumDisk  = 2
	mediumOther = 3
)

func appendMedium(dst, medium []byte) []byte {
	switch string(medium) {
	case "cpu":
		return append(dst, mediumCPU)
	case "disk":
		return append(dst, mediumDisk)
	}
	return appendText(append(dst, mediumOther), medium)
}

// cutMedium reads a medium back and returns what follows it.
func cutMedium(b []byte) (medium string, rest []byte, ok bool) {
	if len(b) == 0 {
		return "", nil, false
	}
	switch b[0] {
	case mediumCPU:
		return "cpu", b[1:], true
	case mediumDisk:
		return "disk", b[1:], true
	case mediumOther:
		text, rest, ok := cutText(b[1:])
		return string(text), rest, ok
	}
	return "", nil, false
}

// Positions in keys: each number as a length-prefixed big-endian integer, all bits turned over, so that the newest comes first.
const oneByteMax = 0xf7

func appendDescending(dst []byte, v uint64) []byte {
	if v <= oneByteMax {
		return append(dst, ^byte(v))
	}
	n := 8
	for v>>(8*(n-1)) == 0 {
		n--
	}
	dst = append(dst, ^byte(oneByteMax+n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, ^byte(v>>(8*i)))
	}
	return dst
}

func cutDescending(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	first := ^b[0]
	if first <= oneByteMax {
		return uint64(first), b[1:], true
	}
	n := int(first - oneByteMax)
	if len(b) < 1+n {
		return 0, nil, false
	}
	for _, c := range b[1 : 1+n] {
		v = v<<8 | uint64(^c)
	}
	return v, b[1+n:], true
}

func appendPosition(dst []byte, p Position) []byte {
	return appendDescending(appendDescending(dst, p.Offset), uint64(p.Event))
}

func cutPosition(b []byte) (p Position, ok bool) {
	offset, b, ok := cutDescending(b)
	if !ok {
		return p, false
	}
	event, b, ok := cutDescending(b)
	return Position{offset, uint32(event)}, ok && len(b) == 0 && event <= endOfBatch
}

func sourceKey(space byte, source uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{space}, source)
}

// offsetKey is the key of a row of a source at an offset.
func offsetKey(space byte, source uint32, offset uint64) []byte {
	return binary.BigEndian.AppendUint64(sourceKey(space, source), offset)
}

func markKey(source uint32, offset uint64) []byte { return offsetKey(keyMark, source, offset) }

func gapKey(source uint32, offset uint64, n byte) []byte {
	return append(offsetKey(keyGap, source, offset), n)
}

// split is where the part of a key that the bloom filters know ends: behind the object in history, live and exceptions, behind
// the scope in clears, proofs and readings, at the end elsewhere.
func split(k []byte) int {
	if len(k) < 5 {
		return len(k)
	}
	object := false
	switch k[0] {
	case keyHistory, keyLive, keyException:
		object = true
	case keyClear, keyProof, keyReading:
	default:
		return len(k)
	}
	at := 5
	for range 2 {
		n := textEnd(k[at:])
		if n < 0 {
			return len(k)
		}
		at += n
	}
	if object {
		n := objectEnd(k[at:])
		if n < 0 {
			return len(k)
		}
		at += n
	}
	return at
}

// comparer orders keys by their bytes and tells Pebble where prefixes end. Every field that Pebble might otherwise leave
// unset is set.
func comparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = fmt.Sprint("kvjournal.index.", comparerVersion)
	c.Split = split
	c.ImmediateSuccessor = func(dst, a []byte) []byte {
		// A prefix ends in 00 01; 00 02 follows all keys that have it and stands before every other prefix.
		dst = append(dst, a...)
		if n := len(dst); n > 0 && split(a) == len(a) && dst[n-1] == terminator {
			dst[n-1]++
			return dst
		}
		return append(dst, 0)
	}
	c.ComparePointSuffixes = bytes.Compare
	c.CompareRangeSuffixes = bytes.Compare
	c.ValidateKey = nil
	return &c
}
