package journal

import (
	"slices"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

// rewriter appends records at the offsets that they had.
type rewriter struct {
	r *repairer
	j *Journal
	g *Group
	// crossed: it is behind the horizon.
	crossed bool

	frames [][]byte
	seq    [8]byte
}

// begin returns the group that goes on at an offset.
func (w *rewriter) begin(offset uint64) (*Group, error) {
	if w.j.next != offset { // behind a loss
		if err := w.commit(); err != nil {
			return nil, err
		}
	}
	if w.g == nil {
		w.j.next = offset
		w.g = w.j.NewGroup()
	}
	return w.g, nil
}

func (w *rewriter) commit() error {
	if w.g == nil {
		return nil
	}
	g := w.g
	w.g = nil
	return g.Commit()
}

func (w *rewriter) block(b *Block, from uint64) error {
	for o := from; o <= b.Last(); o++ {
		i := int(o - b.First)
		h := b.Header(i)
		if o > w.r.horizon.Offset {
			if err := w.cross(); err != nil {
				return err
			}
		}
		var err error
		if w.frames, err = b.Frames(i, w.frames[:0], &w.seq); err != nil {
			return err
		}
		g, err := w.begin(o)
		if err != nil {
			return err
		}
		g.Add(h, w.frames)
		if !w.crossed && w.r.horizon.Generation > 0 {
			w.r.atHorizon(w.j)
		}
		if s := w.r.source(h.Source); !h.Stale {
			s.newest, s.has = *h, true
		}
		w.r.Records++
	}
	w.r.step(uint64(b.RawLen()) / 8)
	if w.g != nil && w.g.Raw() >= repairGroup {
		return w.commit()
	}
	return nil
}

// loss writes that the offsets first to last are missing, as records that end at the offset end: one for each source, or, where there is
// no room for so many, the last for several.
func (w *rewriter) loss(first, last, end uint64, next map[uint32]uint64) error {
	if first > w.r.horizon.Offset {
		if err := w.cross(); err != nil {
			return err
		}
	}
	if err := w.commit(); err != nil {
		return err
	}
	ids := make([]uint32, 0, len(w.r.sources))
	for id := range w.r.sources {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	room := min(uint64(len(ids)), end-first+1)
	if room == 0 {
		w.j.next = end + 1
		return nil
	}
	g, err := w.begin(end - room + 1)
	if err != nil {
		return err
	}
	for i := range int(room) {
		own := ids[i : i+1]
		if i == int(room)-1 {
			own = ids[i:]
		}
		l := Lost{First: first, Last: last, Through: w.r.known}
		for n, id := range own {
			l.Also = append(l.Also, w.of(id, n > 0, next)...)
		}
		s := w.r.source(own[0])
		p := Position{State: continuity.State{Epoch: s.newest.Epoch, HasTime: s.newest.HasTime, Time: s.newest.Time}}
		h := tailLostHeader(own[0], &p)
		g.Add(&h, [][]byte{l.Frame()})
	}
	return w.commit()
}

// of says what a loss means to a source, beside a mark if it is the record's own.
func (w *rewriter) of(id uint32, also bool, next map[uint32]uint64) []LostOf {
	s := w.r.source(id)
	var out []LostOf
	if s.asked {
		if s.has {
			out = append(out, LostOf{id, s.newest.Epoch})
		}
		if e := next[id]; e != 0 && (!s.has || e != s.newest.Epoch) {
			out = append(out, LostOf{id, e})
		}
	}
	if also && len(out) == 0 {
		out = append(out, LostOf{Source: id})
	}
	return out
}
