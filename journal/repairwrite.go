package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// survey reads the pile once: the holes, and what is known of each source.
func (r *repairer) survey() error {
	if err := r.surveyRows(); err != nil {
		return err
	}
	if err := r.chooseBaseline(); err != nil {
		return err
	}
	horizon := r.horizon.Offset
	next := max(r.beginning, horizon+1)
	err := r.eachBlock(func(b *Block, from uint64) error {
		r.hasHorizon = r.hasHorizon || from <= horizon && horizon <= b.Last()
		if from > next {
			if told, err := b.tells(next); err != nil || !told {
				r.holes = append(r.holes, hole{next, from - 1, map[uint32]uint64{}})
			}
		}
		if horizon > 0 {
			if err := r.count(b, max(from, horizon+1)); err != nil {
				return err
			}
		}
		for o := from; o <= b.Last(); o++ {
			h := b.Header(int(o - b.First))
			for i := len(r.holes) - 1; i >= 0 && !h.Stale; i-- {
				if _, seen := r.holes[i].next[h.Source]; seen {
					break // and in all holes before
				}
				r.holes[i].next[h.Source] = h.Epoch
			}
			r.follow(o, h)
		}
		if r.First == 0 {
			r.First = from
		}
		r.Last, next = b.Last(), max(next, b.Last()+1)
		return nil
	})
	if err != nil {
		return err
	}
	if horizon > 0 && !r.hasHorizon {
		r.lost(horizon, horizon)
	}
	r.Last = max(r.Last, horizon)
	if r.First == 0 && len(r.sources) == 0 {
		return errNothingLeft
	}
	h, err := headOf(r.o.FS, r.dir)
	if err == nil && (!r.hasID || h.id == r.id) {
		r.id, r.hasID = h.id, true
	} else {
		h = head{}
	}
	r.known = max(r.Last, h.offset)
	if r.hasID {
		r.known = max(r.known, r.o.Indexed.To(r.id))
	} else {
		r.known = max(r.known, r.o.Indexed.Newest())
	}
	r.ask(h)
	for _, h := range r.holes {
		r.lost(h.first, h.last)
	}
	if r.known > r.Last {
		r.lost(r.Last+1, r.known)
	}
	return nil
}

// ask takes every source for one whose master was asked, where the row that names it may be lost.
func (r *repairer) ask(h head) {
	var named []Source
	for _, s := range r.sources {
		if s.named {
			named = append(named, s.Source)
		}
	}
	if vouches(h, named, r.Last, r.known) {
		return
	}
	for _, s := range r.sources {
		s.asked = true
	}
}

func (r *repairer) lost(first, last uint64) {
	r.Holes++
	r.Lost += last - first + 1
	if len(r.Ranges) < maxRanges {
		r.Ranges = append(r.Ranges, [2]uint64{first, last})
	}
}

// follow takes what a record says of its source.
func (r *repairer) follow(offset uint64, h *Header) {
	s := r.source(h.Source)
	s.there = s.there || s.position != nil && s.position.Last == offset
	switch h.Kind {
	case PublisherStatus, ReconciliationBegun, ReconciliationPart, ReconciliationEnded:
		s.asked = true
	}
	if h.Stale {
		return
	}
	s.newest, s.has = *h, true
	if h.Kind == Message {
		s.last = offset
		if !h.Duplicate && h.HasSeq {
			s.seq = h.Seq
		}
	}
}

// surveyRows takes the sources, where they stand, and the id.
func (r *repairer) surveyRows() error {
	return r.eachRow(func(key, value []byte) error {
		there, value := value[0] == 1, value[1:]
		switch {
		case !there:
		case bytes.Equal(key, metaBaseline):
			if h := (Horizon{}); json.Unmarshal(value, &h) == nil && h.Generation > 0 {
				r.horizons = append(r.horizons, h)
			}
		case bytes.Equal(key, metaTotals) && r.totals == nil: // the newest comes first
			if t, err := decodeTotals(value); err == nil {
				r.totals = &t
			}
		case bytes.Equal(key, metaID) && len(value) == len(r.id) && !r.hasID:
			r.id, r.hasID = ID(value), true
		case key[0] == keySource:
			var s Source
			if json.Unmarshal(value, &s) != nil || s.ID == 0 || !bytes.Equal(key, sourceKey(keySource, s.ID)) {
				return nil
			}
			if have := r.source(s.ID); !have.named || len(s.Seen) > len(have.Seen) { // endpoints are only ever added
				have.Source, have.named = s, true
				have.asked = have.asked || len(s.Masters) > 0
			}
		case key[0] == keyState && len(key) == 5:
			p, err := decodePosition(value)
			if err != nil {
				return nil
			}
			if have := r.source(uint32(last8(append(make([]byte, 3), key...)))); have.position == nil || laterPosition(&p, have.position) {
				have.position = &p
			}
		}
		return nil
	})
}

