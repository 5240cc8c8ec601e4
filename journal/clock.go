package journal

import (
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// span is a range of publisher time that the clock passed twice: a moment T with lo <= T < hi lies behind more than
// one batch (R8). last is the offset of the newest batch that went back into it.
type span struct {
	lo, hi int64
	last   uint64
}

func (s span) value() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ordered(s.hi)), s.last)
}

func decodeSpan(key, value []byte) (span, bool) {
	if len(key) != 13 || len(value) != 16 {
		return span{}, false
	}
	return span{lo: unordered(last8(key)), hi: unordered(binary.BigEndian.Uint64(value)), last: last8(value)}, true
}

// clock follows the publisher time of one source: the highest so far, and the spans that it passed twice. Spans are
// disjoint and a new one always reaches up to the highest time, so only the newest can grow; where it grows down into
// older ones it swallows them.
type clock struct {
	has     bool
	highest int64
	// spans are the newest ones, oldest first: those not written yet, or the newest of the database.
	spans []span
	// bottom: the database has no span below these.
	bottom bool
	// dropped are the keys (lo) of spans that were swallowed since the last write.
	dropped []int64
	dirty   bool
}

// see takes the time of a message at offset. older gives the newest span of the database whose lo is below the given
// one; it is asked only when the clock went back.
func (c *clock) see(t int64, offset uint64, older func(below int64) (span, bool)) {
	if !c.has || t >= c.highest {
		c.has, c.highest = true, t
		return
	}
	now := span{lo: t, hi: c.highest, last: offset}
	below := int64(math.MaxInt64)
	for {
		var top span
		if n := len(c.spans); n > 0 {
			top = c.spans[n-1]
		} else if c.bottom {
			break
		} else if s, ok := older(below); ok {
			top = s
		} else {
			c.bottom = true
			break
		}
		if top.hi < now.lo {
			if len(c.spans) == 0 {
				c.spans = append(c.spans, top) // spares the next look
			}
			break
		}
		if n := len(c.spans); n > 0 {
			c.spans = c.spans[:n-1]
		}
		c.dropped = append(c.dropped, top.lo)
		below = top.lo
		now.lo = min(now.lo, top.lo)
	}
	c.spans = append(c.spans, now)
	c.dirty = true
}

// write puts what changed into b.
func (c *clock) write(b *pebble.Batch, source uint32) error {
	if !c.dirty {
		return nil
	}
	for _, lo := range c.dropped {
		if err := b.Delete(spanKey(source, lo), nil); err != nil {
			return err
		}
	}
	for _, s := range c.spans {
		if err := b.Set(spanKey(source, s.lo), s.value(), nil); err != nil {
			return err
		}
	}
	c.dropped = c.dropped[:0]
	// With the one below the newest, a clock that stays behind asks the database for nothing.
	if n := len(c.spans); n > 2 {
		c.spans = append(c.spans[:0], c.spans[n-2:]...)
		c.bottom = false
	}
	c.dirty = false
	return nil
}
