package query

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/kvjournal/kvjournal/index"
)

// WhyOut is the story of an answer.
type WhyOut struct {
	Name
	// At is the moment as it was asked for, "" for the default.
	At     string
	Answer *Answer
	Story  []WhyLine
	// WrongIf is what would have to be true for the answer to be wrong; where it is uncertain, what else may be so.
	WrongIf []string
	Next    []WhyNext
}

// WhyLine is a sentence of a story, and the place in the stream that it tells of, if it tells of one.
type WhyLine struct {
	Text     string  `json:"text"`
	Offset   uint64  `json:"offset,omitempty"`
	Epoch    uint64  `json:"epoch,omitempty"`
	Seq      *uint64 `json:"seq,omitempty"`
	EventID  *uint64 `json:"event_id,omitempty"`
	Time     *Time   `json:"time,omitempty"`
	Received *Time   `json:"received,omitempty"`
}

// WhyNext is what to look at, or to do, next. Command is left out where there is none.
type WhyNext struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// whyJSON is a WhyOut as it is sent.
type whyJSON struct {
	nameJSON
	At      string    `json:"at,omitempty"`
	AsOf    AsOf      `json:"as_of"`
	Answer  *Answer   `json:"answer"`
	Story   []WhyLine `json:"story"`
	WrongIf []string  `json:"would_be_wrong_if"`
	Next    []WhyNext `json:"next"`
}

// MarshalJSON writes the story.
func (w *WhyOut) MarshalJSON() ([]byte, error) {
	return json.Marshal(whyJSON{w.Name.json(), w.At, w.Answer.AsOf, w.Answer, w.Story, w.WrongIf, w.Next})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *WhyOut) UnmarshalJSON(b []byte) error {
	var j whyJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Answer == nil {
		return errors.New("no answer")
	}
	*w = WhyOut{At: j.At, Answer: j.Answer, Story: j.Story, WrongIf: j.WrongIf, Next: j.Next}
	return w.Name.read(&j.nameJSON)
}

// whyFacts is all that a story is told from.
type whyFacts struct {
	name   Name
	when   When
	m      moment
	answer *Answer
	// horizon is where the journal begins, if something may have been pruned that the story would tell of; else nil.
	horizon *HorizonOut
	// seen: some event named the object, at any time; first is the first.
	seen  bool
	first *index.Event
	media []whyMedium
	// mediaLeftOut is how many more media there are.
	mediaLeftOut int
	clears       scopeClears
	// mark is the newest mark at the moment, nil: none; markAt is its line, as history has it.
	mark   *MarkOut
	markAt WhyLine
	older  whyOlder
	// nextGap is what is missing directly behind the moment, where that is why nothing is proven there.
	nextGap *GapOut
	// severalScopes: the object was never seen, and the answer is over several sources or backends.
	severalScopes bool
	// lookedBack: the object's last maxLookBack events were read and there are more.
	lookedBack bool
	// What came after the moment; nil: nothing that is recorded. stored is nil where next is a stored too.
	next, stored *index.Event
	nextClear    *index.Clear
	nextMark     *index.Mark
	// nextReading is the first reading of the master behind the moment that speaks of the object, where the answer is uncertain.
	nextReading *index.Reading
	// unread says why no reading of the master resolves a doubt, unreadAt is where the newest began that does not.
	unread   whyUnread
	unreadAt uint64
	// before is the newest moment before the mark that can be asked for, behindMoment the oldest behind the moment; 0: none.
	before, behindMoment uint64
	// lostEnd is what is gone from the end of a journal at rest. flaggedBy are lost records because of which the master's epoch counts for
	// silent. nil: none.
	lostEnd, flaggedBy *LostEnd
	// elsewhere are scopes in which the key was seen, of an object never seen.
	elsewhere []Name
}

// whyMedium is what led to the decision on one medium.
type whyMedium struct {
	name string
	decision
	newest *index.Evidence
	// stored is the newest stored at or before the moment; removed is the first removed behind it. nil: none, or too far back.
	stored, removed *index.Evidence
	// reading is that which the decision rests on, nil: none.
	reading *index.SourceReading
	// left are media that still had a copy behind the batch of removed.
	left []string
}

