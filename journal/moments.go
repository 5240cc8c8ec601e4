package journal

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// moments keeps where publisher times lie in the streams of the sources: runs of them, each for all times of a range, so that a question about a
// time that nobody asked for yet is answered too where it lies beside one. It is bounded by momentsCache, in two generations as in recent.
//
// # Why it never answers with what was
//
// A run is made of the durable records of one block, and the message before it. Records never change, and offsets are never used
// again; so what the run says of a time T changes only if
//
//   - another message is the first above T. All messages before the run's first step were at or below its beginning, or else the clock had gone back
//     into the run, and there would be a span of it (runOf); those within are in the run; those behind are behind.
//   - the clock comes back to T later, which makes T one that it passed twice. wentBack is set before such a record is written, to its offset;
//     a run that was read when all up to wentBack was durable knows of it, any other is passed over.
//   - the journal is pruned: then it has another horizon, and the run is passed over.
type moments struct {
	mu         sync.Mutex
	size       int // of young, in bytes
	young, old map[uint32][]*momentRun
}

// momentsCache is how many bytes of runs are kept: about 100,000 times at which a message came. A step takes 16 bytes and a record 48, and the record
// that one step ends with is most often the one that the next begins with.
const momentsCache = 8 << 20

// momentRun answers for the times from, inclusive, to its last step's below, exclusive.
type momentRun struct {
	from    int64
	steps   []momentStep // rising
	records []briefRecord
	odd     []Record // that no briefRecord can tell
	source  uint32

	standing Standing
}

// momentStep is the moment of the times from the step before on and below a time. last is a place in records + 1, 0: none; next a place in records.
type momentStep struct {
	below      int64
	last, next int32
}

// briefRecord is a message of which there is nothing rare to tell.
type briefRecord struct {
	offset, epoch, seq uint64
	time, received     int64
	events             uint32
	flags              byte // Header.flags
	odd                bool // it is run.odd[events]
}

func (b *briefRecord) record(source uint32) Record {
	r := Record{Offset: b.offset}
	r.Kind, r.Source, r.Received, r.Seq, r.Events, r.Epoch, r.Time = Message, source, b.received, b.seq, b.events, b.epoch, b.time
	r.setFlags(b.flags)
	return r
}

func (r *momentRun) record(i int32) Record {
	if b := &r.records[i]; !b.odd {
		return b.record(r.source)
	}
	return r.odd[r.records[i].events]
}

// add adds a record, if it was not the last to be added, and returns its place.
func (r *momentRun) add(rec *Record) int32 {
	if n := len(r.records); n > 0 && r.records[n-1].offset == rec.Offset {
		return int32(n - 1)
	}
	b := briefRecord{
		offset: rec.Offset, epoch: rec.Epoch, seq: rec.Seq, time: rec.Time, received: rec.Received, events: rec.Events, flags: rec.flags(),
	}
	if b.record(r.source) != *rec {
		b = briefRecord{offset: rec.Offset, odd: true, events: uint32(len(r.odd))}
		r.odd = append(r.odd, *rec)
	}
	r.records = append(r.records, b)
	return int32(len(r.records) - 1)
}

// step adds what holds below a time. last has offset 0 where there is none.
func (r *momentRun) step(below int64, last, next *Record) {
	s := momentStep{below: below}
	if last.Offset != 0 {
		s.last = r.add(last) + 1
	}
	s.next = r.add(next)
	r.steps = append(r.steps, s)
}

func (r *momentRun) to() int64 { return r.steps[len(r.steps)-1].below }

func (r *momentRun) bytes() int {
	return int(unsafe.Sizeof(*r)) + cap(r.steps)*int(unsafe.Sizeof(momentStep{})) + cap(r.records)*int(unsafe.Sizeof(briefRecord{})) +
		cap(r.odd)*int(unsafe.Sizeof(Record{})) + 16 // in a list
}

// at is the moment of a time in the run.
func (r *momentRun) at(ms int64) (m Moment) {
	s := &r.steps[sort.Search(len(r.steps), func(i int) bool { return r.steps[i].below > ms })]
	if s.last != 0 {
		m.Last = r.record(s.last - 1)
	}
	m.Next = r.record(s.next)
	return m
}

// Standing says how long a moment lies where it was found.
type Standing struct {
	horizon *Horizon // nil: it may lie elsewhere already
	durable uint64
}

// Stands reports whether a moment still lies where it was found: At would find the same.
func (j *Journal) Stands(s Standing) bool { return s.under(j.horizon.Load(), j.wentBack.Load()) }

