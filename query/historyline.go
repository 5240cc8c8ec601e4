package query

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// Kinds of a HistoryLine.
const (
	KindStored  = "stored"
	KindRemoved = "removed"
	KindCleared = "cleared"
	KindMark    = "mark"
	// KindCorrection: a reading of the master found a medium to be otherwise than was known. KindReading: one agreed.
	KindCorrection = "correction"
	KindReading    = "reading"
)

// DoubtWithinBatch: the batch goes on with the object, and what it holds was announced at once. Only lines of a history
// have it; a moment never lies within a batch.
const DoubtWithinBatch = "within_batch"

// HistoryLine is one thing that touched an object, and what was known of the object behind it: what lookup would answer at
// offset:Offset, where nothing else of that record touches it.
type HistoryLine struct {
	Name
	Kind string
	// Offset is that of the batch; of a mark, of its first record: it stands before the events of that batch; of a reading and its
	// corrections, of the record that began it: they count from there, though they were written when it ended.
	Offset uint64
	// EventIndex is the event's place in its batch, from 1 on; 0 where there is no batch.
	EventIndex uint32
	// Epoch is 0 and Seq, EventID, Time, Received are nil where not known.
	Epoch          uint64
	Seq, EventID   *uint64
	Time, Received *Time
	// Medium is of a stored, removed or correction, Group of a stored or removed, nil where there is none. State is Present or Absent, of
	// a correction.
	Medium string
	Group  Bytes
	State  string
	// Proof is of a cleared: it confirms absence (R7).
	Proof *bool
	// Mark is of a mark.
	Mark *MarkOut
	// Reading is of a correction and a reading.
	Reading *HistoryReading

	Present   bool
	Certainty string
	// Media as in an Answer, without evidence: that is the line itself, or one before it. Beyond maxMediaShown media those that
	// this line does not historyTouch are left out, MediaLeftOut of them.
	Media        map[string]MediumOut
	MediaLeftOut int
	// Silent: the source's master changes things without an event (R11).
	Silent bool

	// Event is the original event and Batch what its batch holds beside events; only if asked for.
	Event, Batch json.RawMessage

	name *nameText // nil: of no history, or read back
}

// nameText is a Name's JSON fields, which the lines of an object share. They are made when the first line is written.
type nameText struct{ text []byte }

// HistoryReading tells of a reading of the master.
type HistoryReading struct {
	// Ended is the offset of the record that ended it; Through is e of R9.
	Ended   uint64 `json:"ended"`
	Through uint64 `json:"through"`
	// Why it was made, and the admin URL or the file that was read.
	Why  string `json:"why"`
	From string `json:"from,omitempty"`
}

// MarkOut is what casts doubt on all that came before it.
type MarkOut struct {
	Cause string `json:"cause"`
	// Shadow: the batch at the mark's offset changes the state, but is no evidence itself (R4).
	Shadow bool `json:"shadow"`
	// ExtendsTo is left out where the mark is of one record only.
	ExtendsTo *MarkEnd `json:"extends_to,omitempty"`
	// Gap is the first loss behind the mark, left out where there is none; Losses is how many there are, LossesMore: and more.
	Gap        *GapOut `json:"gap,omitempty"`
	Losses     int     `json:"losses,omitempty"`
	LossesMore bool    `json:"losses_more,omitempty"`
}

// MarkEnd is the last record that a mark covers.
type MarkEnd struct {
	Offset   uint64 `json:"offset"`
	Time     *Time  `json:"time,omitempty"`
	Received *Time  `json:"received,omitempty"`
}

const (
	// maxMediaShown bounds the media of one line, so that the lines of an object with thousands of them stay readable.
	maxMediaShown = 64
	// maxLosses bounds how many losses of one mark are counted.
	maxLosses = 1000
)

// historyLiner makes lines of one object, each in the memory of the one before.
type historyLiner struct {
	p    *historyOf
	raw  bool
	line HistoryLine
	name nameText
	room room
	// What the line points to.
	seq, id        uint64
	time, received Time
	proof          bool
}

func newHistoryLiner(p *historyOf, raw bool) *historyLiner {
	l := &historyLiner{p: p, raw: raw}
	l.room.answer.Media = make(map[string]MediumOut, 2)
	return l
}

