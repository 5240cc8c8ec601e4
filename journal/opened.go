package journal

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/kvjournal/kvjournal/journal/internal/pack"
)

// openedBlock is a block from which single records are read: its columns are unpacked, and marks in them say where to begin. That takes
// about a fifth of what its records take as they were received. It never changes, and any number of goroutines may read it at once.
type openedBlock struct {
	first, last uint64
	table       tableReader // at the first record
	marks       []tableMark
	runs        []seqRun // ascending
	messages    *pack.Messages
	size        int // bytes of memory

	newer, older *openedBlock // the openedBlocks' own
}

// tableMark is how far the columns of a table are read before a record.
type tableMark struct {
	cols     [columns]uint32
	source   uint32
	start    int
	epoch    uint64
	seq      uint64
	time     int64
	received int64
}

// tableMarkEvery is how many records lie between two marks: half of them, 20 ns each, are read over to come to one.
const tableMarkEvery = 16

// streamKey is what sequence numbers count in.
type streamKey struct {
	source uint32
	epoch  uint64
}

// seqRun are batches whose records and sequence numbers follow each other: in a block of one source there is one run, of several at most one
// a record.
type seqRun struct {
	streamKey
	seq    uint64 // of the first
	record uint32 // the first's place in the block
	more   uint32 // behind it
}

func (r *seqRun) last() uint64 { return r.seq + uint64(r.more) }

// openBlock opens the block that begins at first. It copies what it keeps.
func openBlock(first uint64, stored []byte, c *codec) (*openedBlock, error) {
	p, err := blockPartsOf(first, stored)
	if err != nil {
		return nil, err
	}
	table, err := p.expandTable(nil, first, c)
	if err != nil {
		return nil, err
	}
	b := &openedBlock{first: first, last: first + p.count - 1}
	if err := b.readTable(table, int(p.count), int(p.payloadRaw)); err != nil {
		return nil, tableError(first, err)
	}
	if b.messages, err = pack.Open(p.packed, int(p.payloadRaw), c.dec); err != nil {
		return nil, payloadError(first, err)
	}
	b.size = int(unsafe.Sizeof(*b)) + cap(table) + cap(b.marks)*int(unsafe.Sizeof(tableMark{})) + cap(b.runs)*int(unsafe.Sizeof(seqRun{})) + b.messages.Size()
	return b, nil
}

func (b *openedBlock) len() int        { return int(b.last - b.first + 1) }
func (b *openedBlock) payloadLen() int { return b.table.rest }

// record is record i, without its frames.
func (b *openedBlock) record(i int) (Record, error) {
	var e entry
	err := b.entry(&e, i)
	return Record{Offset: b.first + uint64(i), Header: e.Header}, err
}

// readTable reads all of the table once.
func (b *openedBlock) readTable(table []byte, count, payloadLen int) error {
	r, err := newTableReader(table, count, payloadLen)
	if err != nil {
		return err
	}
	b.table = r
	b.marks = make([]tableMark, 0, (count+tableMarkEvery-1)/tableMarkEvery)
	for i := range count {
		if i%tableMarkEvery == 0 {
			b.marks = append(b.marks, b.markAt(&r))
		}
		var e entry
		if err := r.next(&e); err != nil {
			return err
		}
		if !e.Counts() || !e.HasSeq {
			continue
		}
		k := streamKey{e.Source, e.Epoch}
		if n := len(b.runs); n > 0 {
			if l := &b.runs[n-1]; l.streamKey == k && e.Seq == l.last()+1 && i == int(l.record)+int(l.more)+1 {
				l.more++
				continue
			}
		}
		b.runs = append(b.runs, seqRun{streamKey: k, seq: e.Seq, record: uint32(i)})
	}
	slices.SortFunc(b.runs, func(a, b seqRun) int { return compareRun(&a, b.streamKey, b.seq) })
	return r.end()
}

func compareRun(r *seqRun, k streamKey, seq uint64) int {
	return cmp.Or(cmp.Compare(r.source, k.source), cmp.Compare(r.epoch, k.epoch), cmp.Compare(r.seq, seq))
}

func (b *openedBlock) markAt(r *tableReader) tableMark {
	m := tableMark{source: r.source, start: r.start, epoch: r.epoch, seq: r.seq, time: r.time, received: r.received}
	for i := range r.cols {
		m.cols[i] = uint32(len(b.table.cols[i].B) - len(r.cols[i].B))
	}
	return m
}

// find is the place of a batch in the block, -1 where it is not there.
func (b *openedBlock) find(k streamKey, seq uint64) int {
	n, found := slices.BinarySearchFunc(b.runs, seq, func(r seqRun, seq uint64) int { return compareRun(&r, k, seq) })
	if !found {
		n--
	}
	if n < 0 || b.runs[n].streamKey != k || seq > b.runs[n].last() {
		return -1
	}
	return int(b.runs[n].record) + int(seq-b.runs[n].seq)
}

// entry fills e with that of record i.
func (b *openedBlock) entry(e *entry, i int) error {
	m := &b.marks[i/tableMarkEvery]
	r := tableReader{
		record: i &^ (tableMarkEvery - 1), start: m.start, rest: b.table.rest - m.start,
		source: m.source, epoch: m.epoch, seq: m.seq, time: m.time, received: m.received,
	}
	for c := range r.cols {
		r.cols[c].B = b.table.cols[c].B[m.cols[c]:]
	}
	for {
		*e = entry{}
		last := r.record == i
		if err := r.next(e); err != nil {
			return tableError(b.first, err)
		}
		if last {
			return nil
		}
	}
}
