package index

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

const (
	// batchEvents is how many events one write batch holds at most, give or take a record, and batchBytes how many bytes its rows have:
	// keys may be long, and a batch that is larger than a memtable costs twice its size.
	batchEvents = 65536
	batchBytes  = 16 << 20
	// fullBatch is how many events make a batch that may be cut in the middle of a change (R8).
	fullBatch = 64
	// maxScopes bounds the scopes remembered, and maxScopeBytes the bytes of their names; beyond either all are forgotten, which costs a few
	// needless writes.
	maxScopes     = 1 << 16
	maxScopeBytes = 16 << 20
	// clearLiveEvery is how often the dead live rows of one scope may be deleted by range, ns of receive time:
	// 20,000 range deletions over one scope make a seek 100 times slower.
	clearLiveEvery = 600 * 1e9
)

// applier turns records into rows. It reads nothing: what it must remember is in memory, and is itself a function of
// the journal's records (but for lastClear, which only decides when rows that are dead already are deleted).
type applier struct {
	db      *pebble.DB
	fresh   *fresh // nil: nobody asks
	hot     *hot   // nil: nothing is kept of objects
	touched touched
	batch   noted
	events  int // not committed yet; a record without events counts as one
	rows    *eventRows
	bulk    *bulk // takes the rows and gives back empty ones; nil: they go into the batch
	sources map[uint32]*SourceState
	changed map[uint32]bool
	scopes  map[string]*scope
	named   int    // bytes of the names of scopes
	last    *scope // of the event before, which the next one often shares
	points  checkpointer
	horizon uint64 // what the rows begin with

	scan   event.Batch
	frames [][]byte
	seq    [8]byte
	key    []byte
	value  []byte
}

type scope struct {
	source          uint32
	backend, tenant string
	prefix          []byte // as in keys, without the keyspace
	live            bool   // a live row was written since the last range deletion
	lastClear       int64  // receive time of it, ns
}

// newApplier goes on where the rows of db end.
func newApplier(db *pebble.DB, o Options) (*applier, error) {
	sources, err := readSources(db)
	if err != nil {
		return nil, err
	}
	a := &applier{db: db, sources: sources, changed: map[uint32]bool{}, scopes: map[string]*scope{}, rows: &eventRows{}, bulk: o.bulk}
	if a.bulk != nil {
		a.rows = a.bulk.room()
	}
	if a.points, err = readCheckpointer(db, sources, o.CheckpointEvents); err != nil {
		return nil, err
	}
	base, err := readBaseline(db)
	if err != nil {
		return nil, err
	}
	a.horizon, a.batch = base.Offset, noted{Batch: db.NewBatch()}
	return a, nil
}

func (a *applier) source(id uint32) *SourceState {
	s := a.sources[id]
	if s == nil {
		s = &SourceState{Epoch: 1}
		a.sources[id] = s
	}
	return s
}

// record applies record i of block b.
func (a *applier) record(b *journal.Block, i int) error {
	h := b.Header(i)
	offset := b.First + uint64(i)
	if err := a.checkpoint(h.Received); err != nil {
		return err
	}
	a.points.at = offset
	s := a.source(h.Source)
	a.changed[h.Source] = true
	a.events += max(1, int(h.Events))
	place := Place{Offset: offset, Seq: h.Seq, Events: h.Events, HasTime: h.HasTime, Time: h.Time, Received: h.Received / 1e6}
	switch h.Kind {
	case journal.Message:
		return a.message(b, i, h, s, place)
	case journal.Connected:
		s.Window, s.Connected = false, true
	case journal.RecorderStarted:
		s.Window, s.Connected = false, false
	case journal.RecorderStopped:
		s.Connected = false
	case journal.Disconnected:
		s.Window, s.Connected = true, false
	case journal.TailLost:
		return a.lost(b, i, h, place)
	case journal.PublisherStatus:
		return a.status(b, i, h, s, place)
	case journal.ReconciliationBegun:
		place.Seq = s.Last.Seq
		if s.Reading, s.Excepted = &place, 0; s.void(offset) {
			s.Reading = nil
		}
		return nil
	case journal.ReconciliationPart:
		return a.part(b, i, h, s, offset)
	case journal.ReconciliationEnded:
		return a.ended(b, i, h, s, place)
	}
	return a.mark(h, s, place)
}

