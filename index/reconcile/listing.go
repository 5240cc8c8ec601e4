package reconcile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// Listing is a set of keys with a byte of notes each, in as little memory as that takes: the bytes of the keys lie in large pieces, one
// behind the other, and 16 bytes of a table point at each (1,000,000 keys of 82 bytes: 100 MB, doc.go). Add all keys, Sort, then read.
type Listing struct {
	pieces [][]byte
	refs   []ref
	size   int // bytes of keys
}

// ref is where a key lies: its length as uvarint, then its bytes.
type ref struct {
	head  uint64 // its first 8 bytes: they decide most comparisons
	at    uint32 // in its piece
	where uint32 // the piece, and in the low byte the notes
}

// pieceBytes is how much is allocated at once.
const pieceBytes = 1 << 20

// Add takes a copy of a key, with its notes.
func (l *Listing) Add(key []byte, note word) {
	var n [binary.MaxVarintLen64]byte
	head := n[:binary.PutUvarint(n[:], uint64(len(key)))]
	last := len(l.pieces) - 1
	if need := len(head) + len(key); last < 0 || cap(l.pieces[last])-len(l.pieces[last]) < need {
		l.pieces = append(l.pieces, make([]byte, 0, max(pieceBytes, need)))
		last++
	}
	p := &l.pieces[last]
	r := ref{head: headOf(key), at: uint32(len(*p)), where: uint32(last)<<8 | uint32(note)}
	*p = append(append(*p, head...), key...)
	l.refs = append(l.refs, r)
	l.size += len(key)
}

func headOf(key []byte) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// Sort puts the keys into the order of their bytes, each once, and returns how many came more than once.
func (l *Listing) Sort() (twice int) {
	slices.SortFunc(l.refs, l.compare)
	before := len(l.refs)
	l.refs = slices.CompactFunc(l.refs, func(a, b ref) bool { return l.compare(a, b) == 0 })
	return before - len(l.refs)
}

func (l *Listing) compare(a, b ref) int {
	if c := cmp.Compare(a.head, b.head); c != 0 {
		return c
	}
	return bytes.Compare(l.of(a), l.of(b))
}

func (l *Listing) of(r ref) []byte {
	b := l.pieces[r.where>>8][r.at:]
	n, size := binary.Uvarint(b)
	return b[size : size+int(n) : size+int(n)]
}

// Len is the number of keys.
func (l *Listing) Len() int { return len(l.refs) }

// Bytes is how many bytes the keys have together.
func (l *Listing) Bytes() int { return l.size }

// Key is the i-th key. It must not be changed.
func (l *Listing) Key(i int) []byte { return l.of(l.refs[i]) }

func (l *Listing) note(i int) word { return word(l.refs[i].where) }

func (l *Listing) setNote(i int, w word) { l.refs[i].where = l.refs[i].where&^0xff | uint32(w) }

// compareKey compares the i-th key with another.
func (l *Listing) compareKey(i int, key []byte) int {
	r := l.refs[i]
	if c := cmp.Compare(r.head, headOf(key)); c != 0 {
		return c
	}
	return bytes.Compare(l.of(r), key)
}

// keep leaves only the keys that f says true of.
func (l *Listing) keep(f func(i int) bool) {
	n := 0
	for i := range l.refs {
		if f(i) {
			l.refs[n] = l.refs[i]
			n++
		}
	}
	l.refs = l.refs[:n]
}

// cursor goes through a listing beside something else that has the same order.
type cursor struct {
	l *Listing
	i int
}

// find moves to a key and reports whether it is there. The keys asked for must ascend.
func (c *cursor) find(key []byte) (i int, ok bool) {
	if c.l == nil {
		return 0, false
	}
	for c.i < c.l.Len() {
		switch order := c.l.compareKey(c.i, key); {
		case order == 0:
			return c.i, true
		case order > 0:
			return 0, false
		}
		c.i++
	}
	return 0, false
}
