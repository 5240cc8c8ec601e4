package journal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// checkedSource is what the records say of a source.
type checkedSource struct {
	clock clock
	many  bool // it has more spans than are held
	// newest is the header of the newest record that is not stale, message that of the newest such message and at its offset.
	newest, message Header
	has             bool
	at              uint64
	// seq is the number that the newest message or a fact behind it leaves, where it is known.
	seq      uint64
	knownSeq bool
}

func (c *checker) source(id uint32) *checkedSource {
	s := c.sources[id]
	if s == nil {
		s = &checkedSource{}
		s.clock.highest, s.clock.has = c.j.Horizon().Clocks[id]
		c.sources[id] = s
	}
	return s
}

// takeKept takes a record up to the horizon. Of these only some are there, so of what they say only that the newest message was kept counts.
func (s *checkedSource) takeKept(offset uint64, h *Header) {
	if h.Kind == Message && !h.Stale {
		s.at = offset
	}
}

// take follows a record.
func (s *checkedSource) take(offset uint64, h *Header) {
	if h.Counts() && h.HasTime {
		if s.clock.see(h.Time, offset, func(int64) (span, bool) { return span{}, false }); len(s.clock.spans) > maxSpans {
			s.clock.spans, s.many = s.clock.spans[:0], true
		}
		s.clock.dropped = s.clock.dropped[:0]
	}
	if h.Stale {
		return
	}
	s.newest, s.has = *h, true
	switch {
	case h.Kind == Message:
		s.message, s.at = *h, offset
		if !h.Duplicate && h.HasSeq {
			s.seq, s.knownSeq = h.Seq, true
		}
	case h.Kind == PublisherStatus && h.Gap.Cause != continuity.CauseNone, h.Kind == TailLost:
		s.knownSeq = false // a poll may have moved it, or it is lost
	}
}

// checkSources compares the rows of the sources with what the records say.
func (c *checker) checkSources() error {
	for id, s := range c.sources {
		if _, named := c.j.sources[id]; !named {
			c.row(sourceKey(keySource, id), 0, fmt.Sprintf("source %d has records but no name", id))
		}
		p, err := c.j.Position(id)
		if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
			c.row(sourceKey(keyState, id), corrupt.Offset, "where the source stands: "+corrupt.What)
			continue
		}
		if err != nil {
			return err
		}
		if what := s.differs(&p, len(c.j.sources[id].Seen) > 1); what != "" && !c.torn {
			c.row(sourceKey(keyState, id), s.at, "where the source stands: "+what)
		}
	}
	return c.readTrouble(c.j.scan(keyImport, func(k, v []byte) error {
		var im Import
		if err := json.Unmarshal(v, &im); err != nil || im.Last > c.j.Durable() && !c.torn {
			c.row(k, im.First, "the row of an import does not decode, or tells of more than there is")
		}
		return nil
	}), "the rows i")
}

// differs says in what the state of a source is not what its records say; several: it has more than one endpoint, which its records do not tell.
func (s *checkedSource) differs(p *Position, several bool) string {
	st := &p.State
	switch {
	case !s.has && s.at == 0:
		return ""
	case s.at != p.Last && !(several && p.Last < s.at):
		return fmt.Sprintf("its newest message is %d, the row says %d", s.at, p.Last)
	case !s.has: // what came behind it may be pruned
		return ""
	case s.newest.Kind == TailLost:
		return "" // the state is that of before the loss, and may know more than is left
	case max(st.Epoch, 1) != s.newest.Epoch:
		return fmt.Sprintf("its epoch is %d, the row says %d", s.newest.Epoch, st.Epoch)
	case st.HasTime != s.newest.HasTime || st.Time != s.newest.Time:
		return fmt.Sprintf("its time is %d, the row says %d", s.newest.Time, st.Time)
	case s.knownSeq && st.Seq != s.seq:
		return fmt.Sprintf("its seq is %d, the row says %d", s.seq, st.Seq)
	}
	return ""
}