const (
	// maxLookBack bounds how many of the object's own events are read before and behind the moment.
	maxLookBack = 1000
	// maxWhyMedia bounds the media that a story tells of.
	maxWhyMedia = 8
)

// Why calls f with the story of what lookup answers for an object at a moment: one for each source and backend that has the object, or
// one that says that none has. What is read does not grow with the object's events.
func (e *Engine) Why(ctx context.Context, name Name, w When, f func(*WhyOut) error) error {
	q := Question{name}
	a, err := e.ask(ctx, []Question{q}, w)
	if err != nil {
		return err
	}
	defer a.view.Close()
	answer, err := a.answer(&q) // checks the question too
	if err != nil {
		return err
	}
	seen := false
	for _, s := range a.of(name.Source) {
		err := e.historiesOf(a.view, s, &name, func(p *historyOf) error {
			seen = true
			if err := ctx.Err(); err != nil {
				return err
			}
			facts, err := a.facts(p, w)
			if err == nil {
				err = p.lostFacts(facts, e.LostEnd)
			}
			if err != nil {
				return err
			}
			if h := e.Horizon(); h != nil && (p.first.Position.Offset <= h.Offset || h.ForgottenTo > 0) {
				facts.horizon = h
			}
			return f(tellWhy(facts))
		})
		if err != nil {
			return err
		}
	}
	if seen {
		return nil
	}
	facts, err := a.unseen(e, answer, w, &name)
	if err != nil {
		return err
	}
	facts.horizon, facts.lostEnd = e.Horizon(), e.LostEnd
	if facts.elsewhere, err = elsewhere(ctx, a.view, a.of(name.Source), name.Key); err != nil {
		return err
	}
	return f(tellWhy(facts))
}

// unseen collects the facts about an object that no event named.
func (a *asked) unseen(e *Engine, answer *Answer, w When, name *Name) (*whyFacts, error) {
	sources := a.of(name.Source)
	if len(sources) == 1 {
		p := &historyOf{view: a.view, source: sources[0], name: answer.Name, blocks: &blockCache{j: e.Journal}}
		p.object = index.Object{Source: sources[0].ID, Backend: answer.Backend, Tenant: answer.Tenant, Key: answer.Key}
		backends, err := a.view.Backends(sources[0].ID, answer.Tenant)
		if err != nil {
			return nil, err
		}
		if name.Backend != nil || len(backends) <= 1 {
			f, err := a.facts(p, w)
			if err == nil {
				f.seen, f.first = false, nil
				err = p.lostFacts(f, e.LostEnd)
			}
			return f, err
		}
	}
	return &whyFacts{name: answer.Name, when: w, answer: answer, severalScopes: true}, nil
}

// facts collects what led to the answer about one object.
func (a *asked) facts(p *historyOf, w When) (*whyFacts, error) {
	m := a.moment(p.source.ID)
	f := &whyFacts{name: p.name, when: w, m: *m, seen: true, first: &p.first}
	var err error
	if f.answer, _, err = a.object(&p.source, p.object.Backend, p.object.Tenant, p.object.Key); err != nil {
		return nil, err
	}
	f.answer.Name = p.name
	st, err := p.stateAt(m.at, m.at.Offset)
	if err != nil {
		return nil, err
	}
	f.clears = st.clears
	decisions, err := a.judge(nil, &p.object, m, st.media, &f.clears)
	if err != nil {
		return nil, err
	}
	for i := range st.media {
		if len(f.media) == maxWhyMedia {
			f.mediaLeftOut = len(st.media) - i
			break
		}
		out := whyMedium{name: st.media[i].Name}
		if st.media[i].Has {
			out.newest = &st.media[i].Newest
		}
		out.decision = decisions[i]
		f.media = append(f.media, out)
	}
	if err := a.readingFacts(p, f); err != nil {
		return nil, err
	}
	if err := p.before(f); err != nil {
		return nil, err
	}
	if err := p.behind(f); err != nil {
		return nil, err
	}
	if m.unproven != nil && m.unproven.Offset != 0 {
		gaps, err := p.view.GapPage(nil, p.source.ID, m.unproven.Offset, m.unproven.Offset, 1)
		if err != nil {
			return nil, err
		}
		if len(gaps) > 0 && gaps[0].Cause.String() == m.unproven.Cause {
			f.nextGap = gapOut(p.source.Name, &gaps[0])
		}
	}
	if m.hasMark {
		return f, errors.Join(p.markFacts(f, &m.mark), p.olderFacts(f, &m.mark))
	}
	return f, nil
}

