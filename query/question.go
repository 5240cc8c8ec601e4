package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// questionNames: see QuestionFields.
var questionNames = []string{"source", "backend_id", "backend_id_base64", "tenant_id", "tenant_id_base64", "object_key", "object_key_base64"}

// QuestionFields are the names of a question's fields as JSON.
func QuestionFields() []string { return slices.Clone(questionNames) }

// UnknownFieldsError: a question has fields that are none of a question's.
type UnknownFieldsError struct {
	Fields []string
	Nth    int // the question's number in its array, from 1 on; 0: it is in none
}

func (e *UnknownFieldsError) Error() string {
	return fmt.Sprintf("a question has no field %.60q", e.Fields[0])
}

// UnmarshalJSON reads one line of `lookup --stdin`. Each field may be given as text or in base64.
func (q *Question) UnmarshalJSON(b []byte) error {
	var err error
	*q, err = ParseQuestion(b)
	return err
}

// ParseQuestion reads what UnmarshalJSON does, from a line by itself. The question holds nothing of the line. Other fields than those of a
// question are passed over, so that lines of answers can be asked about.
func ParseQuestion(line []byte) (Question, error) {
	if q, rest, ok := scanQuestion(bytes.Clone(line)); ok && len(skipSpace(rest)) == 0 {
		return q, nil
	}
	return parseQuestion(line)
}

// ParseOnlyQuestion is ParseQuestion, but for an *UnknownFieldsError where there are other fields.
func ParseOnlyQuestion(line []byte) (Question, error) {
	if q, rest, ok := scanQuestion(bytes.Clone(line)); ok && len(skipSpace(rest)) == 0 {
		return q, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) == nil {
		if err := onlyQuestion(fields, 0); err != nil {
			return Question{}, err
		}
	}
	return parseQuestion(line)
}

// ParseOnlyQuestions reads an array of questions, as ParseOnlyQuestion each. They hold what they are read from.
func ParseOnlyQuestions(array []byte) ([]Question, error) {
	if out, ok := scanQuestions(array); ok {
		return out, nil
	}
	var fields []map[string]json.RawMessage
	if json.Unmarshal(array, &fields) == nil {
		for i := range fields {
			if err := onlyQuestion(fields[i], i+1); err != nil {
				return nil, err
			}
		}
	}
	var out []Question
	err := json.Unmarshal(array, &out)
	return out, err
}

// onlyQuestion returns an *UnknownFieldsError unless all fields are those of a question, whose letters' case does not count.
func onlyQuestion(fields map[string]json.RawMessage, nth int) error {
	var unknown []string
	for name := range fields {
		if !slices.ContainsFunc(questionNames, func(known string) bool { return strings.EqualFold(known, name) }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return &UnknownFieldsError{unknown, nth}
}

// parseQuestion is ParseQuestion of whatever a question may be.
func parseQuestion(line []byte) (q Question, err error) {
	var w nameJSON
	if err := json.Unmarshal(line, &w); err != nil {
		return q, kindTold(err)
	}
	if err := q.Name.read(&w); err != nil {
		return q, err
	}
	if len(q.Key) == 0 {
		return q, fmt.Errorf("no object_key or object_key_base64")
	}
	return q, nil
}

// kindTold is err; of a value of the wrong kind it names field and kind.
func kindTold(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return err
	case kind.Field == "":
		return fmt.Errorf("a question is an object, not a JSON %s", kind.Value)
	}
	return fmt.Errorf("%s is text, not a JSON %s", kind.Field, kind.Value)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (q *Question) MarshalJSON() ([]byte, error) {
	return json.Marshal(nameJSON{Source: q.Source, BackendBase64: q.Backend.base64(), TenantBase64: q.Tenant.base64(), KeyBase64: q.Key.base64()})
}
