package journal

import (
	"encoding/binary"
	"fmt"
)

// Lost is what a TailLost record tells: the offsets First to Last are not in the journal any more.
//
// Its one frame is First and Last, 8 bytes each, big-endian, then for each entry of Also its source (4 bytes) and epoch (8 bytes), then
// Through, 8 bytes, if it is not 0.
type Lost struct {
	First, Last uint64
	// Through is the end of the journal when a repair found the loss, 0 where it was found at the end. What the records behind the loss, up
	// to there, say of readings of the master supposes what was lost: a reading is kept as its difference from what was known.
	Through uint64
	// Also says more of the loss than that it marks the record's own source.
	Also []LostOf
}

// LostOf is what a loss means to one source.
type LostOf struct {
	// Source is marked too, where it is not the record's own.
	Source uint32
	// Silent is not 0 where what was lost may have told that the master changes things without an event in that epoch (R11).
	Silent uint64
}

const (
	lostEntry   = 12
	lostThrough = 8
)

// Frame is the record's one frame.
func (l *Lost) Frame() []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, l.First), l.Last)
	for _, a := range l.Also {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, a.Source), a.Silent)
	}
	if l.Through != 0 {
		b = binary.BigEndian.AppendUint64(b, l.Through)
	}
	return b
}

// DecodeLost reads the frames of a TailLost record at offset.
func DecodeLost(offset uint64, frames [][]byte) (Lost, error) {
	bad := &CorruptError{Offset: offset, What: "tail_lost record does not decode"}
	if len(frames) != 1 || len(frames[0]) < 16 {
		return Lost{}, bad
	}
	b := frames[0]
	l := Lost{First: binary.BigEndian.Uint64(b), Last: binary.BigEndian.Uint64(b[8:])}
	b = b[16:]
	switch len(b) % lostEntry {
	case 0:
	case lostThrough:
		l.Through = binary.BigEndian.Uint64(b[len(b)-lostThrough:])
		b = b[:len(b)-lostThrough]
	default:
		return Lost{}, bad
	}
	for ; len(b) > 0; b = b[lostEntry:] {
		l.Also = append(l.Also, LostOf{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])})
	}
	return l, nil
}

// tells reports whether the block begins with the record of the loss of all offsets from first on that it is behind.
func (b *Block) tells(first uint64) (bool, error) {
	if b.Header(0).Kind != TailLost {
		return false, nil
	}
	frames, err := b.Frames(0, nil, new([8]byte))
	if err != nil {
		return false, err
	}
	l, err := DecodeLost(b.First, frames)
	return err == nil && l.First <= first && b.First <= l.Last+1, err
}

// missing is the error for offsets that are gone and of which no record tells.
func missing(first, last uint64) *CorruptError {
	return &CorruptError{Offset: first, What: fmt.Sprintf("the records at offsets %d to %d are gone", first, last)}
}

// beginning is the offset from which on the journal must be without a hole: 1, or the horizon.
func (j *Journal) beginning() uint64 { return max(1, j.Horizon().Offset) }
