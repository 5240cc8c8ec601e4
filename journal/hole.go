package journal

import "errors"

// Hole is a run of offsets that were lost with a damaged disk, First to Last.
type Hole struct{ First, Last uint64 }

// HoleAt returns the hole that an offset lies in; ok is false where the record is there, or not durable yet, or lies before the horizon. A
// *CorruptError where no record tells of the hole: what lies in it may be there still.
func (j *Journal) HoleAt(offset uint64) (h Hole, ok bool, err error) {
	if j.readable(offset) != nil {
		return Hole{}, false, nil
	}
	before, after, err := j.around(offset)
	if err != nil || before == offset || after == nil {
		return Hole{}, false, err
	}
	h = Hole{before + 1, after.First - 1}
	if after.Header(0).Kind != TailLost {
		return h, true, nil // a beginning that is not there
	}
	frames, err := after.Frames(0, nil, new([8]byte))
	if err != nil {
		return Hole{}, false, err
	}
	l, err := DecodeLost(after.First, frames) // it stands in the place of one of them, in a repaired journal
	return Hole{min(h.First, l.First), max(h.Last, l.Last)}, true, err
}

// Around returns the offsets nearest to one that are in the journal: the newest at or before it, and the oldest at or behind it. 0: none, or
// before the horizon.
func (j *Journal) Around(offset uint64) (before, after uint64, err error) {
	if offset = max(offset, j.beginning()); offset > j.Durable() {
		return j.Durable(), 0, nil
	}
	before, next, err := j.around(offset)
	if before < j.beginning() {
		before = 0
	}
	switch {
	case before == offset:
		after = offset
	case next != nil:
		after = next.First
	}
	return before, after, err
}

// around returns the newest offset at or before one, and, where that is another, the block behind it, nil: none.
func (j *Journal) around(offset uint64) (before uint64, after *Block, err error) {
	b, err := j.blockAt(nil, offset)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return 0, nil, err
	case b.Last() >= offset:
		return offset, nil, nil
	default:
		before = b.Last()
	}
	after, err = j.NextBlock(nil, before)
	if errors.Is(err, ErrNotFound) {
		after, err = nil, nil
	}
	return before, after, err
}

// EndOfLoss returns the offset of the last of the TailLost records that follow each other from that at offset on: each marks its own source,
// and all tell of what lies before the first.
func (j *Journal) EndOfLoss(offset uint64) (uint64, error) {
	for ; offset < j.Durable(); offset++ {
		r, err := j.Record(offset + 1)
		if errors.Is(err, ErrNotFound) || err == nil && r.Kind != TailLost {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	return offset, nil
}
