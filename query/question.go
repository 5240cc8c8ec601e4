package query

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads one line of `lookup --stdin`. Each field may be given as text or in base64.
func (q *Question) UnmarshalJSON(b []byte) error {
	var err error
	*q, err = ParseQuestion(b)
	return err
}

// ParseQuestion reads what UnmarshalJSON does, from a line by itself. The question holds nothing of the line.
func ParseQuestion(line []byte) (Question, error) {
	if q, rest, ok := scanQuestion(bytes.Clone(line)); ok && len(skipSpace(rest)) == 0 {
		return q, nil
	}
	return parseQuestion(line)
}

// ParseQuestions reads an array of questions. They hold what they are read from.
func ParseQuestions(array []byte) ([]Question, error) {
	if out, ok := scanQuestions(array); ok {
		return out, nil
	}
	var out []Question
	err := json.Unmarshal(array, &out)
	return out, err
}

// parseQuestion is ParseQuestion of whatever a question may be.
func parseQuestion(line []byte) (q Question, err error) {
	var w nameJSON
	if err := json.Unmarshal(line, &w); err != nil {
		return q, err
	}
	if err := q.Name.read(&w); err != nil {
		return q, err
	}
	if len(q.Key) == 0 {
		return q, fmt.Errorf("no object_key or object_key_base64")
	}
	return q, nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (q *Question) MarshalJSON() ([]byte, error) {
	return json.Marshal(nameJSON{Source: q.Source, BackendBase64: q.Backend.base64(), TenantBase64: q.Tenant.base64(), KeyBase64: q.Key.base64()})
}
