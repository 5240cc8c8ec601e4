package query

import "encoding/json"

// historyLineJSON is a HistoryLine as AppendJSON writes it.
type historyLineJSON struct {
	nameJSON
	Kind         string               `json:"kind"`
	Offset       uint64               `json:"offset"`
	EventIndex   uint32               `json:"event_index"`
	Epoch        uint64               `json:"epoch"`
	Seq          *uint64              `json:"seq"`
	EventID      *uint64              `json:"event_id"`
	Time         *Time                `json:"time"`
	Received     *Time                `json:"received"`
	Medium       string               `json:"medium"`
	GroupBase64  []byte               `json:"group_id_base64"`
	State        string               `json:"state"`
	Reading      *HistoryReading      `json:"reading"`
	Silent       bool                 `json:"silent"`
	Proof        *bool                `json:"proves_absence"`
	Present      bool                 `json:"present"`
	Certainty    string               `json:"certainty"`
	Media        map[string]MediumOut `json:"media"`
	MediaLeftOut int                  `json:"media_left_out"`
	Event        json.RawMessage      `json:"event"`
	Batch        json.RawMessage      `json:"batch"`
}

// UnmarshalJSON reads what AppendJSON wrote.
func (l *HistoryLine) UnmarshalJSON(b []byte) error {
	var w historyLineJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*l = HistoryLine{
		Kind: w.Kind, Offset: w.Offset, EventIndex: w.EventIndex, Epoch: w.Epoch, Seq: w.Seq, EventID: w.EventID, Time: w.Time,
		Received: w.Received, Medium: w.Medium, Group: w.GroupBase64, Proof: w.Proof, Present: w.Present, Certainty: w.Certainty,
		Media: w.Media, MediaLeftOut: w.MediaLeftOut, Event: w.Event, Batch: w.Batch,
		State: w.State, Reading: w.Reading, Silent: w.Silent,
	}
	if w.Kind == KindMark {
		l.Mark = &MarkOut{}
		if err := json.Unmarshal(b, l.Mark); err != nil {
			return err
		}
	}
	return l.Name.read(&w.nameJSON)
}

// MarshalJSON writes what AppendJSON does.
func (l *HistoryLine) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }

// historyNoteJSON is a HistoryNote as it is sent.
type historyNoteJSON struct {
	nameJSON
	Kind      string       `json:"kind"`
	First     *EvidenceOut `json:"first,omitempty"`
	Last      *EvidenceOut `json:"last,omitempty"`
	Older     uint64       `json:"older,omitempty"`
	Newer     uint64       `json:"newer,omitempty"`
	Elsewhere []nameJSON   `json:"elsewhere,omitempty"`
}

// MarshalJSON writes the note.
func (n *HistoryNote) MarshalJSON() ([]byte, error) {
	w := historyNoteJSON{nameJSON: n.Name.json(), Kind: n.Kind, First: n.First, Last: n.Last, Older: n.Older, Newer: n.Newer}
	for i := range n.Elsewhere {
		w.Elsewhere = append(w.Elsewhere, n.Elsewhere[i].json())
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *HistoryNote) UnmarshalJSON(b []byte) error {
	var w historyNoteJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*n = HistoryNote{Kind: w.Kind, First: w.First, Last: w.Last, Older: w.Older, Newer: w.Newer}
	for i := range w.Elsewhere {
		var name Name
		if err := name.read(&w.Elsewhere[i]); err != nil {
			return err
		}
		n.Elsewhere = append(n.Elsewhere, name)
	}
	return n.Name.read(&w.nameJSON)
}