func (a *applier) message(b *journal.Block, i int, h *journal.Header, s *SourceState, place Place) error {
	s.Messages++
	switch {
	case h.Duplicate:
		s.Duplicates++
		return nil
	case h.Stale:
		s.Stale++
		return nil
	}
	s.Epoch = h.Epoch
	s.Window = h.InWindow
	if !h.HasSeq {
		place.Seq = s.Last.Seq
	}
	if err := a.gaps(h, s, place); err != nil {
		return err
	}
	if err := a.mark(h, s, place); err != nil {
		return err
	}
	s.Last = place
	if h.Damage != event.None {
		s.Damaged++
		s.HasID = false
		return nil
	}
	if !h.InWindow {
		s.AsOf, s.Batch = place, true
	}
	var err error
	if a.frames, err = b.Frames(i, a.frames[:0], &a.seq); err != nil {
		return err
	}
	a.scan.Scan(a.frames)
	if a.scan.Damage != event.None || uint32(len(a.scan.Events)) != h.Events {
		return &journal.CorruptError{Offset: place.Offset, What: "the message does not decode as it did when it was recorded"}
	}
	e := Evidence{Epoch: h.Epoch, Seq: h.Seq, HasTime: h.HasTime, Time: h.Time, Received: place.Received, Window: h.InWindow}
	keyed := h.Keyed
	for n := range a.scan.Events {
		ev := &a.scan.Events[n]
		e.Position = Position{place.Offset, uint32(n + 1)}
		e.HasID, e.ID, e.Stored = ev.HasID, ev.ID, ev.Type == event.Stored
		e.HasGroup = ev.Group != nil && ev.Type != event.Cleared
		e.Cut = n == len(a.scan.Events)-1 && n+1 >= fullBatch
		if s.MarkEnd.Before(e.Position) && (keyed || ev.Type != event.Cleared) {
			s.Evidence = true
		}
		sc, err := a.scopeOf(h.Source, ev)
		if err != nil {
			return err
		}
		if ev.Type == event.Cleared {
			if err := a.cleared(sc, &e, keyed, h.Received); err != nil {
				return err
			}
			continue
		}
		keyed = true
		a.rows.add(sc, ev, &e)
		sc.live = sc.live || e.Stored
	}
	s.Events += uint64(len(a.scan.Events))
	a.points.total += uint64(len(a.scan.Events))
	if n := len(a.scan.Events); n > 0 {
		s.HasID, s.EventID = a.scan.Events[n-1].HasID, a.scan.Events[n-1].ID
	}
	return nil
}

// scopeOf returns the scope of an event, and writes its row when it is new.
func (a *applier) scopeOf(source uint32, ev *event.Event) (*scope, error) {
	if l := a.last; l != nil && l.source == source && l.tenant == string(ev.Tenant) && l.backend == string(ev.Backend) {
		return l, nil
	}
	a.key = appendScope(append(a.key[:0], keyScope), source, ev.Backend, ev.Tenant)
	sc := a.scopes[string(a.key[1:])]
	if sc == nil {
		if a.named += len(a.key); len(a.scopes) >= maxScopes || a.named > maxScopeBytes {
			clear(a.scopes)
			a.named = len(a.key)
		}
		sc = &scope{source: source, backend: string(ev.Backend), tenant: string(ev.Tenant), prefix: append([]byte(nil), a.key[1:]...), live: true, lastClear: math.MinInt64 / 2}
		a.scopes[string(sc.prefix)] = sc
		if err := a.batch.Set(a.key, nil, nil); err != nil {
			return nil, err
		}
	}
	a.last = sc
	return sc, nil
}

// cleared writes one clear: one row, whatever the number of objects (R10).
func (a *applier) cleared(sc *scope, e *Evidence, keyed bool, received int64) error {
	k := append(append(a.key[:0], keyClear), sc.prefix...)
	k = appendPosition(k, e.Position)
	a.key = k
	a.value = appendEvidence(a.value[:0], e)
	if err := a.batch.Set(k, a.value, nil); err != nil {
		return err
	}
	if keyed {
		k[0] = keyProof
		if err := a.batch.Set(k, a.value, nil); err != nil {
			return err
		}
	}
	if !sc.live || received-sc.lastClear < clearLiveEvery {
		return nil
	}
	if a.bulk != nil {
		if a.bulk.clear(sc, e.Position) {
			sc.live, sc.lastClear = false, received
		}
		return nil
	}
	if err := a.rows.flush(a.batch.Batch); err != nil { // the rows before the clear must lie below the deletion
		return err
	}
	for _, row := range a.rows.newest {
		object, _, _ := a.rows.cut(row)
		a.touch(object)
	}
	a.rows.reset()
	sc.live, sc.lastClear = false, received
	from := append([]byte{keyLive}, sc.prefix...)
	to := append([]byte(nil), from...)
	to[len(to)-1]++ // the prefix ends in 00 01
	return a.batch.DeleteRange(from, to, nil)
}

