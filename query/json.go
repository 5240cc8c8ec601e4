package query

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// JSONAppender is an answer that writes its own JSON, because there are many of it.
type JSONAppender interface {
	AppendJSON(dst []byte) []byte
}

// AppendJSON appends an answer as one compact JSON value.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	if a, ok := v.(JSONAppender); ok {
		return a.AppendJSON(dst), nil
	}
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Name names an object.
type Name struct {
	Source  string
	Backend Bytes
	Tenant  Bytes
	Key     Bytes
}

// nameJSON is a Name as the command-line contract has it; it is embedded in what is printed.
type nameJSON struct {
	Source        string  `json:"source,omitempty"`
	Backend       *string `json:"backend_id,omitempty"`
	BackendBase64 *string `json:"backend_id_base64,omitempty"`
	Tenant        *string `json:"tenant_id,omitempty"`
	TenantBase64  *string `json:"tenant_id_base64,omitempty"`
	Key           *string `json:"object_key,omitempty"`
	KeyBase64     *string `json:"object_key_base64,omitempty"`
}

func (n *Name) json() nameJSON {
	return nameJSON{n.Source, n.Backend.text(), n.Backend.base64(), n.Tenant.text(), n.Tenant.base64(), n.Key.text(), n.Key.base64()}
}

// read takes the name that w holds; base64 counts before text, which may be left out.
func (n *Name) read(w *nameJSON) error {
	*n = Name{Source: w.Source}
	for _, f := range []struct {
		name         string
		to           *Bytes
		text, base64 *string
	}{{"backend_id", &n.Backend, w.Backend, w.BackendBase64}, {"tenant_id", &n.Tenant, w.Tenant, w.TenantBase64}, {"object_key", &n.Key, w.Key, w.KeyBase64}} {
		switch {
		case f.base64 != nil:
			v, err := base64.StdEncoding.DecodeString(*f.base64)
			if err != nil {
				return usagef("%s_base64: %v", f.name, err)
			}
			*f.to = append(Bytes{}, v...)
		case f.text != nil:
			*f.to = Bytes(*f.text)
		}
	}
	return nil
}

// appendJSON appends the name's fields, each followed by a comma.
func (n *Name) appendJSON(dst []byte) []byte {
	if n.Source != "" {
		dst = append(dst, `"source":`...)
		dst = append(appendString(dst, n.Source), ',')
	}
	dst = appendBytes(dst, "backend_id", n.Backend)
	dst = appendBytes(dst, "tenant_id", n.Tenant)
	return appendBytes(dst, "object_key", n.Key)
}

// appendBytes appends "name":"…" where b is UTF-8, and "name_base64":"…", each followed by a comma; nothing where b is nil.
func appendBytes(dst []byte, name string, b Bytes) []byte {
	if b == nil {
		return dst
	}
	if utf8.Valid(b) {
		dst = append(append(append(dst, '"'), name...), `":`...)
		dst = append(appendString(dst, b), ',')
	}
	dst = append(append(append(dst, '"'), name...), `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, b), `",`...)
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. s is valid UTF-8.
func appendString[T string | Bytes](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// appendUint appends "name":v and a comma.
func appendUint(dst []byte, name string, v uint64) []byte {
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(strconv.AppendUint(dst, v, 10), ',')
}

// appendTime appends "name":"…" and a comma; ms is Unix ms.
func appendTime(dst []byte, name string, ms int64) []byte {
	dst = append(append(append(dst, '"'), name...), `":"`...)
	return append(appendMoment(dst, ms), `",`...)
}

// appendMoment appends Unix ms as timeLayout has them, in a fourth of what AppendFormat takes: an answer has four or five.
func appendMoment(dst []byte, ms int64) []byte {
	t := time.UnixMilli(showable(ms)).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(dst, timeLayout...)
	text := dst[len(dst)-len(timeLayout):]
	putDigits(text[0:4], year)
	putDigits(text[5:7], int(month))
	putDigits(text[8:10], day)
	putDigits(text[11:13], hour)
	putDigits(text[14:16], minute)
	putDigits(text[17:19], second)
	putDigits(text[20:23], t.Nanosecond()/1e6)
	return dst
}

// putDigits fills to with the last digits of a number.
func putDigits(to []byte, n int) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		n /= 10
	}
}

// endObject closes a JSON object whose fields are each followed by a comma.
func endObject(dst []byte) []byte {
	dst[len(dst)-1] = '}'
	return dst
}
