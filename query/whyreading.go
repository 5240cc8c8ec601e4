package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/index"
)

// whyUnread says why no reading of the master resolves a doubt.
type whyUnread uint8

const (
	_ whyUnread = iota // a reading is not needed
	// neverRead: the master was not read between the newest mark and the moment.
	neverRead
	// otherScopes: it was, but nothing was read of the object's scope.
	otherScopes
	// keyUnlisted: the key has a newline, and the master's listing has one key a line.
	keyUnlisted
	// touchedMeanwhile: the object changed while the master was read.
	touchedMeanwhile
	// unsaid: the master gave no usable answer about it.
	unsaid
)

// readingFacts adds what readings of the master say, which a.judge has just asked.
func (a *asked) readingFacts(p *historyOf, f *whyFacts) error {
	m := &f.m
	for i := range f.media {
		d := &f.media[i].decision
		if d.evidence == nil || !d.evidence.Reading {
			continue
		}
		r, ok, err := p.view.SourceReading(m.source, d.evidence.Position.Offset)
		if err != nil {
			return err
		}
		if ok {
			f.media[i].reading = &r
		}
	}
	if m.unproven == nil && slices.ContainsFunc(f.media, func(m whyMedium) bool { return m.wants() }) {
		if err := a.unread(p, f); err != nil {
			return err
		}
	}
	if f.answer.Certainty == Confirmed {
		return nil
	}
	// The next reading that speaks of the object tells more.
	next, err := p.view.ReadingPage(nil, p.scope(), m.at, p.end(), false, maxReadings)
	if err != nil {
		return err
	}
	for i := range next {
		says, err := p.view.Says(&next[i], &p.object)
		if err != nil {
			return err
		}
		if says {
			f.nextReading = &next[i]
			return nil
		}
	}
	return nil
}

// unread finds why no reading resolves the doubt.
func (a *asked) unread(p *historyOf, f *whyFacts) error {
	m := &f.m
	if p.view.Source(m.source).Readings == 0 {
		return nil // no master is asked, or none ever answered
	}
	if len(a.readings.list) == 0 {
		f.unread = neverRead
		err := p.view.SourceReadings(m.source, m.mark.End.Offset, m.at.Offset, func(r *index.SourceReading) error {
			f.unread, f.unreadAt = otherScopes, r.Begun
			return errEnough
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	}
	one := &a.readings.list[0]
	says, err := a.spoken.speaks(0)
	if err != nil || says {
		return err // a clear came behind it
	}
	f.unreadAt = one.Position.Offset
	switch {
	case strings.Contains(string(p.object.Key), "\n"):
		f.unread = keyUnlisted
	case one.Exceptions == 0:
		f.unread = touchedMeanwhile
	default:
		f.unread = unsaid
		h, err := p.view.Events(&p.object, one.Position, index.Behind(one.Through), false)
		if err != nil {
			return err
		}
		e, err := h.Next()
		if e != nil {
			f.unread = touchedMeanwhile
		}
		return errors.Join(err, h.Close())
	}
	return nil
}

// tellReading tells that what is known of a medium is the master's own word.
func (t *whyTeller) tellReading(m *whyMedium) {
	if m.evidence == nil || !m.evidence.Reading {
		return
	}
	word := "the master says the same"
	if m.newest != nil && m.newest.Position == m.evidence.Position {
		word = "that is the master's own word"
	}
	t.sayOf(m.evidence, "%s: %s, as it was read%s %s.", m.name, word, readingOf(m.reading), spotOf(m.evidence))
}

// readingOf tells why the master was read, and where.
func readingOf(r *index.SourceReading) string {
	if r == nil {
		return ""
	}
	s := map[string]string{"after_mark": " after a loss", "start": " as the recorder started", "on_demand": " on demand", "audit": " in an audit", "snapshot": " from a snapshot"}[r.Why]
	if r.From != "" {
		s += " (" + r.From + ")"
	}
	return s
}

// tellUnread tells why no reading of the master resolves a doubt.
func (t *whyTeller) tellUnread() {
	at := t.f.unreadAt
	switch t.f.unread {
	case neverRead:
		switch {
		case t.f.mark != nil:
			t.say("The master was not read between that and the moment, so nothing resolves the doubt.")
		default:
			t.say("The master was not read by then either.")
		}
	case otherScopes:
		text := "it says nothing of this backend"
		if string(t.f.name.Tenant) != defaultTenant {
			text = "its listing has the tenant `default` only"
		}
		t.sayAt(at, "The master was read since (offset %d), but %s.", at, text)
	case keyUnlisted:
		t.sayAt(at, "The master was read since (offset %d), but its listing has one key a line, and this key has a line break in it: nothing can be told of it.", at)
	case touchedMeanwhile:
		t.sayAt(at, "The master was read since (offset %d), but the object changed while it was read, so that its word is not used for it.", at)
	case unsaid:
		t.sayAt(at, "The master was read since (offset %d), but it gave no answer about this object that could be used.", at)
	}
}

func (t *whyTeller) sayAt(offset uint64, format string, args ...any) {
	t.out.Story = append(t.out.Story, WhyLine{Text: fmt.Sprintf(format, args...), Offset: offset})
}

// nextReadings tells what a reading of the master may say about a doubt.
func (t *whyTeller) nextReadings(add func(text, command string)) {
	f := t.f
	if f.nextReading != nil {
		h := f.nextReading.Position.Offset
		add(fmt.Sprintf("What the master said later, at offset %d.", h), objectCommand(fmt.Sprintf("lookup --at offset:%d", h), &f.name))
	}
	// Reading it now says nothing of a moment that is over.
	if f.when.Kind != Latest && f.when.Kind != Now || f.severalScopes || !slices.ContainsFunc(f.media, func(m whyMedium) bool { return m.wants() || m.doubt == silentMaster }) {
		return
	}
	if string(f.name.Tenant) == defaultTenant {
		add("Read the master now: what it says of the object resolves the doubt.", sourceCommand("reconcile", f.name.Source))
		return
	}
	add("The master shows the tenant `default` only. A snapshot of what it holds of this tenant resolves the doubt.", sourceCommand("reconcile --snapshot FILE", f.name.Source))
}
