package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// block checks the records of a block, and that the rows beside it are there.
func (c *checker) block(b *Block) error {
	c.rows.reset()
	c.at = b.First
	for i := range b.Len() {
		h := b.Header(i)
		var err error
		if c.frames, err = b.Frames(i, c.frames[:0], &c.seq); err != nil {
			return err
		}
		c.record(b.First+uint64(i), h)
		c.rows.add(h)
	}
	for _, s := range c.rows.places {
		if err := c.place(s, b); err != nil {
			return err
		}
	}
	for _, s := range c.rows.seqs {
		c.want[keySeq]++
		if err := c.expect(seqKey(s.source, s.epoch, s.seq, b.First), nil, b.First); err != nil {
			return err
		}
	}
	return nil
}

// place checks the rows of a source and a block.
func (c *checker) place(source uint32, b *Block) error {
	first, s := b.First, c.source(source)
	c.want[keyPlace]++
	key := placeKey(source, first)
	has, highest := s.clock.has, s.clock.highest
	if b.Last() <= c.j.Horizon().Offset { // what was between the blocks that a prune kept is gone: the row itself says what it must be
		v, err := c.j.get(key)
		if err == nil && len(v) == 0 {
			has = false
		} else if err == nil && len(v) == 8 && unordered(last8(v)) <= highest {
			highest = unordered(last8(v))
		}
	}
	var value []byte
	if has {
		value = binary.BigEndian.AppendUint64(nil, ordered(highest))
		c.want[keyTime]++
		if err := c.expect(timeKey(source, highest, first), nil, first); err != nil {
			return err
		}
	}
	return c.expect(key, value, first)
}

// expect checks that a row is there.
func (c *checker) expect(key, value []byte, offset uint64) error {
	got, err := c.j.get(key)
	corrupt := (*CorruptError)(nil)
	switch {
	case errors.Is(err, ErrNotFound):
		c.row(key, offset, fmt.Sprintf("the row %c of its block is missing", key[0]))
	case errors.As(err, &corrupt):
		c.row(key, offset, fmt.Sprintf("the row %c of its block cannot be read: %s", key[0], corrupt.What))
	case err != nil:
		return err
	case !bytes.Equal(got, value):
		c.row(key, offset, fmt.Sprintf("the row %c of its block says %x, the block %x", key[0], got, value))
	}
	return nil
}

// record checks one record.
func (c *checker) record(offset uint64, h *Header) {
	c.Records++
	size := 0
	for _, f := range c.frames {
		size += len(f)
	}
	if horizon := c.j.Horizon().Offset; offset > horizon {
		c.totals.count(h, size)
		c.source(h.Source).take(offset, h)
	} else {
		c.source(h.Source).takeKept(offset, h)
	}
	what := ""
	switch h.Kind {
	case Message:
		c.scan.Scan(c.frames)
		if h.Duplicate { // nothing was judged of it
			break
		}
		if c.scan.Damage != h.Damage {
			what = fmt.Sprintf("the message does not decode as it did when it was recorded: %v, then %v", c.scan.Damage, h.Damage)
		} else if h.Damage == event.None && uint32(len(c.scan.Events)) != h.Events {
			what = fmt.Sprintf("the message holds %d events, %d when it was recorded", len(c.scan.Events), h.Events)
		}
	case TailLost:
		if _, err := DecodeLost(offset, c.frames); err != nil {
			what = "its content does not decode"
		}
	case PublisherStatus, ReconciliationBegun, ReconciliationEnded:
		if len(c.frames) != 1 || !json.Valid(c.frames[0]) {
			what = "its content does not decode"
		}
	case ReconciliationPart:
		what = partTrouble(c.frames)
	}
	if what != "" {
		c.find(Finding{File: c.holder(blockKey(c.at)), Offset: offset, What: what, Next: NextRepair})
	}
}

func partTrouble(frames [][]byte) string {
	if len(frames) != 1 {
		return reading.ErrPart.Error()
	}
	p, err := reading.DecodePart(frames[0])
	for ok := true; ok && err == nil; {
		_, ok, err = p.Next()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// checkRows counts the rows of each family, and looks for surplus ones where there are more than there must be.
func (c *checker) checkRows(ctx context.Context) error {
	for _, family := range []byte{keyPlace, keySeq, keyTime} {
		n := uint64(0)
		err := c.j.scan(family, func(_, _ []byte) error {
			n++
			return ctx.Err()
		})
		if err == nil && n > c.want[family] {
			err = c.surplus(ctx, family)
		}
		if err := c.readTrouble(err, fmt.Sprintf("the rows %c", family)); err != nil {
			return err
		}
	}
	return c.readTrouble(c.checkSpans(), "the rows p")
}

// readTrouble makes a finding of what is damage, and returns other errors.
func (c *checker) readTrouble(err error, what string) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		c.find(Finding{File: c.fileOf(err), What: what + " cannot be read: " + corrupt.What, Next: NextRepair})
		return nil
	}
	return err
}

