package query

import "encoding/base64"

// scanQuestion reads the question that b begins with and returns what stands behind it. It knows what programs send: an object of the known
// fields, each once, of text without escapes in ASCII. ok is false for anything else, right or wrong, which is left to encoding/json; a
// question that it reads is what encoding/json would have read. What the question holds points into b.
func scanQuestion(b []byte) (q Question, rest []byte, ok bool) {
	if b = skipSpace(b); len(b) == 0 || b[0] != '{' {
		return q, b, false
	}
	var f questionFields
	for b = b[1:]; ; b = b[1:] { // behind the brace or a comma
		var name, value []byte
		if name, b, ok = scanText(skipSpace(b)); !ok {
			return q, b, false
		}
		if b = skipSpace(b); len(b) == 0 || b[0] != ':' {
			return q, b, false
		}
		if value, b, ok = scanText(skipSpace(b[1:])); !ok || !f.set(name, value) {
			return q, b, false
		}
		if b = skipSpace(b); len(b) == 0 || b[0] != ',' {
			break
		}
	}
	if len(b) == 0 || b[0] != '}' {
		return q, b, false
	}
	q, ok = f.question()
	return q, b[1:], ok
}

// questionFields are the texts of a question's fields, nil: not given.
type questionFields struct {
	source, backend, backend64, tenant, tenant64, key, key64 []byte
}

// set keeps the text of a field; false where there is no such field, or it was given before.
func (f *questionFields) set(name, text []byte) bool {
	var to *[]byte
	switch string(name) {
	case "source":
		to = &f.source
	case "backend_id":
		to = &f.backend
	case "backend_id_base64":
		to = &f.backend64
	case "tenant_id":
		to = &f.tenant
	case "tenant_id_base64":
		to = &f.tenant64
	case "object_key":
		to = &f.key
	case "object_key_base64":
		to = &f.key64
	}
	if to == nil || *to != nil {
		return false
	}
	*to = text
	return true
}

// question is what the fields ask; false where encoding/json has to say what is wrong.
func (f *questionFields) question() (q Question, ok bool) {
	q.Source = string(f.source)
	for _, b := range []struct {
		to           *Bytes
		text, base64 []byte
	}{{&q.Backend, f.backend, f.backend64}, {&q.Tenant, f.tenant, f.tenant64}, {&q.Key, f.key, f.key64}} {
		*b.to = b.text
		if b.base64 == nil {
			continue
		}
		v, err := base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(b.base64))), b.base64)
		if err != nil {
			return q, false
		}
		*b.to = v
	}
	return q, len(q.Key) > 0
}

// scanText reads the text that b begins with, and returns it without its quotes, never nil, and what stands behind it.
func scanText(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[1:i:i], b[i+1:], true
		case c == '\\', c < 0x20, c >= 0x80:
			return nil, b, false
		}
	}
	return nil, b, false
}

// skipSpace is b without the white space that it begins with.
func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// scanQuestions reads an array of questions that scanQuestion knows; false for any other.
func scanQuestions(b []byte) (out []Question, ok bool) {
	if b = skipSpace(b); len(b) == 0 || b[0] != '[' {
		return nil, false
	}
	for b = b[1:]; ; b = b[1:] { // behind the bracket or a comma
		q, rest, ok := scanQuestion(b)
		if !ok {
			return nil, false
		}
		out = append(out, q)
		if b = skipSpace(rest); len(b) == 0 || b[0] != ',' {
			break
		}
	}
	return out, len(b) > 0 && b[0] == ']' && len(skipSpace(b[1:])) == 0
}