// before finds, for each medium, when it was stored last and what ended that.
func (p *historyOf) before(f *whyFacts) error {
	of := map[string]*whyMedium{}
	for i := range f.media {
		if m := &f.media[i]; m.newest != nil {
			of[m.name] = m
		}
	}
	h, err := p.view.Events(&p.object, index.Position{}, f.m.at, true)
	if err != nil {
		return err
	}
	for n := 0; len(of) > 0; n++ {
		e, err := h.Next()
		if err != nil || e == nil {
			if err != nil {
				return errors.Join(err, h.Close())
			}
			break
		}
		if n == maxLookBack {
			f.lookedBack = true
			break
		}
		m := of[e.Medium]
		if m == nil {
			continue
		}
		evidence := e.Evidence
		if e.Stored {
			m.stored = &evidence
			delete(of, e.Medium)
		} else {
			m.removed = &evidence
		}
	}
	if err := h.Close(); err != nil {
		return err
	}
	for i := range f.media {
		m := &f.media[i]
		if m.removed == nil {
			continue
		}
		st, err := p.stateAt(index.Behind(m.removed.Position.Offset), m.removed.Position.Offset)
		if err != nil {
			return err
		}
		for _, other := range st.media {
			if other.Has && other.Newest.Stored && !(st.clears.hasNewest && other.Newest.Position.Before(st.clears.newest.Position)) && len(m.left) < maxWhyMedia {
				m.left = append(m.left, other.Name)
			}
		}
	}
	return nil
}

// behind finds what came after the moment.
func (p *historyOf) behind(f *whyFacts) error {
	end := p.end()
	if !f.m.at.Before(end) {
		return nil
	}
	h, err := p.view.Events(&p.object, f.m.at, end, false)
	if err != nil {
		return err
	}
	for n := 0; n < maxLookBack; n++ {
		e, err := h.Next()
		if err != nil {
			return errors.Join(err, h.Close())
		}
		if e == nil {
			break
		}
		event := *e
		if f.next == nil {
			f.next = &event
		}
		if e.Stored {
			if n > 0 {
				f.stored = &event
			}
			break
		}
	}
	if err := h.Close(); err != nil {
		return err
	}
	scope := index.Scope{Source: p.object.Source, Backend: p.object.Backend, Tenant: p.object.Tenant}
	clears, err := p.view.ClearPage(nil, &scope, f.m.at, end, false, 1)
	if err != nil {
		return err
	}
	if len(clears) > 0 {
		f.nextClear = &clears[0]
	}
	marks, err := p.view.MarkPage(nil, p.source.ID, f.m.at.Offset, end.Offset, false, 1)
	if len(marks) > 0 {
		f.nextMark = &marks[0]
	}
	return err
}

// markFacts adds the newest mark at the moment.
func (p *historyOf) markFacts(f *whyFacts, m *index.Mark) error {
	out, h, err := p.markOut(m)
	if err != nil {
		return err
	}
	f.mark, f.markAt = out, WhyLine{Offset: m.From}
	if f.before, err = p.beforeMark(m, out.Gap); err != nil {
		return err
	}
	switch {
	case h != nil:
		f.markAt.Epoch, f.markAt.Received = h.Epoch, msTime(h.Received/1e6)
		if h.HasSeq {
			seq := h.Seq
			f.markAt.Seq = &seq
		}
		if h.HasTime {
			f.markAt.Time = msTime(h.Time)
		}
	case m.From == m.End.Offset:
		f.markAt.Received = msTime(m.Received)
		if m.HasTime {
			f.markAt.Time = msTime(m.Time)
		}
	}
	return nil
}
