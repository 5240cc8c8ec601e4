package query

import (
	"bytes"
	"encoding/json"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// LogPart is what a line tells of a part of a reading: how many entries it has.
type LogPart struct {
	Begun uint64
	// Backend and Tenant are the scope's.
	Backend, Tenant Bytes
	// Entries are Present and Absent, of one medium each, and Unsaid, of an object each.
	Entries int
	Present int
	Absent  int
	Unsaid  int
}

type logPartJSON struct {
	Begun uint64 `json:"begun"`
	nameJSON
	Entries int `json:"entries"`
	Present int `json:"present"`
	Absent  int `json:"absent"`
	Unsaid  int `json:"unsaid"`
}

// MarshalJSON writes the scope as the command-line contract has names.
func (p *LogPart) MarshalJSON() ([]byte, error) {
	n := Name{Backend: notNil(p.Backend), Tenant: notNil(p.Tenant)}
	return json.Marshal(logPartJSON{p.Begun, n.json(), p.Entries, p.Present, p.Absent, p.Unsaid})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *LogPart) UnmarshalJSON(b []byte) error {
	var w logPartJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	var n Name
	if err := n.read(&w.nameJSON); err != nil {
		return err
	}
	*p = LogPart{w.Begun, n.Backend, n.Tenant, w.Entries, w.Present, w.Absent, w.Unsaid}
	return nil
}

// hasContent reports whether records of a kind say something: what the master's counters showed, or what a reading of it found.
func hasContent(k journal.Kind) bool {
	switch k {
	case journal.PublisherStatus, journal.ReconciliationBegun, journal.ReconciliationPart, journal.ReconciliationEnded:
		return true
	}
	return false
}

// contentOf is what such a record says, as JSON: a reading.Status, Begun or Ended, or a LogPart.
func contentOf(r *record) (json.RawMessage, error) {
	frames, err := r.Frames()
	if err != nil {
		return nil, err
	}
	frame := bytes.Join(frames, nil)
	var v any
	switch r.Kind {
	case journal.PublisherStatus:
		v = &reading.Status{}
	case journal.ReconciliationBegun:
		v = &reading.Begun{}
	case journal.ReconciliationEnded:
		v = &reading.Ended{}
	default:
		return partContent(frame, r.Offset)
	}
	if err := json.Unmarshal(frame, v); err != nil {
		return nil, &journal.CorruptError{Offset: r.Offset, What: "a " + r.Kind.String() + " record does not decode"}
	}
	return AppendJSON(nil, v)
}

func partContent(frame []byte, offset uint64) (json.RawMessage, error) {
	p, err := reading.DecodePart(frame)
	if err != nil {
		return nil, &journal.CorruptError{Offset: offset, What: err.Error()}
	}
	out := &LogPart{Begun: p.Begun, Backend: p.Backend, Tenant: p.Tenant}
	for {
		e, ok, err := p.Next()
		if err != nil {
			return nil, &journal.CorruptError{Offset: offset, What: err.Error()}
		}
		if !ok {
			return AppendJSON(nil, out)
		}
		out.Entries++
		switch e.What {
		case reading.Present:
			out.Present++
		case reading.Absent:
			out.Absent++
		default:
			out.Unsaid++
		}
	}
}
