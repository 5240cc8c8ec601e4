package query

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Bytes is a field that may hold any bytes. In JSON a field X stands as X, left out where it is no valid UTF-8, and as X_base64.
type Bytes []byte

// text returns the bytes as a string, or nil where they are no UTF-8.
func (b Bytes) text() *string {
	if b == nil || !utf8.Valid(b) {
		return nil
	}
	s := string(b)
	return &s
}

func (b Bytes) base64() *string {
	if b == nil {
		return nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return &s
}

// States and certainties, as answers print them.
const (
	Present   = "present"
	Absent    = "absent"
	Confirmed = "confirmed"
	Uncertain = "uncertain"
)

// Time is a moment in answers: RFC 3339 UTC with ms. The zero Time is left out.
type Time struct{ time.Time }

// MarshalJSON writes the time with exactly three decimals.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Time) UnmarshalJSON(b []byte) error { return t.Time.UnmarshalJSON(b) }

func (t Time) String() string { return t.UTC().Format(timeLayout) }

// timeLayout is RFC 3339 with ms; for times in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// firstMs and lastMs are the first and last ms that RFC 3339 can write: of the years 0 to 9999.
const (
	firstMs = -62_167_219_200_000
	lastMs  = 253_402_300_799_999
)

// showable is ms, or the nearest that can be written: a publisher may send any.
func showable(ms int64) int64 { return min(max(ms, firstMs), lastMs) }

// msTime is Unix ms as answers show it.
func msTime(ms int64) *Time { return &Time{time.UnixMilli(showable(ms))} }

// EvidenceOut is the event that an answer rests on.
type EvidenceOut struct {
	Offset   uint64  `json:"offset"`
	Epoch    uint64  `json:"epoch"`
	Seq      uint64  `json:"seq"`
	EventID  *uint64 `json:"event_id,omitempty"`
	Time     *Time   `json:"time,omitempty"`
	Received *Time   `json:"received,omitempty"`
	// Cause: event, cleared or reconciliation.
	Cause string `json:"cause"`
}

// Doubt is why an answer is uncertain.
type Doubt struct {
	// Cause is a mark's cause (publisher_queue, transport, …), or one of the Doubt constants.
	Cause  string `json:"cause"`
	Offset uint64 `json:"offset,omitempty"`
	Time   *Time  `json:"time,omitempty"`
}

// Causes of doubt that are no marks.
const (
	// DoubtCleared: stored, then the scope was cleared; it may have survived (R7).
	DoubtCleared = "cleared"
	// DoubtNoEvidence: nothing was ever announced about the object on this medium.
	DoubtNoEvidence = "no_evidence"
	// DoubtForgotten: nothing is known of the object on this medium, and what was known of objects that were gone was forgotten when the journal
	// was pruned up to the offset (`prune --forget-removed`).
	DoubtForgotten = "forgotten"
	// DoubtFullBatch: the batch was full, and the change may go on in the next one (R8).
	DoubtFullBatch = "full_batch"
	// DoubtBehindLast: nothing later shows that nothing is missing before the moment (R8).
	DoubtBehindLast = "behind_last_batch"
	// DoubtBeforeFirst: the moment lies before all that was recorded.
	DoubtBeforeFirst = "before_first_batch"
	// DoubtClock: the publisher's clock passed the moment twice (R8).
	DoubtClock = "clock_went_back"
	// DoubtWindow: the connection's boundary is not known there (R5).
	DoubtWindow = "connection_unproven"
	// DoubtSilent: the master changes things without an event, so only a reading of it confirms presence, for its own moment (R11).
	DoubtSilent = "silent_master"
	// DoubtNow: only the master's counters prove `now`, and they do not: it is not asked, does not answer, or just published something.
	DoubtNow = "now_not_proven"
)

// MediumOut is the answer for one medium.
type MediumOut struct {
	State     string       `json:"state"`
	Certainty string       `json:"certainty"`
	Evidence  *EvidenceOut `json:"evidence,omitempty"`
	Doubt     *Doubt       `json:"doubt,omitempty"`
}

// AsOf is the moment an answer speaks of.
type AsOf struct {
	Offset   uint64 `json:"offset"`
	Time     *Time  `json:"time,omitempty"`
	Received *Time  `json:"received,omitempty"`
	// AgeMs is our clock minus Received.
	AgeMs *int64 `json:"age_ms,omitempty"`
	// Live: a recorder answered, and its source is connected.
	Live bool `json:"live"`
}

// Answer is what lookup says of one object.
type Answer struct {
	// Name is the object's; Source and Backend are empty where several fit and the answer is over all of them.
	Name

	Present   bool
	Certainty string
	Media     map[string]MediumOut
	AsOf      AsOf
	// Silent: the source's master changes things without an event (R11).
	Silent bool
}

// answerJSON is an Answer as the command-line contract has it.
type answerJSON struct {
	nameJSON
	Present   bool                 `json:"present"`
	Certainty string               `json:"certainty"`
	Media     map[string]MediumOut `json:"media"`
	AsOf      AsOf                 `json:"as_of"`
	Silent    bool                 `json:"silent,omitempty"`
}

// MarshalJSON writes the answer as the command-line contract has it.
func (a *Answer) MarshalJSON() ([]byte, error) {
	return json.Marshal(answerJSON{a.Name.json(), a.Present, a.Certainty, a.Media, a.AsOf, a.Silent})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Answer) UnmarshalJSON(b []byte) error {
	var w answerJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*a = Answer{Present: w.Present, Certainty: w.Certainty, Media: w.Media, AsOf: w.AsOf, Silent: w.Silent}
	return a.Name.read(&w.nameJSON)
}
