package query

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// questionJSON is one line of `lookup --stdin`. Each field may be given as text or in base64.
type questionJSON struct {
	Source        string  `json:"source,omitempty"`
	Backend       *string `json:"backend_id,omitempty"`
	BackendBase64 *string `json:"backend_id_base64,omitempty"`
	Tenant        *string `json:"tenant_id,omitempty"`
	TenantBase64  *string `json:"tenant_id_base64,omitempty"`
	Key           *string `json:"object_key,omitempty"`
	KeyBase64     *string `json:"object_key_base64,omitempty"`
}

// UnmarshalJSON reads one line of `lookup --stdin`.
func (q *Question) UnmarshalJSON(b []byte) error {
	var w questionJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*q = Question{Source: w.Source}
	for _, f := range []struct {
		name         string
		to           *Bytes
		text, base64 *string
	}{{"backend_id", &q.Backend, w.Backend, w.BackendBase64}, {"tenant_id", &q.Tenant, w.Tenant, w.TenantBase64}, {"object_key", &q.Key, w.Key, w.KeyBase64}} {
		switch {
		case f.base64 != nil:
			v, err := base64.StdEncoding.DecodeString(*f.base64)
			if err != nil {
				return fmt.Errorf("%s_base64: %w", f.name, err)
			}
			*f.to = append(Bytes{}, v...)
		case f.text != nil:
			*f.to = Bytes(*f.text)
		}
	}
	if len(q.Key) == 0 {
		return fmt.Errorf("no object_key or object_key_base64")
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (q *Question) MarshalJSON() ([]byte, error) {
	return json.Marshal(questionJSON{Source: q.Source, BackendBase64: q.Backend.base64(), TenantBase64: q.Tenant.base64(), KeyBase64: q.Key.base64()})
}
