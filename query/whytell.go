package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/index"
)

// tellWhy tells a story from facts. It is pure: all that it says is in them.
func tellWhy(f *whyFacts) *WhyOut {
	out := &WhyOut{Name: f.name, At: whenText(f.when), Answer: f.answer, Story: []WhyLine{}, WrongIf: []string{}, Next: []WhyNext{}}
	t := &whyTeller{f: f, out: out}
	t.verdict()
	t.past()
	t.pruned()
	t.doubts()
	t.after()
	t.wrongIf()
	t.next()
	return out
}

type whyTeller struct {
	f   *whyFacts
	out *WhyOut
}

func (t *whyTeller) say(format string, args ...any) {
	t.out.Story = append(t.out.Story, WhyLine{Text: fmt.Sprintf(format, args...)})
}

// sayOf adds a sentence about an event.
func (t *whyTeller) sayOf(e *index.Evidence, format string, args ...any) {
	l := WhyLine{Text: fmt.Sprintf(format, args...), Offset: e.Position.Offset, Epoch: e.Epoch, Received: msTime(e.Received)}
	if !e.Reading {
		seq := e.Seq
		l.Seq = &seq
	}
	if e.HasID {
		id := e.ID
		l.EventID = &id
	}
	if e.HasTime && !e.Reading {
		l.Time = msTime(e.Time)
	}
	t.out.Story = append(t.out.Story, l)
}

// verdict tells the moment, and what lookup answers there.
func (t *whyTeller) verdict() {
	names := make([]string, 0, len(t.f.answer.Media))
	for name := range t.f.answer.Media {
		names = append(names, name)
	}
	slices.Sort(names)
	left := max(0, len(names)-maxWhyMedia)
	var sure, unsure []string
	for _, name := range names[:len(names)-left] {
		m := t.f.answer.Media[name]
		s := m.State + " on " + name
		if m.State == Absent {
			s = "absent from " + name
		}
		if m.Certainty == Confirmed {
			sure = append(sure, s)
		} else {
			unsure = append(unsure, s)
		}
	}
	s := t.moment() + ": "
	if len(sure) > 0 {
		s += "by all that the publisher had announced, the object is " + and(sure) + " (confirmed)"
	}
	if len(unsure) > 0 {
		if len(sure) > 0 {
			s += "; "
		}
		s += "the last known state is " + and(unsure) + ", which is uncertain"
	}
	if left > 0 {
		s += fmt.Sprintf("; %d more media are in the answer", left)
	}
	t.out.Story = append(t.out.Story, WhyLine{Text: s + ".", Offset: t.f.answer.AsOf.Offset, Time: t.f.answer.AsOf.Time, Received: t.f.answer.AsOf.Received})
}

// moment names the moment.
func (t *whyTeller) moment() string {
	a := t.f.answer.AsOf
	if a.Offset == 0 {
		if t.f.when.Kind == AtTime {
			return "At publisher time " + clockText(t.f.when.Ms) + ", before anything that was recorded"
		}
		return "Before anything that was recorded"
	}
	place := fmt.Sprintf("offset %d", a.Offset)
	if a.Time != nil {
		place += " (sent " + clockText(a.Time.UnixMilli()) + ")"
	}
	switch t.f.when.Kind {
	case AtTime:
		return "At publisher time " + clockText(t.f.when.Ms) + ", which is behind " + place
	case Now:
		return "Now, behind " + place
	case Latest:
		return "As of the newest that is indexed, " + place
	}
	return "Behind " + place
}

