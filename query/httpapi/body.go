package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/kvjournal/kvjournal/query"
)

// formType is the media type of parameters as a body.
const formType = "application/x-www-form-urlencoded"

// mediaError: the body of a request is of a kind that is not read.
type mediaError struct{ text string }

func (e *mediaError) Error() string { return e.text }

// pathParams are the parameters of a question that stand in its path.
func pathParams(r *http.Request) (*params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &query.UsageError{Message: "parameters: " + err.Error()}
	}
	return &params{values: values}, nil
}

// onlyPathParams are pathParams of a question that has no body.
func onlyPathParams(w http.ResponseWriter, r *http.Request) (*params, error) {
	has := r.ContentLength > 0
	if r.ContentLength < 0 { // it may still be empty
		var one [1]byte
		n, err := newPatientBody(w, r).Read(one[:])
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		has = n > 0
	}
	if has {
		return nil, &query.UsageError{Message: fmt.Sprintf("%s %s has a body, which is not read: the parameters stand in its path, as %[2]s?source=NAME", r.Method, r.URL.Path)}
	}
	return pathParams(r)
}

// noParams refuses parameters, for a question that has none.
func noParams(w http.ResponseWriter, r *http.Request) error {
	p, err := onlyPathParams(w, r)
	if err != nil {
		return err
	}
	return p.err()
}

// paramsOf are the parameters of a question: of its path, and, where it is POSTed, of its body, which may be long.
func paramsOf(w http.ResponseWriter, r *http.Request) (*params, error) {
	if r.Method != http.MethodPost {
		return onlyPathParams(w, r)
	}
	p, err := pathParams(r)
	if err != nil {
		return nil, err
	}
	if err := encodedPlainly(r); err != nil {
		return nil, err
	}
	if kind := mediaType(r); kind != "" && kind != formType {
		return nil, &mediaError{fmt.Sprintf("the body is %.60s: parameters are sent as %s, as source=NAME&limit=10", kind, formType)}
	}
	b, err := io.ReadAll(io.LimitReader(newPatientBody(w, r), maxLine+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxLine {
		return nil, &query.UsageError{Message: fmt.Sprintf("parameters of more than %d MiB", maxLine>>20)}
	}
	text := strings.TrimRight(string(b), "\r\n") // of a file, or of echo
	if strings.HasPrefix(text, "{") {
		return nil, &mediaError{fmt.Sprintf("the body seems to be JSON: parameters are sent as %s, as source=NAME&limit=10", formType)}
	}
	more, err := url.ParseQuery(text)
	if err != nil {
		return nil, &query.UsageError{Message: "parameters: " + err.Error()}
	}
	for name, v := range more {
		p.values[name] = append(p.values[name], v...)
	}
	return p, nil
}

// mediaType is the media type of a body, without its parameters, empty: it is not said.
func mediaType(r *http.Request) string {
	said := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(said); err == nil {
		return kind
	}
	return said
}

// noForm refuses questions as the parts of a form.
func noForm(r *http.Request) error {
	if kind := mediaType(r); strings.HasPrefix(kind, "multipart/") {
		return &mediaError{fmt.Sprintf("the body is %.60s: send the questions as JSON, one a line, as {\"object_key\":\"k\"}", kind)}
	}
	return nil
}

// encodedPlainly refuses a body that is compressed: how long it is would not be known.
func encodedPlainly(r *http.Request) error {
	if how := r.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return &mediaError{fmt.Sprintf("the body is encoded as %.40q: send it as it is", how)}
	}
	return nil
}
