package journal

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// offsets are those of records, first to last, both of them included.
type offsets struct{ first, last uint64 }

// checkBlocks reads every block and every record. Where Pebble cannot go on, the tables are asked which of their blocks are damaged, and it
// goes on behind those: each is looked at once, and what lies between two of them is read.
func (c *checker) checkBlocks(ctx context.Context) error {
	next := c.j.beginning() // the offset that must come
	from := uint64(0)       // where reading goes on; a pruned journal has kept blocks before its horizon
	to := []byte{keyBlock + 1}
	var holes []offsets
	var why error
	for {
		it, err := c.j.db.NewIter(&pebble.IterOptions{LowerBound: blockKey(from), UpperBound: to})
		if err != nil {
			return err
		}
		from, next, err = c.checkRun(ctx, it, from, next)
		bad := it.Error()
		if cerr := it.Close(); bad == nil {
			bad = cerr
		}
		short := to[0] == keyBlock // it was to end before a hole
		if err != nil {
			return err
		}
		if bad == nil && !short {
			c.endsAt(next)
			return nil
		}
		c.torn = true
		if bad != nil {
			why = bad
		}
		if holes == nil {
			if holes, err = c.unreadable(ctx); err != nil {
				return err
			}
		}
		i := slices.IndexFunc(holes, func(h offsets) bool { return h.last >= from })
		if i >= 0 && holes[i].first > from && !short {
			to = blockKey(holes[i].first) // Pebble looked further than it had to
			continue
		}
		c.find(Finding{File: c.fileOf(why), Offset: from, What: fmt.Sprintf("blocks cannot be read: %v", why), Next: NextRepair})
		if i < 0 || holes[i].last == math.MaxUint64 {
			c.endsAt(next)
			return nil
		}
		from, to = holes[i].last+1, []byte{keyBlock + 1}
	}
}

// endsAt reports a hole at the end of what was read, next being the offset behind that.
func (c *checker) endsAt(next uint64) {
	if last := c.j.Durable(); c.torn && next <= last {
		c.lose(next, last)
	}
}

// unreadable are the offsets in whose stead tables have something that cannot be read, in the order of their ends; not nil.
func (c *checker) unreadable(ctx context.Context) ([]offsets, error) {
	levels, err := c.j.db.SSTables()
	if err != nil {
		return nil, err
	}
	out := []offsets{}
	for _, l := range levels {
		for i := range l {
			path := c.o.FS.PathJoin(c.dir, folder, fmt.Sprintf("%06d.sst", uint64(l[i].BackingSSTNum)))
			spans, err := pebblefile.Unreadable(ctx, c.o.FS, path, c.o.pebble(c.o.FS))
			if err != nil {
				return nil, err
			}
			for _, s := range spans {
				if o, ok := offsetsOf(s, l[i].Smallest.UserKey, l[i].Largest.UserKey); ok {
					out = append(out, o)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b offsets) int { return cmp.Compare(a.last, b.last) })
	return out, nil
}

// offsetsOf are the offsets of a span of the keys of a table that has those from smallest to largest; ok is false where there are none.
func offsetsOf(s pebblefile.Span, smallest, largest []byte) (o offsets, ok bool) {
	first, some := offsetAbove(s.Low)
	if s.Low == nil {
		if first, some = offsetAbove(smallest); some && first > 0 && slices.Equal(smallest, blockKey(first-1)) {
			first--
		}
	}
	if !some {
		return o, false
	}
	high := largest
	if s.High != nil && string(s.High) < string(largest) {
		high = s.High
	}
	last := uint64(math.MaxUint64)
	if behind, more := offsetAbove(high); more {
		if behind == 0 {
			return o, false
		}
		last = behind - 1
	}
	return offsets{first, last}, first <= last
}

// offsetAbove is the least offset whose block's key is above a key; ok is false where there is none.
func offsetAbove(key []byte) (offset uint64, ok bool) {
	if len(key) == 0 || key[0] != keyBlock {
		return 0, len(key) == 0 || key[0] < keyBlock
	}
	var b [8]byte
	n := copy(b[:], key[1:])
	offset = binary.BigEndian.Uint64(b[:])
	if n < len(b) {
		return offset, true // a key that goes on is above its beginning
	}
	return offset + 1, offset != math.MaxUint64
}
