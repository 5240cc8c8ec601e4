package query

import "encoding/json"

// CorrectionOut is what a reading of the master found to be other than the stream says.
type CorrectionOut struct {
	Name
	Medium string
	// State is Present or Absent; empty where the reading says nothing of the object.
	State string
}

type correctionJSON struct {
	nameJSON
	Medium string `json:"medium,omitempty"`
	State  string `json:"state,omitempty"`
}

// MarshalJSON writes the correction as the command-line contract has names.
func (c *CorrectionOut) MarshalJSON() ([]byte, error) {
	return json.Marshal(correctionJSON{c.Name.json(), c.Medium, c.State})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *CorrectionOut) UnmarshalJSON(b []byte) error {
	var w correctionJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	c.Medium, c.State = w.Medium, w.State
	return c.Name.read(&w.nameJSON)
}