// past tells what was announced before the moment, medium by medium.
func (t *whyTeller) past() {
	f := t.f
	switch {
	case !f.seen:
		t.say("No event that was recorded, before the moment or after it, ever named this object.")
		switch {
		case len(f.media) > 0 && f.media[0].cleared:
			t.scopeCleared(f.media[0].evidence)
		case len(f.media) == 0 && f.answer.Certainty == Confirmed:
			t.say("Every scope that it could be in was cleared, which made every object there absent, whatever its name.")
		}
		return
	case f.m.at.Before(f.first.Position):
		t.sayOf(&f.first.Evidence, "No event had named this object yet; the first came later: %s %s.", happened(f.first), spotOf(&f.first.Evidence))
		if len(f.media) > 0 && f.media[0].cleared {
			t.scopeCleared(f.media[0].evidence)
		}
		return
	}
	t.sayOf(&f.first.Evidence, "The first event that names it: %s %s.", happened(f.first), spotOf(&f.first.Evidence))
	for i := range f.media {
		t.medium(&f.media[i])
	}
	if f.mediaLeftOut > 0 {
		t.say("It was seen on %d more media; `kvjournal history` has them.", f.mediaLeftOut)
	}
}

// pruned tells that the story does not begin at its beginning.
func (t *whyTeller) pruned() {
	h := t.f.horizon
	if h == nil {
		return
	}
	l := WhyLine{Text: fmt.Sprintf("What came before offset %d was pruned: of that, only what answers rest on is known.", h.Offset), Offset: h.Offset, Time: h.Time, Received: h.Received}
	if h.ForgottenTo > 0 {
		l.Text += " Objects that were gone by then were forgotten."
	}
	t.out.Story = append(t.out.Story, l)
}

func (t *whyTeller) scopeCleared(e *index.Evidence) {
	t.sayOf(e, "The `cleared` of its scope %s made every object of the scope absent, whatever its name.", spotOf(e))
}

func (t *whyTeller) medium(m *whyMedium) {
	f := t.f
	defer t.tellReading(m)
	switch {
	case m.newest == nil:
		if m.cleared {
			t.sayOf(m.evidence, "%s: no event about it was recorded; the `cleared` of its scope %s made every object of the scope absent.", m.name, spotOf(m.evidence))
		}
		return // else the doubt says it
	case m.present && m.newest.Reading:
		t.sayOf(m.newest, "%s: a reading of the master found it there %s, and no recorded event behind that removed it by then.", m.name, spotOf(m.newest))
		return
	case m.present:
		t.sayOf(m.newest, "%s: stored %s, and no recorded event behind that removed it by then.", m.name, spotOf(m.newest))
		return
	case m.newest.Stored: // and then cleared
		how := "stored"
		if m.newest.Reading {
			how = "found there by a reading of the master"
		}
		t.sayOf(m.newest, "%s: %s %s.", m.name, how, spotOf(m.newest))
		t.sayOf(&f.clears.newest, "%s: its scope (tenant and backend) was cleared %s.", m.name, spotOf(&f.clears.newest))
		return
	}
	switch {
	case m.stored != nil && m.stored.Reading:
		t.sayOf(m.stored, "%s: found there by a reading of the master %s.", m.name, spotOf(m.stored))
	case m.stored != nil:
		t.sayOf(m.stored, "%s: stored last %s.", m.name, spotOf(m.stored))
	case f.lookedBack:
		t.say("%s: no `stored` is among the object's last %d events.", m.name, maxLookBack)
	default:
		t.say("%s: no `stored` of it was recorded before its removal.", m.name)
	}
	how := "the batch left no announced copy on any medium"
	if len(m.left) > 0 {
		how = "a copy on " + and(m.left) + " was left, as an eviction or an offload leaves one"
	}
	if m.removed.Reading {
		t.sayOf(m.removed, "%s: a reading of the master did not find it there any more %s: no event that was received had told of it.", m.name, spotOf(m.removed))
	} else {
		t.sayOf(m.removed, "%s: removed %s; %s.", m.name, spotOf(m.removed), how)
	}
	if m.newest.Reading && m.newest.Position != m.removed.Position {
		t.sayOf(m.newest, "%s: a later reading of the master found that again %s.", m.name, spotOf(m.newest))
	} else if m.newest.Position != m.removed.Position {
		t.sayOf(m.newest, "%s: removed again %s, which changed nothing.", m.name, spotOf(m.newest))
	}
	if m.cleared {
		t.sayOf(m.evidence, "%s: the `cleared` of its scope %s says the same.", m.name, spotOf(m.evidence))
	}
}