// surplus finds the rows that no block asks for.
func (c *checker) surplus(ctx context.Context, family byte) error {
	var rows blockRows
	var b *Block
	return c.j.scan(family, func(k, _ []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		want := map[byte]int{keyPlace: 13, keySeq: 29, keyTime: 21}[family]
		if len(k) != want {
			c.row(k, 0, "a row with a key of the wrong length")
			return nil
		}
		first, source := last8(k), binary.BigEndian.Uint32(k[1:])
		if b == nil || b.First != first {
			next, err := c.j.blockAt(b, first)
			if errors.Is(err, ErrNotFound) {
				c.row(k, first, "a row of a block that is not there")
				return nil
			}
			if err != nil {
				return err
			}
			b = next
			rows.reset()
			for i := range b.Len() {
				rows.add(b.Header(i))
			}
		}
		asked := b.First == first && asks(&rows, family, source, k)
		if asked && family == keyTime { // of one with another time, the row o tells
			t, ok, err := c.j.timeRow(source, first)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			asked = ok && bytes.Equal(k, timeKey(source, t, first))
		}
		if !asked {
			c.row(k, first, "a row that no block asks for")
		}
		return nil
	})
}

func asks(rows *blockRows, family byte, source uint32, k []byte) bool {
	if family == keySeq {
		for _, s := range rows.seqs {
			if bytes.Equal(seqKey(s.source, s.epoch, s.seq, last8(k)), k) {
				return true
			}
		}
		return false
	}
	for _, s := range rows.places {
		if s == source {
			return true // that its time is right was seen from the block
		}
	}
	return false
}

// maxSpans bounds the spans of twice-passed time that are held to be compared.
const maxSpans = 1 << 20

// checkSpans compares the spans of time that a clock passed twice.
func (c *checker) checkSpans() error {
	type place struct {
		source uint32
		last   uint64
	}
	want := map[place]span{}
	for id, s := range c.sources {
		if s.many {
			c.find(Finding{File: folder, What: "the rows p are not compared: there are too many", Severity: Note, Next: "nothing"})
			return nil
		}
		for _, span := range s.clock.spans {
			want[place{id, span.last}] = span
		}
	}
	if c.torn {
		return nil
	}
	horizon := c.j.Horizon().Offset
	err := c.j.scan(keySpan, func(k, v []byte) error {
		s, ok := decodeSpan(k, v)
		if ok && horizon > 0 && s.last <= horizon {
			return nil // what showed it is pruned
		}
		at := place{last: s.last}
		if ok {
			at.source = binary.BigEndian.Uint32(k[1:])
		}
		// One that grew down over spans from before the horizon begins below what the records show.
		if w, shown := want[at]; !ok || !shown || w.hi != s.hi || w.lo != s.lo && (horizon == 0 || w.lo < s.lo) {
			c.row(k, 0, "a span of time that the records do not show")
		}
		delete(want, at)
		return nil
	})
	for at, s := range want {
		if err == nil {
			c.row(spanKey(at.source, s.lo), 0, "a span of time that was passed twice is missing")
		}
	}
	return err
}

func (c *checker) checkTotals() {
	want := c.totals
	want.Events += c.j.Horizon().Events
	differs := want != c.j.totals
	if c.j.Horizon().Generation > 0 { // of what was pruned only the events are known
		have := &c.j.totals
		differs = want.Events != have.Events || want.Messages > have.Messages || want.RawBytes > have.RawBytes || want.Duplicates > have.Duplicates || want.Damaged > have.Damaged
	}
	if !c.torn && differs {
		c.row(metaTotals, 0, fmt.Sprintf("the totals are %+v, the records make %+v", c.j.totals, c.totals))
	}
}

// fileOf is the file that an error of Pebble's names; empty where it names none.
func (c *checker) fileOf(err error) string {
	for _, word := range strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(" :;,()\"", r) }) {
		name := word
		if len(name) == 6 && strings.Trim(name, "0123456789") == "" {
			name += ".sst"
		}
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			name = name[i+1:]
		}
		if k, _ := pebblefile.KindOf(name); k == pebblefile.Table || k == pebblefile.Log {
			return folder + "/" + name
		}
	}
	return ""
}

// holder is the newest table that holds a key; empty where it lies in a log, or cannot be found.
func (c *checker) holder(key []byte) string {
	levels, err := c.j.db.SSTables()
	if err != nil {
		return ""
	}
	for _, l := range levels {
		for i := len(l) - 1; i >= 0; i-- {
			t := &l[i]
			if bytes.Compare(t.Smallest.UserKey, key) > 0 || bytes.Compare(key, t.Largest.UserKey) > 0 {
				continue
			}
			name := fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum))
			if holds(c.o, c.o.FS.PathJoin(c.dir, folder, name), c.o.pebble(c.o.FS), key) {
				return folder + "/" + name
			}
		}
	}
	return ""
}

func holds(o Options, path string, p *pebble.Options, key []byte) bool {
	t, err := pebblefile.OpenTable(o.FS, path, p)
	if err != nil {
		return false
	}
	defer t.Close()
	at, ok, err := t.Readable(key)
	return err == nil && ok && bytes.Equal(at, key)
}