func (s *Standing) under(h *Horizon, wentBack uint64) bool {
	return s.horizon != nil && s.horizon == h && s.durable >= wentBack
}

// at returns what is kept of a source's time under that horizon, if it was read when all up to wentBack was durable.
func (m *moments) at(source uint32, ms int64, h *Horizon, wentBack uint64) (Moment, Standing, bool) {
	m.mu.Lock()
	r := findRun(m.young[source], ms)
	if r == nil {
		if r = findRun(m.old[source], ms); r != nil {
			m.set(source, r)
		}
	}
	m.mu.Unlock()
	if r == nil || !r.standing.under(h, wentBack) {
		return Moment{}, Standing{}, false
	}
	return r.at(ms), r.standing, true
}

func (m *moments) put(source uint32, r *momentRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(source, r)
}

// set keeps a run as young, and drops young ones that begin in it.
func (m *moments) set(source uint32, r *momentRun) {
	size := r.bytes()
	if size > momentsCache/2 {
		return
	}
	if m.young == nil || m.size+size > momentsCache/2 {
		m.young, m.old, m.size = map[uint32][]*momentRun{}, m.young, 0
	}
	runs := m.young[source]
	i, _ := slices.BinarySearchFunc(runs, r.from, byFrom)
	k, _ := slices.BinarySearchFunc(runs, r.to(), byFrom)
	for _, gone := range runs[i:k] {
		m.size -= gone.bytes()
	}
	m.young[source] = slices.Replace(runs, i, k, r)
	m.size += size
}

func byFrom(r *momentRun, ms int64) int { return cmp.Compare(r.from, ms) }

// findRun is the run that a time lies in, nil where none is there. Where runs lie in each other it may miss one.
func findRun(runs []*momentRun, ms int64) *momentRun {
	i, exact := slices.BinarySearchFunc(runs, ms, byFrom)
	if !exact {
		i--
	}
	if i < 0 || ms >= runs[i].to() {
		return nil
	}
	return runs[i]
}

// runOf makes the run that a moment lies in, which is at's for ms and holds unless the clock goes back: nil where the clock was above its Next before
// it was durable. in is the block of Next; h and durable are from before it was read.
func (j *Journal) runOf(in *headers, source uint32, ms int64, m *Moment, h *Horizon, durable uint64) (*momentRun, error) {
	if m.Next.Offset > durable {
		return nil, nil
	}
	r := stepsOf(in, source, h, durable)
	if r == nil || ms < r.from || ms >= r.to() {
		// Behind the last message of a block, before the first of the next.
		r = &momentRun{from: ms, source: source}
		if m.Last.HasTime && m.Last.Time < ms && m.Last.Offset != 0 {
			r.from = m.Last.Time
		}
		r.step(m.Next.Time, &m.Last, &m.Next)
	}
	if clock, ok := h.Clocks[source]; ok { // below it nothing is known; of a repaired journal no span says so
		r.from = max(r.from, clock)
	}
	// Spans are disjoint: of those that begin below the run's end the last is the one that reaches highest.
	s, ok, err := j.spanBelow(source, r.to())
	if err != nil {
		return nil, err
	}
	if ok && s.hi > r.from {
		r = &momentRun{from: ms, source: source}
		r.step(ms+1, &m.Last, &m.Next) // Next is above ms
	}
	r.standing = Standing{horizon: h, durable: durable}
	return r, nil
}

// stepsOf are the steps within a block: from the source's first message with a time that is durable and lies behind the horizon, to the
// first of those that are at the highest time. nil where there are none.
func stepsOf(in *headers, source uint32, h *Horizon, durable uint64) *momentRun {
	r := &momentRun{source: source}
	begun, highest, last := false, int64(0), -1
	for i := range in.entries {
		offset, e := in.first+uint64(i), &in.entries[i].Header
		if offset > durable {
			break
		}
		if offset <= h.Offset || e.Source != source || !e.Counts() {
			continue
		}
		switch {
		case !e.HasTime:
		case !begun:
			begun, r.from, highest = true, e.Time, e.Time
		case e.Time > highest:
			before, next := in.record(last), in.record(i)
			r.step(e.Time, &before, &next)
			highest = e.Time
		}
		last = i
	}
	if len(r.steps) == 0 {
		return nil
	}
	r.steps, r.records, r.odd = slices.Clip(r.steps), slices.Clip(r.records), slices.Clip(r.odd)
	return r
}