// doubts tells each cause of doubt once, and the newest mark also where it touches nothing.
func (t *whyTeller) doubts() {
	f := t.f
	told, silent := false, false
	for _, c := range t.causes() {
		silent = silent || c.cause == DoubtSilent
		text := t.text(c.cause, t.gapOf(&c)).what
		if len(c.media) < len(f.answer.Media) {
			text = and(c.media) + ": " + lower(text)
		}
		l := WhyLine{Text: text, Offset: c.doubt.Offset, Time: c.doubt.Time}
		switch {
		case c.marked:
			told = true
			l = f.markAt
			l.Text = text + " " + t.markText()
		case f.nextGap != nil && c.cause == f.nextGap.Cause:
			l.Text = fmt.Sprintf("The message behind the moment (offset %d) does not follow on the last one before it, so what is missing between them may have been announced by the moment. %s %s", c.doubt.Offset, text, lossOf(f.nextGap))
			l.Text = strings.TrimSpace(l.Text)
		}
		t.out.Story = append(t.out.Story, l)
		if c.marked && f.mark.Shadow {
			t.shadow()
		}
	}
	switch {
	case f.mark != nil && !told:
		l := f.markAt
		l.Text = fmt.Sprintf("Before that a mark (%s) put all that was known then in doubt: %s %s", f.mark.Cause, lower(t.text(f.mark.Cause, f.mark.Gap).what), t.markText())
		if f.answer.Certainty == Confirmed {
			l.Text += " What is confirmed rests on what was announced"
			if slices.ContainsFunc(f.media, func(m whyMedium) bool { return m.evidence != nil && m.evidence.Reading }) {
				l.Text += ", or read from the master,"
			}
			l.Text += " behind it."
		}
		t.out.Story = append(t.out.Story, l)
	case f.answer.Certainty == Confirmed && f.mark == nil && !f.severalScopes:
		t.say("Nothing casts doubt on that: no mark of the source lies before the moment, so nothing is known to be missing.")
	}
	t.tellOlder()
	t.tellUnread()
	switch {
	case !f.answer.Silent || silent:
	case f.flaggedBy != nil:
		t.say("%s Until its epoch (%d) ends, that it has something is confirmed by a reading of it only, for the moment of the reading.", flaggedText(f.flaggedBy).what, f.m.epoch)
	default:
		t.say("The master of this epoch (%d) is known to change things without an event: that it has something is confirmed by a reading of it only, for the moment of the reading.", f.m.epoch)
	}
}

// whyCause is a cause of doubt and the media that it touches.
type whyCause struct {
	cause   string
	doubt   Doubt
	marked  bool // it is that of the newest mark
	media   []string
	present []string // media whose last known state is present
}

// causes are those of the answer, in the order of the media.
func (t *whyTeller) causes() []whyCause {
	var out []whyCause
	names := make([]string, 0, len(t.f.answer.Media))
	for name := range t.f.answer.Media {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := t.f.answer.Media[name]
		if m.Doubt == nil {
			continue
		}
		i := slices.IndexFunc(out, func(c whyCause) bool { return c.cause == m.Doubt.Cause })
		if i < 0 {
			i = len(out)
			byMark := t.f.mark != nil && t.f.m.unproven == nil && m.Doubt.Cause == t.f.mark.Cause
			out = append(out, whyCause{cause: m.Doubt.Cause, doubt: *m.Doubt, marked: byMark})
		}
		out[i].media = append(out[i].media, name)
		if m.State == Present {
			out[i].present = append(out[i].present, name)
		}
	}
	return out
}

// markSpot says where the mark is.
func (t *whyTeller) markSpot() string {
	s := fmt.Sprintf("offset %d", t.f.markAt.Offset)
	if t.f.markAt.Time != nil {
		s = "at " + clockText(t.f.markAt.Time.UnixMilli()) + ", " + s
	}
	return s
}

