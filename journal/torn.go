package journal

import (
	"errors"
	"fmt"
	"log/slog"
)

// Torn tells of acknowledged records that are gone from a journal's end: First to Last.
type Torn struct {
	First, Last uint64
	// sure: the rows of the sources are those that there were.
	sure bool
}

// Warn says what that means to who asks a journal at rest.
func (t Torn) Warn(log *slog.Logger) {
	log.Warn("acknowledged records are gone from the journal's end: answers are as of the record before them, and what they may have told of the masters is taken to be so. "+
		"`kvjournal record` goes on behind them and marks what they put in doubt; `kvjournal repair --to NEW` looks for more that is readable",
		"first_missing_offset", t.First, "last_missing_offset", t.Last)
}

// known is the newest offset that the head file knows of, or an index.
func (j *Journal) known(more Known) uint64 {
	return max(more.To(j.id), j.opts.Indexed.To(j.id), readHead(j.opts.FS, j.dir, j.id).offset)
}

// Torn reports what is gone from the end of a journal that is open for reading, as far as the head file and an index know; torn is false where
// nothing is.
func (j *Journal) Torn(known Known) (t Torn, torn bool) {
	return j.torn(j.Durable(), known)
}

func (j *Journal) torn(last uint64, more Known) (t Torn, torn bool) {
	known := j.known(more)
	if known <= last {
		return t, false
	}
	return Torn{last + 1, known, vouches(readHead(j.opts.FS, j.dir, j.id), j.Sources(), last, known)}, true
}

// vouches reports whether a head file shows that the rows of these sources, in a journal that goes to last and of which something knows more, up
// to known, are those that there were. EnsureSource does not return before the head file tells of what it wrote. So where the rows are others
// some are lost; and where something knows more than the head file that may be an older one.
func vouches(h head, sources []Source, last, known uint64) bool {
	return h.sources == sumOf(sources) && (known <= last || h.offset >= known)
}

// Silent says of which epochs of a source the lost records may have told that its master changes things without an event, which is
// true of all the epoch (R11): where the source has a master, or the row that names it may be lost too. Another process may
// have begun in what is lost, so there are two.
func (j *Journal) Silent(t Torn, s *Source) ([]LostOf, error) {
	if t.sure && len(s.Masters) == 0 {
		return nil, nil
	}
	p, err := j.position(s.ID)
	if err != nil {
		return nil, err
	}
	return silentFrom(s.ID, max(p.State.Epoch, 1)), nil
}

func silentFrom(source uint32, epoch uint64) []LostOf {
	return []LostOf{{source, epoch}, {source, epoch + 1}}
}

// recoverTail compares what the head file and the index know with what the journal has, and writes down what is gone, for every source. Where
// sources may be gone too, EnsureSource does so for those that come back.
func (j *Journal) recoverTail() error {
	t, torn := j.torn(j.next-1, nil)
	if !torn {
		return nil
	}
	j.opts.Log.Error("acknowledged records are gone from the journal; answers about them are marked uncertain",
		"first_missing_offset", t.First, "last_missing_offset", t.Last)
	j.next = t.Last + 1
	sources := j.Sources()
	if !t.sure || len(sources) == 0 {
		j.untold = &t
	}
	g := j.NewGroup()
	for _, s := range sources {
		p, err := j.Position(s.ID)
		if err != nil {
			return err
		}
		silent, err := j.Silent(t, &s)
		if err != nil {
			return err
		}
		g.lost(&t, s.ID, &p, silent)
	}
	return errors.Join(g.Commit(), j.Sync())
}

// lost adds the record of a loss for one source.
func (g *Group) lost(t *Torn, source uint32, p *Position, silent []LostOf) {
	h := tailLostHeader(source, p)
	l := Lost{First: t.First, Last: t.Last, Also: silent}
	g.Add(&h, [][]byte{l.Frame()})
}

// tellNew writes down for a source that is new that it may have been there before, when the journal was torn and its row was lost too.
func (j *Journal) tellNew(source uint32) error {
	if j.untold == nil {
		return nil
	}
	g := j.NewGroup()
	g.lost(j.untold, source, &Position{}, silentFrom(source, 1))
	if err := errors.Join(g.Commit(), j.Sync()); err != nil {
		return fmt.Errorf("writing down for a new source what the journal lost: %w", err)
	}
	return nil
}