// make makes the line of an historyTouch behind which st is the state. within: the batch goes on with the object.
func (l *historyLiner) make(o *historyTouch, st *historyState, within bool) (*HistoryLine, error) {
	l.line = HistoryLine{Name: l.p.name, Offset: o.at.Offset, EventIndex: o.at.Event, name: &l.name}
	m := moment{source: l.p.source.ID, at: o.at, mark: st.mark, hasMark: st.hasMark, last: index.Place{Offset: o.at.Offset}, flagged: l.p.flagged, forgotten: l.p.view.Base().Forgotten}
	touched := ""
	switch {
	case o.mark != nil:
		if err := l.mark(o.mark); err != nil {
			return nil, err
		}
	case o.clear != nil:
		l.line.Kind = KindCleared
		l.proof = o.clear.Proof
		l.line.Proof = &l.proof
		l.evidence(&o.clear.Evidence, &m)
	case o.own == nil:
		l.line.Kind = KindReading
		if err := l.reading(&o.reading.Evidence, &m); err != nil {
			return nil, err
		}
	case o.own.Reading:
		l.line.Kind, l.line.Medium, l.line.State = KindCorrection, o.own.Medium, stateName(o.own.Stored)
		touched = o.own.Medium
		if err := l.reading(&o.own.Evidence, &m); err != nil {
			return nil, err
		}
	default:
		l.line.Kind, l.line.Medium, l.line.Group = KindRemoved, o.own.Medium, o.own.Group
		if o.own.Stored {
			l.line.Kind = KindStored
		}
		touched = o.own.Medium
		l.evidence(&o.own.Evidence, &m)
	}
	l.line.Silent = m.silent(l.line.Epoch)
	if l.raw && o.mark == nil && !o.read() {
		var err error
		if l.line.Event, l.line.Batch, err = l.p.blocks.raw(o.at); err != nil {
			return nil, err
		}
	}
	if err := l.state(&m, st, within); err != nil {
		return nil, err
	}
	if len(st.media) > maxMediaShown {
		for name := range l.line.Media {
			if name != touched && name != "cpu" && name != "disk" {
				delete(l.line.Media, name)
			}
		}
		l.line.MediaLeftOut = len(st.media) - len(l.line.Media)
	}
	return &l.line, nil
}

// evidence puts an event's numbers on the line, and its batch's on the moment behind it.
func (l *historyLiner) evidence(e *index.Evidence, m *moment) {
	l.seq, l.received = e.Seq, *msTime(e.Received)
	l.line.Epoch, l.line.Seq, l.line.Received = e.Epoch, &l.seq, &l.received
	if e.HasID {
		l.id = e.ID
		l.line.EventID = &l.id
	}
	if e.HasTime {
		l.time = *msTime(e.Time)
		l.line.Time = &l.time
	}
	m.last.HasTime, m.last.Time = e.HasTime, e.Time
	if e.Window {
		m.unproven = doubtAt(DoubtWindow, e.Position.Offset, e.HasTime, e.Time)
	}
}

// reading puts a reading's numbers on the line, and the last message before it on the moment.
func (l *historyLiner) reading(e *index.Evidence, m *moment) error {
	l.evidence(e, m)
	l.line.EventIndex = 0
	h := e.Position.Offset
	last, err := l.p.blocks.j.LastBatch(m.source, h)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	if m.last = placeOf(&last); last.InWindow {
		m.unproven = recordDoubt(DoubtWindow, &last)
		m.leaveWindow()
	}
	r, ok, err := l.p.view.SourceReading(m.source, h)
	if ok {
		l.line.Reading = &HistoryReading{Ended: r.Offset, Through: r.Through, Why: r.Why, From: r.From}
	}
	return err
}

// state decides for each medium, by the rules of lookup.
func (l *historyLiner) state(m *moment, st *historyState, within bool) error {
	answer := &l.room.answer
	answer.Media = l.room.media(len(st.media))
	err := st.judge(m, within, func(i int, d *decision) {
		out := d.stateIn(m, l.room.medium(i))
		if within && d.doubt == cutOff {
			out.Doubt.Cause = DoubtWithinBatch
		}
		answer.Media[st.media[i].Name] = out
	})
	answer.summarize()
	l.line.Present, l.line.Certainty, l.line.Media = answer.Present, answer.Certainty, answer.Media
	return err
}

// mark puts a mark on the line.
func (l *historyLiner) mark(m *index.Mark) error {
	l.line.Kind = KindMark
	out, h, err := l.p.markOut(m)
	if err != nil {
		return err
	}
	l.line.Mark = out
	if h != nil {
		l.line.Epoch, l.line.Received = h.Epoch, msTime(h.Received/1e6)
		if h.HasSeq {
			seq := h.Seq
			l.line.Seq = &seq
		}
		if h.HasTime {
			l.line.Time = msTime(h.Time)
		}
	}
	return nil
}

