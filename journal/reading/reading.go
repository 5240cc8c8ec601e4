package reading

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// Why a reading was made.
const (
	AfterMark = "after_mark" // something was lost
	AtStart   = "start"      // the recorder began
	OnDemand  = "on_demand"  // someone asked
	Audit     = "audit"      // periodic
	Snapshot  = "snapshot"   // from a file
)

// Begun says where a reading begins; the record's offset is its h.
type Begun struct {
	Why string `json:"why"`
	// From is the admin URL or the file that is read.
	From string `json:"from,omitempty"`
}

// Ended says what a reading covers. All of it is confirmed from h, the offset of Begun, but what its exceptions name and what
// had an event of its own in (h, Through].
type Ended struct {
	Why  string `json:"why"`
	From string `json:"from,omitempty"`
	// Begun is h; Through is e, the offset up to which all that the reading could see had been announced.
	Begun   uint64  `json:"begun"`
	Through uint64  `json:"through"`
	Scopes  []Scope `json:"scopes"`
	// Listed, Asked and Agreed count objects.
	Listed int `json:"listed"`
	Asked  int `json:"asked"`
	Agreed int `json:"agreed"`
	// Corrections and Exceptions count entries of the parts.
	Corrections int `json:"corrections"`
	Exceptions  int `json:"exceptions"`
	// Contradictions counts corrections of what the stream had confirmed: the master is silent (R11).
	Contradictions int `json:"contradictions,omitempty"`
	// TookMs is from the first call to the last, MasterMs what the master took to answer.
	TookMs   int64 `json:"took_ms"`
	MasterMs int64 `json:"master_ms"`
}

// Scope is a backend and tenant that a reading covers, in bytes.
type Scope struct {
	Backend, Tenant []byte
}

// scopeJSON has the bytes as text too, where they are.
type scopeJSON struct {
	Backend       *string `json:"backend_id,omitempty"`
	BackendBase64 []byte  `json:"backend_id_base64"`
	Tenant        *string `json:"tenant_id,omitempty"`
	TenantBase64  []byte  `json:"tenant_id_base64"`
}

// MarshalJSON writes backend_id and tenant_id, each as text where it is UTF-8, and in base64.
func (s Scope) MarshalJSON() ([]byte, error) {
	text := func(b []byte) *string {
		if !utf8.Valid(b) {
			return nil
		}
		t := string(b)
		return &t
	}
	return json.Marshal(scopeJSON{text(s.Backend), append([]byte{}, s.Backend...), text(s.Tenant), append([]byte{}, s.Tenant...)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Scope) UnmarshalJSON(b []byte) error {
	var w scopeJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	s.Backend, s.Tenant = w.BackendBase64, w.TenantBase64
	return nil
}

// What an entry of a part says.
type What uint8

const (
	Present What = 1
	Absent  What = 2
	// Unsaid: the reading says nothing about the object.
	Unsaid What = 3
)

// Entry is a correction of one medium of an object, or the exception of an object.
type Entry struct {
	What   What
	Key    []byte
	Medium []byte // nil where Unsaid
}

// Part is the decoded head of a part; its entries follow with Next.
type Part struct {
	Begun           uint64
	Backend, Tenant []byte
	c               varint.Cursor
}

// ErrPart: a part does not decode.
var ErrPart = errors.New("part of a reading does not decode")

// AppendPart begins a part.
func AppendPart(dst []byte, begun uint64, backend, tenant []byte) []byte {
	return appendText(appendText(binary.AppendUvarint(dst, begun), backend), tenant)
}

// AppendEntry adds an entry to a part.
func AppendEntry(dst []byte, e *Entry) []byte {
	dst = appendText(append(dst, byte(e.What)), e.Key)
	if e.What == Unsaid {
		return dst
	}
	return appendText(dst, e.Medium)
}

func appendText(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// DecodePart reads the head of a part; what it returns aliases b.
func DecodePart(b []byte) (*Part, error) {
	p := &Part{c: varint.Cursor{B: b}}
	p.Begun = p.c.Uvarint()
	p.Backend, p.Tenant = p.text(), p.text()
	if p.c.Bad {
		return nil, ErrPart
	}
	return p, nil
}

func (p *Part) text() []byte { return p.c.Bytes(p.c.Uvarint()) }

// Next reads the next entry; ok is false behind the last.
func (p *Part) Next() (e Entry, ok bool, err error) {
	if len(p.c.B) == 0 {
		return e, false, nil
	}
	e.What = What(p.c.Byte())
	e.Key = p.text()
	switch e.What {
	case Present, Absent:
		e.Medium = p.text()
	case Unsaid:
	default:
		return e, false, fmt.Errorf("%w: entry of kind %d", ErrPart, e.What)
	}
	if p.c.Bad || len(e.Key) == 0 || e.What != Unsaid && len(e.Medium) == 0 {
		return e, false, ErrPart
	}
	return e, true, nil
}