// markText tells what is known of the loss behind the mark.
func (t *whyTeller) markText() string {
	m := t.f.mark
	s := "It showed " + t.markSpot() + "."
	if g := m.Gap; g != nil {
		if text := lossOf(g); text != "" {
			s += " " + text
		}
	}
	if m.ExtendsTo != nil {
		s += fmt.Sprintf(" It went on up to offset %d", m.ExtendsTo.Offset)
		switch {
		case m.LossesMore:
			s += fmt.Sprintf(", more than %d losses in all", m.Losses)
		case m.Losses > 1:
			s += fmt.Sprintf(", %d losses in all", m.Losses)
		}
		s += "."
	}
	return s
}

// lossOf tells the numbers of a gap.
func lossOf(g *GapOut) string {
	var s string
	switch {
	case g.FirstMissingOffset != nil:
		return fmt.Sprintf("The journal lost its offsets %d to %d.", *g.FirstMissingOffset, *g.LastMissingOffset)
	case g.Damage != "" && g.FirstMissingSeq != nil:
		return fmt.Sprintf("The damaged message is seq %d (%s).", *g.FirstMissingSeq, g.Damage)
	case g.Damage != "":
		return fmt.Sprintf("What is wrong with it: %s.", g.Damage)
	case g.FirstMissingSeq == nil:
		return ""
	case *g.FirstMissingSeq == *g.LastMissingSeq:
		s = fmt.Sprintf("Seq %d is missing", *g.FirstMissingSeq)
	default:
		s = fmt.Sprintf("Seq %d to %d are missing", *g.FirstMissingSeq, *g.LastMissingSeq)
	}
	switch {
	case g.LostEvents != nil:
		return fmt.Sprintf("%s: %d events were lost.", s, *g.LostEvents)
	case g.LostEventsMin != nil && *g.LostEventsMin == *g.LostEventsMax:
		return fmt.Sprintf("%s: %d events were lost.", s, *g.LostEventsMin)
	case g.LostEventsMin != nil:
		return fmt.Sprintf("%s: %d to %d events were lost.", s, *g.LostEventsMin, *g.LostEventsMax)
	}
	return s + "; how many events that were is not known."
}

// shadow says so where the evidence itself stands in the shadow of the mark.
func (t *whyTeller) shadow() {
	for i := range t.f.media {
		m := &t.f.media[i]
		if m.doubt == marked && m.evidence != nil && m.evidence.Position.Offset >= t.f.markAt.Offset {
			t.sayOf(m.evidence, "%s: what is known comes from the batch directly behind the loss. Lost events may be newer than it, so it changes the state but proves nothing; the next batch does.", m.name)
		}
	}
}

// after tells what came after the moment.
func (t *whyTeller) after() {
	f := t.f
	defer t.lostBehind()
	if !f.seen {
		return
	}
	switch {
	case f.next == nil:
		t.say("No later event about it is recorded.")
	case f.m.at.Before(f.first.Position):
	default:
		t.sayOf(&f.next.Evidence, "After the moment: %s %s.", happened(f.next), spotOf(&f.next.Evidence))
	}
	if f.stored != nil && f.stored.Reading {
		t.sayOf(&f.stored.Evidence, "Then %s %s.", happened(f.stored), spotOf(&f.stored.Evidence))
	} else if f.stored != nil {
		t.sayOf(&f.stored.Evidence, "The next `stored` is on %s %s.", f.stored.Medium, spotOf(&f.stored.Evidence))
	}
	if f.nextClear != nil && (f.next == nil || f.nextClear.Position.Before(f.next.Position)) {
		t.sayOf(&f.nextClear.Evidence, "After the moment its scope was cleared %s.", spotOf(&f.nextClear.Evidence))
	}
	if f.nextReading != nil {
		t.sayOf(&f.nextReading.Evidence, "After the moment the master was read %s, and what it said of the object is known from there on.", spotOf(&f.nextReading.Evidence))
	}
	if f.nextMark != nil {
		t.out.Story = append(t.out.Story, WhyLine{
			Text:   fmt.Sprintf("After the moment a mark (%s) at offset %d put all that was known before it in doubt.", f.nextMark.Cause, f.nextMark.From),
			Offset: f.nextMark.From,
		})
	}
}