// AppendJSON writes the line.
func (l *HistoryLine) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if n := l.name; n != nil {
		if n.text == nil {
			n.text = l.Name.appendJSON(nil)
		}
		dst = append(dst, n.text...)
	} else {
		dst = l.Name.appendJSON(dst)
	}
	dst = appendText(dst, "kind", l.Kind)
	dst = appendUint(dst, "offset", l.Offset)
	if l.EventIndex != 0 {
		dst = appendUint(dst, "event_index", uint64(l.EventIndex))
	}
	if l.Epoch != 0 {
		dst = appendUint(dst, "epoch", l.Epoch)
	}
	for _, n := range []struct {
		name string
		v    *uint64
	}{{"seq", l.Seq}, {"event_id", l.EventID}} {
		if n.v != nil {
			dst = appendUint(dst, n.name, *n.v)
		}
	}
	if l.Time != nil {
		dst = appendTime(dst, "time", l.Time.UnixMilli())
	}
	if l.Received != nil {
		dst = appendTime(dst, "received", l.Received.UnixMilli())
	}
	if l.Medium != "" {
		dst = appendText(dst, "medium", l.Medium)
	}
	dst = appendBytes(dst, "group_id", l.Group)
	if l.State != "" {
		dst = appendText(dst, "state", l.State)
	}
	if l.Reading != nil {
		dst = append(append(append(dst, `"reading":`...), mustJSON(l.Reading)...), ',')
	}
	if l.Proof != nil {
		dst = appendBool(dst, "proves_absence", *l.Proof)
	}
	if l.Mark != nil {
		b, err := json.Marshal(l.Mark) // it holds nothing that JSON has not
		if err == nil {
			dst = append(append(dst, b[1:len(b)-1]...), ',')
		}
	}
	dst = appendBool(dst, "present", l.Present)
	dst = appendText(dst, "certainty", l.Certainty)
	dst = l.appendMedia(dst)
	if l.MediaLeftOut != 0 {
		dst = appendUint(dst, "media_left_out", uint64(l.MediaLeftOut))
	}
	if l.Silent {
		dst = appendBool(dst, "silent", true)
	}
	if l.Event != nil {
		dst = append(append(append(dst, `"event":`...), l.Event...), ',')
	}
	if l.Batch != nil {
		dst = append(append(append(dst, `"batch":`...), l.Batch...), ',')
	}
	return endObject(dst)
}

func (l *HistoryLine) appendMedia(dst []byte) []byte {
	names := make([]string, 0, 4)
	for name := range l.Media {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, `"media":{`...)
	for i, name := range names {
		m := l.Media[name]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':', '{')
		dst = appendText(dst, "state", m.State)
		dst = appendText(dst, "certainty", m.Certainty)
		if d := m.Doubt; d != nil {
			dst = append(dst, `"doubt":{`...)
			dst = appendText(dst, "cause", d.Cause)
			if d.Offset != 0 {
				dst = appendUint(dst, "offset", d.Offset)
			}
			if d.Time != nil {
				dst = appendTime(dst, "time", d.Time.UnixMilli())
			}
			dst = append(endObject(dst), ',')
		}
		dst = endObject(dst)
	}
	return append(dst, '}', ',')
}

func appendText(dst []byte, name, s string) []byte {
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(appendString(dst, s), ',')
}

func appendBool(dst []byte, name string, v bool) []byte {
	dst = append(append(append(dst, '"'), name...), `":`...)
	if v {
		return append(dst, "true,"...)
	}
	return append(dst, "false,"...)
}

// markOut tells of a mark, with the header of its first record, nil where that is not there any more.
func (p *historyOf) markOut(m *index.Mark) (*MarkOut, *journal.Header, error) {
	out := &MarkOut{Cause: m.Cause.String(), Shadow: m.Cause != continuity.Damaged && m.End == index.Behind(m.End.Offset)}
	if m.End.Offset != m.From {
		out.ExtendsTo = &MarkEnd{Offset: m.End.Offset, Received: msTime(m.Received)}
		if m.HasTime {
			out.ExtendsTo.Time = msTime(m.Time)
		}
	}
	h, err := p.blocks.header(m.From)
	if err != nil {
		return nil, nil, err
	}
	if h != nil {
		out.Shadow = h.Applies() && h.Mark == continuity.MarkBehind
	}
	gaps, err := p.view.GapPage(nil, p.source.ID, m.From, m.End.Offset, maxLosses+1)
	if err != nil {
		return nil, nil, err
	}
	if len(gaps) > 0 {
		out.Gap = gapOut(p.source.Name, &gaps[0])
	}
	out.LossesMore = len(gaps) > maxLosses
	out.Losses = min(len(gaps), maxLosses)
	return out, h, nil
}
