package query

import (
	"encoding/json"
	"strconv"

	"github.com/kvjournal/kvjournal/index"
)

// ObjectLine is one object of a listing. It writes its JSON without building an answer first: what is the same for all objects of a
// scope is written once.
type ObjectLine struct {
	at  *scopeAt
	key []byte
	o   standing

	name   []byte    // the scope's fields, each followed by a comma
	asOf   []byte    // "as_of":{…}
	clears [2][]byte // the evidence of the newest clear, and of the newest proof
	doubts [cutOff + 1][]byte
	second secondText
}

// enter prepares for the objects of a scope.
func (l *ObjectLine) enter(at *scopeAt) {
	l.at = at
	n := Name{Source: at.source, Backend: notNil(at.Backend), Tenant: notNil(at.Tenant)}
	l.name = n.appendJSON(l.name[:0])
	clear(l.doubts[:])
	clear(l.clears[:])
	if l.asOf == nil {
		l.asOf = append([]byte(`"as_of":`), mustJSON(at.moment.asOf)...)
	}
}

func notNil(b []byte) Bytes {
	if b == nil {
		return Bytes{}
	}
	return b
}

// mustJSON is the JSON of a value that has one.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Answer is the object as Lookup answers, and its group, nil where no event had one.
func (l *ObjectLine) Answer() *ObjectOut {
	out := &ObjectOut{Answer: Answer{
		Name:  Name{Source: l.at.source, Backend: notNil(l.at.Backend), Tenant: notNil(l.at.Tenant), Key: append(Bytes{}, l.key...)},
		Media: map[string]MediumOut{}, AsOf: l.at.moment.asOf, Silent: l.at.moment.silent(l.at.moment.epoch),
	}}
	for i := range l.o.media {
		out.Media[l.o.media[i].name] = l.o.media[i].decision.out(l.at.moment)
	}
	out.summarize()
	if l.o.hasGroup {
		out.Group = append(Bytes{}, l.o.group...)
	}
	return out
}

// AppendJSON appends the object as Answer's JSON, with group_id.
func (l *ObjectLine) AppendJSON(dst []byte) []byte {
	dst = append(append(dst, '{'), l.name...)
	dst = appendBytes(dst, "object_key", l.key)
	dst = strconv.AppendBool(append(dst, `"present":`...), l.o.present)
	dst = append(append(append(dst, `,"certainty":"`...), certaintyName(l.o.confirmed)...), `",`...)
	if l.o.hasGroup {
		dst = appendBytes(dst, "group_id", notNil(l.o.group))
	}
	dst = append(dst, `"media":{`...)
	for i := range l.o.media {
		m := &l.o.media[i]
		dst = append(appendString(dst, m.name), ':')
		dst = append(l.appendMedium(dst, &m.decision), ',')
	}
	dst = append(endObject(dst), ',')
	dst = append(dst, l.asOf...)
	if l.at.moment.silent(l.at.moment.epoch) {
		dst = append(dst, `,"silent":true`...)
	}
	return append(dst, '}')
}

func (l *ObjectLine) appendMedium(dst []byte, d *decision) []byte {
	dst = append(append(append(dst, `{"state":"`...), stateName(d.present)...), `","certainty":"`...)
	dst = append(append(dst, certaintyName(d.confirmed())...), `",`...)
	switch {
	case d.evidence == nil:
	case d.cleared:
		dst = append(append(append(dst, `"evidence":`...), l.clear(d)...), ',')
	default:
		dst = append(append(dst, `"evidence":`...), '{')
		dst = append(l.second.appendEvidence(dst, d.evidence, eventCause(d.evidence)), ',')
	}
	if d.doubt != sure {
		doubt := &l.doubts[d.doubt]
		if *doubt == nil {
			*doubt = mustJSON(d.out(l.at.moment).Doubt)
		}
		dst = append(append(append(dst, `"doubt":`...), *doubt...), ',')
	}
	return endObject(dst)
}

// eventCause is the cause of evidence that is no clear.
func eventCause(e *index.Evidence) string {
	if e.Reading {
		return "reconciliation"
	}
	return "event"
}

// clear is the evidence of a clear: the newest, or the newest that proves.
func (l *ObjectLine) clear(d *decision) []byte {
	text := &l.clears[0]
	if d.evidence == &l.at.clears.proof {
		text = &l.clears[1]
	}
	if *text == nil {
		*text = mustJSON(d.out(l.at.moment).Evidence)
	}
	return *text
}

// ObjectOut is one object of a listing.
type ObjectOut struct {
	Answer
	// Group is the group_id of the newest event that had one; nil: none had.
	Group Bytes
}

// groupJSON is a group_id as the command-line contract has it.
type groupJSON struct {
	Group       *string `json:"group_id,omitempty"`
	GroupBase64 *string `json:"group_id_base64,omitempty"`
}

func (g *groupJSON) bytes() (b Bytes, err error) {
	n := Name{}
	err = n.read(&nameJSON{Key: g.Group, KeyBase64: g.GroupBase64})
	return n.Key, err
}

// UnmarshalJSON reads what ObjectLine.AppendJSON wrote.
func (o *ObjectOut) UnmarshalJSON(b []byte) error {
	if err := o.Answer.UnmarshalJSON(b); err != nil {
		return err
	}
	var g groupJSON
	err := json.Unmarshal(b, &g)
	if err == nil {
		o.Group, err = g.bytes()
	}
	return err
}

// secondText is a second as text, for the many times that lie in the same one.
type secondText struct {
	known bool
	at    int64 // s
	text  []byte
}

// append appends "name":"…" and a comma; ms is Unix ms.
func (s *secondText) append(dst []byte, name string, ms int64) []byte {
	ms = showable(ms)
	at, rest := ms/1000, ms%1000
	if rest < 0 {
		at, rest = at-1, rest+1000
	}
	if !s.known || s.at != at {
		s.known, s.at = true, at
		s.text = msTime(at*1000).UTC().AppendFormat(s.text[:0], "2006-01-02T15:04:05")
	}
	dst = append(append(append(dst, '"'), name...), `":"`...)
	dst = append(dst, s.text...)
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10), 'Z', '"', ',')
}

// appendEvidence appends the fields of evidenceOut, and the end of the object.
func (s *secondText) appendEvidence(dst []byte, e *index.Evidence, cause string) []byte {
	dst = appendUint(dst, "offset", e.Position.Offset)
	dst = appendUint(dst, "epoch", e.Epoch)
	dst = appendUint(dst, "seq", e.Seq)
	if e.HasID {
		dst = appendUint(dst, "event_id", e.ID)
	}
	if e.HasTime {
		dst = s.append(dst, "time", e.Time)
	}
	dst = s.append(dst, "received", e.Received)
	return append(append(append(dst, `"cause":"`...), cause...), `"}`...)
}