// mark writes the record's mark, if it sets one.
func (a *applier) mark(h *journal.Header, s *SourceState, place Place) error {
	if h.Mark == continuity.NoMark {
		return nil
	}
	m := Mark{From: place.Offset, End: Position{Offset: place.Offset}, Cause: h.MarkCause, HasTime: place.HasTime, Time: place.Time, Received: place.Received}
	if h.Mark == continuity.MarkBehind {
		m.End.Event = endOfBatch
	}
	if s.MarkFrom != 0 && s.MarkCause == m.Cause && !s.Evidence {
		m.From = s.MarkFrom
	} else {
		s.Marks++
	}
	s.MarkFrom, s.MarkEnd, s.MarkCause, s.Evidence = m.From, m.End, m.Cause, false
	if !h.InWindow {
		s.AsOf, s.Batch = place, false // of a batch in the shadow, message says so
	}
	return a.batch.Set(markKey(h.Source, m.From), m.encode(), nil)
}

// gaps writes the lines that a message shows: what is missing before it, and its own damage.
func (a *applier) gaps(h *journal.Header, s *SourceState, place Place) error {
	g := Gap{Before: s.Last.Offset, Received: place.Received, TimeBefore: s.Last.time(), TimeAfter: place.time()}
	if h.Gap.Cause != continuity.CauseNone {
		line := g
		line.Cause, line.Epoch = h.Gap.Cause, h.Gap.Epoch
		line.HasSeq, line.First, line.Last, line.Missing = h.Gap.Missing() > 0, h.Gap.First, h.Gap.Last, h.Gap.Missing()
		line.Lost, line.Min, line.Max = h.Gap.Lost, h.Gap.Min, h.Gap.Max
		if err := a.gap(h.Source, place.Offset, 0, &line, s); err != nil {
			return err
		}
	}
	if h.Damage == event.None {
		return nil
	}
	g.Cause, g.Epoch, g.Damage = continuity.Damaged, h.Epoch, uint8(h.Damage)
	g.HasSeq, g.First, g.Last = h.HasSeq, h.Seq, h.Seq
	return a.gap(h.Source, place.Offset, 1, &g, s)
}

func (a *applier) gap(source uint32, offset uint64, n byte, g *Gap, s *SourceState) error {
	v, err := json.Marshal(g)
	if err != nil {
		return err
	}
	s.Gaps++
	return a.batch.Set(gapKey(source, offset, n), v, nil)
}

func (p *Place) time() *int64 {
	if !p.HasTime {
		return nil
	}
	t := p.Time
	return &t
}

// full reports whether what was applied should be committed before more is.
func (a *applier) full() bool {
	if a.bulk != nil {
		return a.bulk.isFull(a.rows) || a.batch.Len() >= batchBytes
	}
	return a.events >= batchEvents || a.rows.size()+a.batch.Len() >= batchBytes
}

// write makes the batch be seen.
func (a *applier) write(offset uint64) error {
	if a.fresh == nil {
		return a.db.Apply(a.batch.Batch, pebble.NoSync)
	}
	next := a.fresh.begin(a.batch.changed)
	defer a.fresh.end()
	if a.hot != nil {
		a.hot.write(&a.touched, a.rows, next)
	}
	if err := a.db.Apply(a.batch.Batch, pebble.NoSync); err != nil {
		a.hot.reset()
		return err
	}
	at := sourcesAt{a.db, offset, make(map[uint32]*SourceState, len(a.sources))}
	for id, s := range a.sources {
		now := *s
		at.states[id] = &now
	}
	a.fresh.tell(at)
	return nil
}

// commit writes what was applied up to offset, as one batch.
func (a *applier) commit(offset uint64) error {
	if err := a.flushRows(); err != nil {
		return err
	}
	for id := range a.changed {
		v, err := a.sources[id].encode()
		if err != nil {
			return err
		}
		if err := a.batch.Set(sourceKey(keyState, id), v, nil); err != nil {
			return err
		}
	}
	if err := a.batch.Set([]byte{keyApplied}, binary.BigEndian.AppendUint64(nil, offset), nil); err != nil {
		return err
	}
	if err := a.write(offset); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	if err := a.batch.Close(); err != nil {
		return err
	}
	a.batch = noted{Batch: a.db.NewBatch()}
	a.rows.reset()
	a.touched.reset()
	a.events = 0
	clear(a.changed)
	return nil
}

// touch says of an object, its scope first, that its history is changed by a row that is in the batch already.
func (a *applier) touch(object []byte) {
	if a.hot != nil {
		a.touched.add(object)
	}
}

// flushRows writes the rows of the events, or hands them on.
func (a *applier) flushRows() (err error) {
	if a.bulk == nil {
		return a.rows.flush(a.batch.Batch)
	}
	a.rows, err = a.bulk.take(a.rows)
	return err
}