// laterPosition reports whether a source stood at p behind q.
func laterPosition(p, q *Position) bool {
	if p.Last != q.Last {
		return p.Last > q.Last
	}
	return p.State.Changes > q.State.Changes
}

// repairGroup is how many raw bytes are committed together.
const repairGroup = 4 << 20

// write makes the new journal.
func (r *repairer) write(to string) error {
	o := r.o
	o.NoSealer, o.ReadOnly, o.Cache = true, false, nil
	j, err := Open(to, nil, o)
	if err != nil {
		return err
	}
	err = r.fill(j)
	if err == nil {
		err = j.Sync()
	}
	if err == nil {
		err = j.Flush()
	}
	return errors.Join(err, j.Close())
}

func (r *repairer) fill(j *Journal) error {
	if r.hasID {
		if err := j.db.Set(metaID, r.id[:], pebble.Sync); err != nil {
			return err
		}
		j.id = r.id
	}
	if err := r.writeSources(j); err != nil {
		return err
	}
	if err := r.writeBaseline(j, j.dir); err != nil {
		return err
	}
	for _, s := range r.sources { // from here on: of what was written so far
		s.newest, s.has = Header{}, false
	}
	w := &rewriter{r: r, j: j}
	holes := r.holes
	err := r.eachBlock(func(b *Block, from uint64) error {
		if len(holes) > 0 && holes[0].last+1 == from {
			if err := w.loss(holes[0].first, holes[0].last, holes[0].last, holes[0].next); err != nil {
				return err
			}
			holes = holes[1:]
		}
		return w.block(b, from)
	})
	if err == nil {
		err = w.cross() // where nothing lies behind the horizon
	}
	if err == nil && r.known > r.Last {
		err = w.loss(r.Last+1, r.known, r.known+uint64(len(r.sources)), nil)
	}
	if err != nil {
		return err
	}
	g, err := w.begin(j.next)
	if err != nil {
		return err
	}
	for id, s := range r.sources {
		p := r.standing(s)
		g.State(id, &p)
	}
	return w.commit()
}

// writeSources writes the rows that are kept as they are, and the names of the sources.
func (r *repairer) writeSources(j *Journal) error {
	batch := j.db.NewBatch()
	defer batch.Close()
	var before []byte
	err := r.eachRow(func(key, value []byte) error {
		newest := !bytes.Equal(key, before)
		before = append(before[:0], key...)
		switch {
		case !newest || value[0] == 0:
			return nil
		case bytes.Equal(key, metaBaseline):
			return nil // written behind the baseline
		case key[0] == keySpan: // those behind the horizon are found again
			if s, ok := decodeSpan(key, value[1:]); !ok || s.last > r.horizon.Offset {
				return nil
			}
		case key[0] == keySource, key[0] == keyState, bytes.Equal(key, metaID), bytes.Equal(key, metaTotals), bytes.Equal(key, metaSealed):
			return nil
		case key[0] == keyImport:
			var im Import
			if json.Unmarshal(value[1:], &im) != nil || im.Last > r.Last {
				return nil // it may be imported again
			}
		}
		return batch.Set(key, value[1:], nil)
	})
	if err != nil {
		return err
	}
	for id, s := range r.sources {
		if !s.named {
			s.Name, s.Created = r.name(id), time.Now().UTC()
			r.Restored = append(r.Restored, s.Name)
		}
		v, err := json.Marshal(s.Source)
		if err != nil {
			return err
		}
		if err := batch.Set(sourceKey(keySource, id), v, nil); err != nil {
			return err
		}
		j.setSource(id, s.Source)
	}
	r.Sources = len(r.sources)
	return batch.Commit(pebble.Sync)
}

// standing is where a source stands at the end: as its row says, if that fits its records, else as they say.
func (r *repairer) standing(s *salvaged) Position {
	p := s.position
	several := len(s.Seen) > 1
	if p != nil && (p.Last == s.last || several && p.Last != 0 && p.Last < s.last && s.there) && (!s.has || p.State.Epoch >= s.newest.Epoch) {
		return *p
	}
	if s.named && (s.has || p != nil) {
		r.Restored = append(r.Restored, s.Name)
	}
	q := Position{Last: s.last}
	q.State.Epoch, q.State.Seq, q.State.HasTime, q.State.Time = s.newest.Epoch, s.seq, s.newest.HasTime, s.newest.Time
	q.State.Break = continuity.RecorderWasDown // the ids are not known: whatever comes, it is the first of a connection
	if p != nil && p.State.Epoch > q.State.Epoch {
		q.State.Epoch, q.State.Seq = p.State.Epoch, p.State.Seq // an epoch's number is not used again
	}
	return q
}
