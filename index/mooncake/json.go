package mooncake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// failure is what a master's reply has in common when it is no answer. Two forms were seen:
//
//	{"success":false,"error_code":-1011,"error_message":"service plane is not active"}
//	{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}
type failure struct {
	Code    json.RawMessage `json:"error_code"`
	Message json.RawMessage `json:"error_message"`
	Error   json.RawMessage `json:"error"`
}

func (f *failure) standby() bool { return string(f.Code) == standbyCode }

// words are what the reply says for people.
func (f *failure) words() string {
	for _, raw := range []json.RawMessage{f.Message, f.Error} {
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// decodeObject decodes one JSON object that is all of the body; f, a part of into, tells of a failure.
func decodeObject(r io.Reader, into any, f *failure) error {
	dec := json.NewDecoder(r)
	if err := dec.Decode(into); err != nil {
		if err == io.EOF {
			return broken("an empty body")
		}
		return err
	}
	if err := atEnd(dec); err != nil {
		return err
	}
	if f.standby() {
		return &StandbyError{Message: f.words()}
	}
	return nil
}

// atEnd checks that nothing follows a JSON value.
func atEnd(dec *json.Decoder) error {
	switch _, err := dec.Token(); {
	case err == io.EOF:
		return nil
	case err == nil || errors.As(err, new(*json.SyntaxError)):
		return broken("more follows after the JSON")
	default:
		return err
	}
}

// jsonTrouble words the errors of encoding/json without the names of our types.
func jsonTrouble(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Sprintf("field %q is a %s", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Sprintf("want a JSON object, this is a %s", wrong.Value)
	case errors.As(err, new(*json.SyntaxError)):
		return "no JSON: " + err.Error()
	default:
		return strings.TrimPrefix(err.Error(), "json: ")
	}
}

// missing names the first field that a reply must have and has not.
func missing(fields ...field) error {
	for _, f := range fields {
		if f.absent {
			return broken("field %q is missing", f.name)
		}
	}
	return nil
}

type field struct {
	name   string
	absent bool
}

// figure is a number that is only shown: whatever is no unsigned integer is 0, rather than a broken reply.
type figure uint64

func (f *figure) UnmarshalJSON(b []byte) error {
	var n uint64
	if json.Unmarshal(b, &n) == nil {
		*f = figure(n)
	}
	return nil
}
