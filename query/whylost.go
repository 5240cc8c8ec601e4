package query

import (
	"fmt"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// lostFacts adds what the journal itself lost, as far as the story needs it; end as of Engine.
func (p *historyOf) lostFacts(f *whyFacts, end *LostEnd) error {
	f.lostEnd = end
	var err error
	if f.behindMoment, err = p.nextTo(f.answer.AsOf.Offset + 1); err != nil {
		return err
	}
	epoch := f.m.epoch
	for i := range f.media {
		if m := &f.media[i]; m.doubt == silentMaster {
			epoch = m.evidence.Epoch
			break
		}
	}
	if !f.m.silent(epoch) {
		return nil
	}
	at, ok, err := p.view.FlaggedAt(p.source.ID, epoch)
	if err != nil || !ok {
		return err
	}
	gaps, err := p.view.GapPage(nil, p.source.ID, at, at, maxLosses)
	if err != nil {
		return err
	}
	for i := range gaps {
		if g := &gaps[i]; g.MissingOffsets {
			f.flaggedBy = &LostEnd{g.First, g.Last}
			return nil
		}
	}
	if end != nil && at == p.view.Source(p.source.ID).Last.Offset { // Index.Suspect
		f.flaggedBy = end
	}
	return nil
}

// beforeMark is the newest offset before a mark that can be asked for, before all that was lost there too; 0: none.
func (p *historyOf) beforeMark(m *index.Mark, gap *GapOut) (uint64, error) {
	at := m.From
	if gap != nil && gap.FirstMissingOffset != nil {
		at = min(at, *gap.FirstMissingOffset)
	}
	if at <= 1 {
		return 0, nil
	}
	before, _, err := p.blocks.j.Around(at - 1)
	return before, err
}

// nextTo is the oldest offset at or behind one that can be asked for, 0: none.
func (p *historyOf) nextTo(offset uint64) (uint64, error) {
	_, after, err := p.blocks.j.Around(offset)
	return after, err
}

// text tells of a cause of doubt; of what our own disk lost in words of its own.
func (t *whyTeller) text(cause string, gap *GapOut) causeText {
	switch {
	case cause == DoubtSilent && t.f.flaggedBy != nil:
		return flaggedText(t.f.flaggedBy)
	case cause == continuity.Damaged.String() && gap != nil && gap.FirstMissingOffset != nil:
		return lostText
	}
	return causeTexts[cause]
}

// lostText is that of a mark where the journal lost records.
var lostText = lossText("A part of the journal itself was lost on our own disk: what was received then is gone.",
	"an event in what was lost",
	"Look at the disk that the data directory is on; `kvjournal verify` tells whether more is damaged.")

// flaggedText is that of an epoch that is flagged because what would tell of its master may be lost.
func flaggedText(l *LostEnd) causeText {
	return causeText{fmt.Sprintf("Records were lost on our own disk (offsets %d to %d of the journal). They may have told that this source's master changes things without an event, so that is taken to be so.", l.First, l.Last),
		"the master does so, and removed it without an event", "the master does so, and stored it without an event",
		"Only a reading of the master itself confirms that something is there, and only for its own moment, until its epoch ends. Look at the disk that the data directory is on, too."}
}

// gapOf is the loss that a cause of doubt goes back to, nil: none is known.
func (t *whyTeller) gapOf(c *whyCause) *GapOut {
	switch {
	case c.marked:
		return t.f.mark.Gap
	case t.f.nextGap != nil && c.cause == t.f.nextGap.Cause:
		return t.f.nextGap
	}
	return nil
}

// lostBehind tells what is gone from the journal's end.
func (t *whyTeller) lostBehind() {
	if l := t.f.lostEnd; l != nil {
		t.say("The records at offsets %d to %d, which had been acknowledged, are gone from the journal's end: what they told is not known.", l.First, l.Last)
	}
}
