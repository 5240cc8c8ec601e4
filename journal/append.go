package journal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Group collects records that become durable together. It is made by NewGroup, filled by Add, and ended by Commit.
type Group struct {
	j       *Journal
	build   *builder
	packing []packing // the blocks before it that are not in the batch yet, the oldest first
	rows    blockRows
	batch   *pebble.Batch
	err     error
	records int
	raw     int
}

// blockRows are the rows that a block under construction needs beside itself.
type blockRows struct {
	seqs   []seqRow
	places []uint32
}

type seqRow struct {
	source     uint32
	epoch, seq uint64
}

func (r *blockRows) reset() { r.seqs, r.places = r.seqs[:0], r.places[:0] }

func (r *blockRows) add(h *Header) {
	known := false
	for _, s := range r.places {
		known = known || s == h.Source
	}
	if !known {
		r.places = append(r.places, h.Source)
	}
	if !h.Counts() || !h.HasSeq { // a duplicate's row would hide its original
		return
	}
	for i := len(r.seqs) - 1; i >= 0; i-- { // the newest first: a flood of restarts makes thousands
		if s := &r.seqs[i]; s.source == h.Source {
			if s.epoch == h.Epoch {
				return
			}
			break // epochs of a source only rise
		}
	}
	r.seqs = append(r.seqs, seqRow{h.Source, h.Epoch, h.Seq})
}

// write puts the rows of the block that begins at first into b. highest gives a source's highest publisher time
// up to the end of the block.
func (r *blockRows) write(b *pebble.Batch, first uint64, highest func(source uint32) (int64, bool)) error {
	for _, s := range r.places {
		var place []byte
		if t, ok := highest(s); ok {
			place = binary.BigEndian.AppendUint64(nil, ordered(t))
			if err := b.Set(timeKey(s, t, first), nil, nil); err != nil {
				return err
			}
		}
		if err := b.Set(placeKey(s, first), place, nil); err != nil {
			return err
		}
	}
	for _, s := range r.seqs {
		if err := b.Set(seqKey(s.source, s.epoch, s.seq, first), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// NewGroup begins a group. Only one may be open at a time.
func (j *Journal) NewGroup() *Group {
	g := &Group{j: j, batch: j.db.NewBatch(), build: j.newBuilder()}
	g.build.reset(j.next)
	return g
}

// Add appends a record and returns its offset. frames are copied; they are the raw bytes of a message, nil for the
// other kinds.
func (g *Group) Add(h *Header, frames [][]byte) uint64 {
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	if b := g.build; b.count > 0 && (b.raw+size > maxBlockRaw || b.raw >= g.j.opts.BlockRaw || b.count >= maxBlockRecords) {
		g.writeRows()
		g.pack()
		g.build.reset(g.j.next)
	}
	offset := g.j.next
	g.j.next++
	g.j.totals.count(h, size)
	g.records++
	g.raw += size
	g.build.add(h, frames)
	g.rows.add(h)
	if h.Counts() && h.HasTime {
		g.j.clockOf(h.Source).see(h.Time, offset, func(below int64) (span, bool) {
			s, ok, err := g.j.spanBelow(h.Source, below)
			g.note(err)
			return s, ok
		})
		if g.j.clockOf(h.Source).dirty {
			g.j.wentBack.Store(offset)
		}
	}
	return offset
}

// Len is the number of records, Raw the number of their raw bytes.
func (g *Group) Len() int { return g.records }

// Last is the offset of the record added last.
func (g *Group) Last() uint64 { return g.j.next - 1 }

// Raw is the number of raw bytes of the group's records.
func (g *Group) Raw() int { return g.raw }

// State keeps where a source stands behind the group's records.
func (g *Group) State(source uint32, p *Position) {
	g.note(g.batch.Set(sourceKey(keyState, source), p.encode(), nil))
}

// Import keeps how far a capture was imported.
func (g *Group) Import(source uint32, i Import) {
	v, err := json.Marshal(i)
	g.note(err)
	g.note(g.batch.Set(importKey(source, i.SHA256), v, nil))
}

func (g *Group) note(err error) {
	if g.err == nil {
		g.err = err
	}
}

// Commit hands the group to the log and returns before it is durable: Durable moves when it is. It waits while
// two commits are already under way. After an error the journal takes no more: the process should end.
func (g *Group) Commit() error {
	g.storeAll()
	for source, c := range g.j.clocks {
		g.note(c.write(g.batch, source))
	}
	if g.batch.Empty() {
		return g.batch.Close()
	}
	g.note(g.batch.Set(metaTotals, g.j.totals.encode(), nil))
	if g.err != nil {
		// Its offsets are given, so a later group must not go on behind them.
		g.j.failure.CompareAndSwap(nil, &g.err)
		return g.err
	}
	began := time.Now()
	g.j.slots <- struct{}{}
	if err := g.j.failed(); err != nil {
		<-g.j.slots
		return err
	}
	if err := g.j.db.ApplyNoSyncWait(g.batch, pebble.Sync); err != nil {
		<-g.j.slots
		err = fmt.Errorf("appending to the journal: %w", err)
		g.j.failure.CompareAndSwap(nil, &err)
		return err
	}
	g.j.pending <- commit{batch: g.batch, upTo: acknowledged{g.j.next - 1, g.j.totals}, records: g.records, raw: g.raw, began: began}
	return nil
}

func (j *Journal) clockOf(source uint32) *clock {
	c := j.clocks[source]
	if c == nil {
		c = &clock{}
		j.clocks[source] = c
	}
	return c
}
