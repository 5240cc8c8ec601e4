package query

import (
	"fmt"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// maxOlder bounds how many marks before the newest are read.
const maxOlder = 100

// whyOlder are the marks between the last that is known of a medium in doubt and the newest mark: each of them may have ended it, too, and
// the newest alone says less than half, where it is the least of them.
type whyOlder struct {
	marks int
	more  bool
	// causes are those of the marks, each once, the newest first, with their number.
	causes []olderCause
	// restart is the newest that is a publisher's restart, nil: none.
	restart *index.Mark
}

type olderCause struct {
	cause continuity.Cause
	marks int
}

func (o *whyOlder) add(m *index.Mark) {
	if o.marks == maxOlder {
		o.more = true
		return
	}
	o.marks++
	if m.Cause == continuity.PublisherRestart && o.restart == nil {
		o.restart = m
	}
	for i := range o.causes {
		if o.causes[i].cause == m.Cause {
			o.causes[i].marks++
			return
		}
	}
	o.causes = append(o.causes, olderCause{m.Cause, 1})
}

// olderFacts adds the marks before the newest.
func (p *historyOf) olderFacts(f *whyFacts, newest *index.Mark) error {
	known := uint64(0) // where the oldest of what is known and in doubt was announced
	for i := range f.media {
		m := &f.media[i]
		if m.evidence == nil || m.confirmed() || m.evidence.Position.Offset >= newest.From {
			continue
		}
		if known == 0 || m.evidence.Position.Offset < known {
			known = m.evidence.Position.Offset
		}
	}
	if known == 0 {
		return nil
	}
	marks, err := p.view.MarkPage(nil, p.source.ID, known, newest.From-1, true, maxOlder+1)
	for i := range marks {
		f.older.add(&marks[i])
	}
	return err
}

// tellOlder tells of the marks before the newest.
func (t *whyTeller) tellOlder() {
	o := &t.f.older
	if o.marks == 0 {
		return
	}
	causes := make([]string, 0, len(o.causes))
	for _, c := range o.causes {
		s := c.cause.String()
		if c.marks > 1 {
			s = fmt.Sprintf("%d times %s", c.marks, s)
		}
		causes = append(causes, s)
	}
	more := ""
	if o.more {
		more = ", and more before"
	}
	t.say("Between what is known of it and that mark lie others, each of which puts it in doubt too: %s%s.", and(causes), more)
	if r := o.restart; r != nil {
		l := WhyLine{Offset: r.From, Text: "One of them: " + lower(causeTexts[r.Cause.String()].what)}
		if r.HasTime {
			l.Time = msTime(r.Time)
		}
		t.out.Story = append(t.out.Story, l)
	}
}

// elseSo ends "it may be otherwise, if …": what else may have made it so, and what is so if nothing did.
func (t *whyTeller) elseSo(state string) string {
	o := &t.f.older
	switch {
	case o.restart != nil && state == Present:
		return fmt.Sprintf("or if a loss before that did, or it was lost as the publisher restarted; else it is %s", state)
	case o.marks > 0:
		return fmt.Sprintf("or if a loss before that did; else it is %s", state)
	}
	return fmt.Sprintf("else it is %s", state)
}
